"""Functions of complex numbers, as formulas of their real and imaginary parts."""

from pytensor_onnx.functions.complex_numbers import division, modulus

__all__ = ["division", "modulus"]
