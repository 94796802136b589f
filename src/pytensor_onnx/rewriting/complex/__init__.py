"""Rewrites of operations on complex numbers to operations on their real and imaginary parts.

Structure, such as shapes and indices, is moved by the same Op on the pairs or on each part;
elementwise operations, reductions and products have formulas of the parts.
"""
