"""Rewrites of shapes and sizes."""
