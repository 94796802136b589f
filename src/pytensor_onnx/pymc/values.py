"""The free variables of a PyMC model as arguments of its density."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

type Size = int | Variable


@dataclass(frozen=True)
class FreeValue:
    """A free variable of a model as an argument of the density.

    Attributes
    ----------
    name
        Name of the argument: that of the transformed value, such as ``sigma_log__``, or of the
        variable itself where the space is constrained or there is no transform.
    variable
        The argument in graphs of `ModelGraph`.
    rv
        The random variable of the model.
    transform
        Name of the transform between the two, empty without one.
    start
        Value at the initial point of the model.
    sizes
        Sizes of the axes: numbers, or graphs of the data on which they depend.
    """

    name: str
    variable: Variable
    rv: Variable
    transform: str
    start: np.ndarray
    sizes: tuple[Size, ...]

    @property
    def is_continuous(self) -> bool:
        """Whether the density has a derivative with respect to the value."""
        return self.start.dtype.kind == "f"

    @property
    def open_axes(self) -> list[int]:
        """The axes whose size depends on data."""
        return [axis for axis, n in enumerate(self.sizes) if not isinstance(n, int)]

    @property
    def size(self) -> Size:
        """Number of elements."""
        return prod(self.sizes)


def initial_point(model: pm.Model, constrained: bool) -> dict[Variable, np.ndarray]:
    """Return the initial value of each free variable, in one of the spaces."""
    make = model._make_initial_point(return_transformed=not constrained)
    values = make(0)
    found = {}
    for rv, value in zip(model.free_RVs, values.values(), strict=True):
        dtype = (rv if constrained else model.rvs_to_values[rv]).type.dtype
        found[rv] = np.asarray(value, dtype)
    return found
