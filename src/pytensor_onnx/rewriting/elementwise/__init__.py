"""Rewrites of elementwise operations."""
