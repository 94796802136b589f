"""Fused kernels: regions of a session's model that run in the native library."""
