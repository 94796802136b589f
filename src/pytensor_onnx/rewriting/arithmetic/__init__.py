"""Rewrites of sums, products and their dtypes."""
