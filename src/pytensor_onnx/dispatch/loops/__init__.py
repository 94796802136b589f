"""Lowerings of loops."""
