"""Rewrites of special functions."""
