"""Lowerings of shapes, sizes and the creation of arrays."""
