"""Rewrites of convolutions and Fourier transforms."""
