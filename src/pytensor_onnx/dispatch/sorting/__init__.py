"""Lowerings of sorting and searching."""
