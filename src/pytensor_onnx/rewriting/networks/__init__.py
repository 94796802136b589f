"""Rewrites of neural networks."""
