"""What this package uses of nutpie beyond its public interface: the class of its own models.

`nutpie.compiled_pyfunc.from_pyfunc` takes functions of Python only. The class of models that
`nutpie.compile_pymc_model` returns takes addresses of C functions, but has no documented
constructor. Where it is another one than here, models are made of functions of Python.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import nutpie
from nutpie.compile_pymc import CompiledPyMCModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VERSIONS = ("0.16.",)
"""Versions whose signatures of C functions are known."""
_FIELDS = {
    *("dims", "reparameterized_names", "compiled_logp_func", "compiled_expand_func"),
    *("initial_point_func", "shared_data", "shared_var_keys", "user_data", "n_expanded"),
    *("shape_info", "logp_func", "expand_func", "_n_dim", "_shapes", "_coords"),
}


@dataclass(frozen=True)
class CFunction:
    """A C function."""

    address: int


def takes_c_functions() -> bool:
    """Return whether this version of nutpie has the class as it is known here."""
    needed = {x.name for x in fields(CompiledPyMCModel) if x.default is MISSING}
    known = {x.name for x in fields(CompiledPyMCModel)}
    return needed <= _FIELDS <= known and nutpie.__version__.startswith(_VERSIONS)


@dataclass(frozen=True)
class CFunctionModel(CompiledPyMCModel):
    """A model of nutpie whose density and variables are C functions.

    Attributes
    ----------
    kept
        Objects that the C functions need.
    change
        Function from values of data to a model with them.
    """

    kept: Any = None
    change: Any = None

    def with_data(self, **updates: Any) -> CFunctionModel:
        """Return a model with other data."""
        return self.change(**updates)


@dataclass(frozen=True)
class CFunctions:
    """The addresses of the C functions of a model.

    Attributes
    ----------
    density, expansion, user_data
        The C functions, and their last argument.
    kept
        Objects that the C functions need.
    """

    density: int
    expansion: int
    user_data: np.ndarray
    kept: Any


@dataclass(frozen=True)
class TraceVariables:
    """The point and the variables of a trace of nutpie.

    Attributes
    ----------
    size, starts
        Size of the point, and a function from a seed to a first point.
    shapes
        Shapes of all variables, in the order of the results.
    coords, dims, reparameterized_names
        As in a trace of nutpie.
    """

    size: int
    starts: Callable[[int | None], np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    coords: dict[str, Any]
    dims: dict[str, tuple[str, ...]]
    reparameterized_names: Sequence[str]


def c_function_model(
    functions: CFunctions, of: TraceVariables, change: Callable[..., CFunctionModel]
) -> CFunctionModel:
    """Return a model of C functions, and of a function from values of data to another model."""
    shapes = of.shapes
    bounds = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())])
    slices = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    return CFunctionModel(
        dims=of.dims,
        reparameterized_names=list(of.reparameterized_names),
        compiled_logp_func=CFunction(functions.density),
        compiled_expand_func=CFunction(functions.expansion),
        initial_point_func=of.starts,
        shared_data={},
        shared_var_keys={},
        user_data=functions.user_data,
        n_expanded=int(bounds[-1]),
        shape_info=(list(shapes), slices, list(shapes.values())),
        logp_func=None,
        expand_func=None,
        _n_dim=of.size,
        _shapes=shapes,
        _coords=of.coords,
        kept=functions.kept,
        change=change,
    )
