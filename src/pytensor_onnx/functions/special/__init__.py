"""Special and elementary functions, from the operators that every ONNX runtime has.

Importing the package fills the registry. The accuracy of each function is measured, by region, in
``docs/accuracy.md``; its docstring says where the error passes 4 units in the last place.
"""

from pytensor_onnx.functions.special import (
    erf,
    expm1,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trigonometric,
    log1mexp,
    log1p,
    logarithm,
    sigmoid,
    softplus,
    trigonometric,
)

__all__ = [
    "erf",
    "expm1",
    "hyperbolic",
    "inverse_hyperbolic",
    "inverse_trigonometric",
    "log1mexp",
    "log1p",
    "logarithm",
    "sigmoid",
    "softplus",
    "trigonometric",
]
