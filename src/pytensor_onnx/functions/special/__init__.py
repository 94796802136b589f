"""Special and elementary functions, from the operators that every ONNX runtime has.

Importing the package fills the registry. The accuracy of each function is measured, by region, in
``docs/accuracy.md``; its docstring says where the error passes 4 units in the last place.
"""

from pytensor_onnx.functions.special import (
    bessel,
    betainc,
    erf,
    expm1,
    gamma,
    gammainc,
    gammaincinv,
    gammaln,
    hyperbolic,
    inverse_erf,
    inverse_hyperbolic,
    inverse_trigonometric,
    log1mexp,
    log1p,
    logarithm,
    modified_bessel,
    modified_bessel_order,
    owens_t,
    polygamma,
    portable,
    psi,
    sigmoid,
    softplus,
    trigonometric,
)

__all__ = [
    "bessel",
    "betainc",
    "erf",
    "expm1",
    "gamma",
    "gammainc",
    "gammaincinv",
    "gammaln",
    "hyperbolic",
    "inverse_erf",
    "inverse_hyperbolic",
    "inverse_trigonometric",
    "log1mexp",
    "log1p",
    "logarithm",
    "modified_bessel",
    "modified_bessel_order",
    "owens_t",
    "polygamma",
    "portable",
    "psi",
    "sigmoid",
    "softplus",
    "trigonometric",
]
