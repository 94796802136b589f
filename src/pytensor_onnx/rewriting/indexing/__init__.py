"""Rewrites of indexing."""
