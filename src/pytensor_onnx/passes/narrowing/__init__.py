"""Integers of 32 bits in place of 64, where an accelerator has kernels for these only."""
