"""Rewrites of random draws."""
