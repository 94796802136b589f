"""Lowerings of indexing."""
