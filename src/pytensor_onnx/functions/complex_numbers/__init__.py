"""Functions of complex numbers, as formulas of their real and imaginary parts."""

from pytensor_onnx.functions.complex_numbers import (
    division,
    exponential,
    hyperbolic,
    inverse,
    logarithm,
    modulus,
    power,
    products,
    root,
)

__all__ = [
    "division",
    "exponential",
    "hyperbolic",
    "inverse",
    "logarithm",
    "modulus",
    "power",
    "products",
    "root",
]
