"""Sort complex numbers and find their extremes, by the real part and then the imaginary one."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.graph.basic import Apply
from pytensor.tensor.math import Argmax, Max, Min
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.complex_arithmetic import each
from pytensor_onnx.rewriting.complex.complex_parts import ENCODING, Parts, joined, parts_of
from pytensor_onnx.rewriting.complex.complex_reductions import reduced_last


@ENCODING.rewrites(SortOp)
def sort(op: SortOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the numbers at the positions of `argsort`."""
    z = parts_of(inputs[0][0])
    return [[joined(taken(z, ascending(z, op.axis), op.axis))]]


@ENCODING.rewrites(ArgSortOp)
def argsort(op: ArgSortOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the positions of the numbers in ascending order, stable for equal numbers."""
    return [[ascending(parts_of(inputs[0][0]), op.axis)]]


@ENCODING.rewrites(Max, Min)
def extreme(op: Max | Min, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the first extreme number along axes."""
    z = parts_of(reduced_last(inputs[0][0], op.axis))
    if op.initial:
        z = _with_first(z, op.scalar_op.identity)
    position = _first_extreme(z, type(op)([-1]))
    return [[joined(taken(z, position[..., None], -1)[..., 0])]]


@ENCODING.rewrites(Argmax)
def argmax(op: Argmax, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the position of the first largest number along axes.

    The maxima of parts have an initial value, so that the position of none is the error.
    """
    z = parts_of(reduced_last(inputs[0][0], op.axis))
    return [[_first_extreme(z, Max([-1], initial=True))]]


def ascending(z: Parts, axis: int) -> TensorVariable:
    """Return positions in ascending order; NaN imaginary parts are last, but for NaN real parts.

    Stable sorts by the least important key first are a sort by all keys.
    """
    order = pt.argsort(z.imag, axis=axis, stable=True)
    order = _sorted_further(order, z.real, axis)
    is_real_nan, is_imag_nan = pt.isnan(z.real), pt.isnan(z.imag)
    group = pt.switch(is_real_nan, np.int32(2), pt.cast(is_imag_nan, "int32"))
    return ifelse(pt.any(is_imag_nan), _sorted_further(order, group, axis), order)


def taken(z: Parts, positions: TensorVariable, axis: int) -> Parts:
    """Return the numbers at positions along an axis."""
    return each(lambda part: pt.take_along_axis(part, positions, axis), z)


def _sorted_further(order: TensorVariable, key: TensorVariable, axis: int) -> TensorVariable:
    keys = pt.take_along_axis(key, order, axis)
    return pt.take_along_axis(order, pt.argsort(keys, axis=axis, stable=True), axis)


def _first_extreme(z: Parts, reduction: Max | Min) -> TensorVariable:
    """Return the position of the first NaN along the last axis, or of the first extreme number."""
    is_nan = pt.isnan(z.real) | pt.isnan(z.imag)
    worst = pt.constant(reduction.scalar_op.identity, dtype=z.real.type.dtype)
    is_candidate = ~is_nan
    for part in z:
        known = pt.switch(is_candidate, part, worst)
        is_candidate = is_candidate & pt.eq(known, reduction(known)[..., None])
    score = pt.switch(is_nan, np.int32(2), pt.cast(is_candidate, "int32"))
    return pt.argmax(score, axis=-1)


def _with_first(z: Parts, number: float) -> Parts:
    """Return numbers after a real one along the last axis."""
    *batch, _ = z.real.shape
    first = Parts(*(pt.full((*batch, 1), x, z.real.type.dtype) for x in (number, 0.0)))
    return each(lambda x, y: pt.concatenate([x, y], axis=-1), first, z)
