"""Replace the Ops of PyMC that have a counterpart here, without importing PyMC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.functions.registry import define_late
from pytensor_onnx.functions.special.modified_bessel import i0e, i1e
from pytensor_onnx.rewriting import register_onnx
from pytensor_onnx.rules import part_of, rewrites_nodes

_MODULE = "pymc.distributions.dist_math"
_EXTRAPOLATED, _ZERO, _RAISES, _CONSTANT = range(4)
"""Extrapolation of SciPy's splines outside of their knots."""
_COUNTERPARTS = {"I0e": i0e, "I1e": i1e}

define_late("pytensor_onnx.pymc.random_variables", "pymc.")


@register_onnx
@rewrites_nodes(
    [Elemwise],
    name="replace_ops_of_pymc",
    family="special",
    purpose="conversion",
    identity="i0e(x), i1e(x) = ive(v, x), spline(x) = its polynomials, minibatch(x) = x",
    requires="an Op of PyMC",
    begins_at=("Elemwise", "SplineWrapper", "MinibatchRandomVariable"),
)
def replace_scalar_of_pymc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the exponentially scaled Bessel functions of PyMC."""
    op_type = type(node.op.scalar_op)
    if op_type.__module__ != _MODULE or op_type.__name__ not in _COUNTERPARTS:
        return None
    old = node.outputs[0]
    new = _COUNTERPARTS[op_type.__name__](*node.inputs)
    if new.type != old.type:
        return None
    new.name = old.name
    return [new]


@register_onnx
@part_of(replace_scalar_of_pymc.rule, None)
def write_out_spline_of_pymc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Write a spline of SciPy, such as an interpolated density, as its polynomials."""
    op = node.op
    if type(op).__name__ != "SplineWrapper" or type(op).__module__ != _MODULE:
        return None
    (x,) = node.inputs
    outside = getattr(op.spline, "ext", _RAISES)
    if outside == _RAISES or not x.type.dtype.startswith("float"):
        return None
    y = _piecewise(op.spline._eval_args, x, outside).astype(node.outputs[0].type.dtype)
    y.name = node.outputs[0].name
    return [y]


@register_onnx
@part_of(replace_scalar_of_pymc.rule, None)
def drop_weight_of_pymc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Drop PyMC's mark of a variable observed in minibatches, which is a weight of its density."""
    if type(node.op).__name__ != "MinibatchRandomVariable":
        return None
    return [node.inputs[0]] if type(node.op).__module__.startswith("pymc.") else None


def _piecewise(spline: Any, x: Variable, outside: int) -> Variable:
    """Return the value of a spline of knots, coefficients and degree."""
    from scipy.interpolate import PPoly  # type: ignore[import-untyped]

    pieces = PPoly.from_spline(spline)
    degree = spline[2]
    # The knots at both ends are repeated: between them are no intervals.
    knots = pieces.x[degree : len(pieces.x) - degree]
    coefficients = pieces.c[:, degree : pieces.c.shape[1] - degree]
    inside = pt.clip(x, knots[0], knots[-1]) if outside == _CONSTANT else x
    piece = pt.searchsorted(knots[1:-1], inside, side="right")
    step = inside - pt.constant(knots)[piece]
    value = pt.zeros_like(x)
    for row in coefficients:
        value = value * step + pt.constant(np.ascontiguousarray(row))[piece]
    if outside == _ZERO:
        value = pt.switch((x < knots[0]) | (x > knots[-1]), 0.0, value)
    return value
