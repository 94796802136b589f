"""What this package uses of nutpie beyond its public interface: the class of its own models.

`nutpie.compiled_pyfunc.from_pyfunc` takes functions of Python only. The class of models that
`nutpie.compile_pymc_model` returns takes addresses of C functions, but has no documented
constructor. Where it is another one than here, models are made of functions of Python.

Both classes have subclasses here, whose models are made again from their source when they are
copied or loaded, as addresses and the objects of nutpie are valid in one process only.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import nutpie
from nutpie.compile_pymc import CompiledPyMCModel
from nutpie.compiled_pyfunc import PyFuncModel, from_pyfunc

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


class Source(Protocol):
    """The parts from which a model of nutpie is made; they can be pickled."""

    def build(self) -> Any:
        """Return the model."""

    def with_data(self, updates: dict[str, Any]) -> Self:
        """Return the source of the model with other data."""

    def check_starts(self) -> None:
        """Raise an error with a reason if the density is finite at none of many first points."""


def _build(source: Source, settings: Any) -> Any:
    model = source.build()
    return model if settings is None else model.with_transform_adapt(**settings)


class _Rebuilt:
    """Methods of a model of nutpie that is made again from its source."""

    source: Any
    _transform_adapt_args: Any

    def with_data(self, **updates: Any) -> Any:
        """Return a model with other data."""
        return _build(self.source.with_data(updates), self._transform_adapt_args)

    def __reduce__(self) -> Any:
        return _build, (self.source, self._transform_adapt_args)

    def _make_model(self, init_mean: Any) -> Any:
        self.source.check_starts()
        return super()._make_model(init_mean)  # type: ignore[misc]


@dataclass(frozen=True)
class CFunctionModel(_Rebuilt, CompiledPyMCModel):
    """A model of nutpie whose density and variables are C functions.

    Attributes
    ----------
    kept
        Objects that the C functions need.
    source
        What the model is made of.
    """

    kept: Any = None
    source: Any = None


@dataclass(frozen=True)
class PythonFunctionModel(_Rebuilt, PyFuncModel):
    """A model of nutpie whose density and variables are functions of Python."""

    source: Any = None


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


def c_function_model(functions: CFunctions, of: TraceVariables, source: Source) -> CFunctionModel:
    """Return a model of C functions."""
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
        source=source,
    )


def python_function_model(
    density: Callable, expand: Callable, of: TraceVariables, data: dict[str, Any], source: Source
) -> PythonFunctionModel:
    """Return a model of functions of Python: of the log-density, and of all variables."""
    model = from_pyfunc(
        ndim=of.size,
        make_logp_fn=lambda: density,
        make_expand_fn=lambda *seeds: expand,
        expanded_dtypes=[np.dtype("float64")] * len(of.shapes),
        expanded_shapes=list(of.shapes.values()),
        expanded_names=list(of.shapes),
        shared_data=data,
        make_initial_point_fn=of.starts,
        coords=of.coords,
        dims=of.dims,
        reparameterized_names=list(of.reparameterized_names),
    )
    given = {x.name: getattr(model, x.name) for x in fields(model)}
    return PythonFunctionModel(**given, source=source)
