"""Rewrites of reductions and cumulative operations."""
