"""Ops of loops."""
