"""Rewrites of linear algebra."""
