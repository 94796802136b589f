"""Power series that the Bessel functions of any order share."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate


def bessel_series(v: TensorVariable, z: TensorVariable, terms: int) -> TensorVariable:
    """Return the sum of ``z**k / (k! (v + 1) ... (v + k))``, over so many terms after the first.

    With ``z = x**2 / 4`` it belongs to the modified functions (DLMF 10.25.2), with ``-x**2 / 4`` to
    the others (DLMF 10.2.2).

    Examples
    --------
    >>> v, z = pt.vectors("v", "z")
    >>> float(bessel_series(v, z, 20).eval({v: [0.0], z: [0.25]})[0].round(12))
    1.266065877752
    """

    def add(
        k: TensorVariable,
        total: TensorVariable,
        term: TensorVariable,
        v: TensorVariable,
        z: TensorVariable,
    ) -> tuple[TensorVariable, TensorVariable]:
        term = term * (z / (k * (v + k)))
        return total + term, term

    start = pt.ones_like(z)
    numbers = pt.constant(np.arange(1.0, terms + 1))
    total, _ = iterate(add, [start, start], [v, z], sequences=[numbers], n_steps=terms)
    return total
