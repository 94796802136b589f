"""Lowerings of elementwise operations."""
