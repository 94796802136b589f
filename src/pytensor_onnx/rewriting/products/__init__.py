"""Rewrites of products of vectors and matrices."""
