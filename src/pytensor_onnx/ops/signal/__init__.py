"""Ops of convolutions and Fourier transforms."""
