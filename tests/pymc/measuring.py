"""Compare the densities of distributions in mode ONNX with PyMC's in Python."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.gradient import grad
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.variable import TensorVariable

import pytensor_onnx  # noqa: F401  (registers the mode)
from tests.pymc.distributions import Case

KINDS = ("logp", "gradient", "logcdf", "icdf")

# The rewrites of mode NUMBA, without which some densities are -inf in their tails.
REFERENCE = Mode(
    "py",
    RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "inplace", "BlasOpt"]),
)


class Graphs:
    """What PyMC defines for a case, with its inputs and their values.

    Attributes
    ----------
    outputs
        Graphs by kind and name.
    missing
        Reasons, for the kinds that PyMC does not define.
    """

    def __init__(self, case: Case) -> None:
        self.inputs = {name: _input(name, v) for name, v in case.parameters.items()}
        rv = case.make(**self.inputs)
        value = _input("value", case.points.astype(rv.dtype))
        self.values = [case.points.astype(rv.dtype), *case.parameters.values()]
        self.outputs: dict[tuple[str, str], Variable] = {}
        self.missing: dict[str, str] = {}
        arguments = [v for v in (value, *self.inputs.values()) if v.type.dtype == "float64"]
        self._add("logp", pm.logp(rv, value), "gradient", arguments)
        if case.has_cdf:
            self._add_distribution(case, rv, value, arguments)
        self.inputs = {"value": value, **self.inputs}

    def _add_distribution(
        self, case: Case, rv: TensorVariable, value: Variable, arguments: Sequence[Variable]
    ) -> None:
        try:
            self._add("logcdf", pm.logcdf(rv, value), "logcdf", arguments)
        except (NotImplementedError, TypeError) as error:
            self.missing["logcdf"] = str(error)
        levels = np.broadcast_to(np.resize(case.levels, case.points.shape[-1:]), case.points.shape)
        try:
            self.outputs["icdf", ""] = pm.icdf(rv, pt.as_tensor(levels))
        except NotImplementedError as error:
            self.missing["icdf"] = str(error)

    def _add(self, kind: str, term: Variable, kind_of_gradients: str, wrt: list[Variable]) -> None:
        self.outputs[kind, ""] = term
        for variable in wrt:
            try:
                gradient = grad(term.sum(), variable, disconnected_inputs="ignore")
            except NotImplementedError as error:
                self.missing[f"{kind_of_gradients} by {variable.name}"] = str(error)
            else:
                self.outputs[kind_of_gradients, str(variable.name)] = gradient


def _input(name: str, value: np.ndarray) -> TensorVariable:
    return pt.tensor(
        name, dtype=value.dtype, shape=tuple(1 if n == 1 else None for n in value.shape)
    )


def run(
    graphs: Sequence[Graphs],
) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Return for each of several graphs the results in mode ONNX and in Python.

    All of them are one function, whose conversion and session they share.
    """
    inputs = [v for g in graphs for v in g.inputs.values()]
    outputs = [v for g in graphs for v in g.outputs.values()]
    values = [v for g in graphs for v in g.values]
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        function = pytensor.function(inputs, outputs, mode=REFERENCE, on_unused_input="ignore")
        expected = iter(function(*values))
    function = pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    found = iter(function(*values))
    return [
        ([next(found) for _ in g.outputs], [np.asarray(next(expected)) for _ in g.outputs])
        for g in graphs
    ]


def largest_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest relative error; infinite where not both are finite, or both NaN.

    Errors of numbers below one in magnitude are absolute ones below 1e-3: a sum of terms that
    cancel has the rounding of the terms.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.inf
    with np.errstate(all="ignore"):
        error = np.abs(found - expected) / np.maximum(np.abs(expected), 1e-3)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    error = np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))
    return float(error.max(initial=0.0))
