"""Lowerings of reductions and cumulative operations."""
