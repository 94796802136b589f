"""The same operations in float64, for the values that float32 and float16 round."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty, MakeVector, cast
from pytensor.tensor.elemwise import CAReduce, Elemwise

from tests.fuzz.drawing import ReferenceDraw

NARROW = ("float16", "float32")


def is_narrow(variable: Variable) -> bool:
    """Return whether a variable holds floats that are narrower than float64."""
    return getattr(variable.type, "dtype", "") in NARROW


def widened(node: Apply) -> Apply:
    """Return a node that computes in float64 what another computes in float32 or float16.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x", dtype="float32")
    >>> widened(pt.exp(x).owner).outputs[0].type.dtype
    'float64'
    """
    return _applied(node, [_wide(v) for v in node.inputs])


def within_range(value: Any, dtype: str) -> Any:
    """Return floats, infinite or zero where a narrower dtype has no numbers so large or small."""
    limits = np.finfo(dtype)
    value = np.asarray(value, dtype="float64")
    value = np.where(np.abs(value) > float(limits.max), np.copysign(np.inf, value), value)
    smallest = float(limits.smallest_subnormal) / 2
    return np.where(np.abs(value) < smallest, np.copysign(0.0, value), value)


def _wide(variable: Variable) -> Variable:
    """Return a variable of the same kind in float64, or in the other's dtype."""
    if isinstance(variable, Constant) and not is_narrow(variable):
        return variable
    return (variable.type.clone(dtype="float64") if is_narrow(variable) else variable.type)()


def _applied(node: Apply, inputs: Sequence[Variable]) -> Apply:
    """Return an Op in float64, applied to other inputs."""
    if isinstance(node.op, Scan):
        return _loop(node, inputs)
    inputs = list(inputs)
    if isinstance(node.op, Elemwise) and is_narrow(node.outputs[0]):
        # Integers would be divided in the narrow float that holds them.
        inputs = [cast(v, "float64") if v.type.dtype in _SMALL_INTEGERS else v for v in inputs]
    return _wide_op(node).make_node(*inputs)


_SMALL_INTEGERS = ("int8", "uint8", "int16", "uint16")


def _wide_op(node: Apply) -> Op:
    op = node.op
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, ps.Cast) and is_narrow(node.out):
        return Elemwise(ps.convert_to_float64)
    if isinstance(op, CAReduce):
        dtypes = (getattr(op, "dtype", None), getattr(op, "acc_dtype", None))
        wide = [None if dtype is None else _wide_dtype(dtype) for dtype in dtypes]
        return op.clone(dtype=wide[0], acc_dtype=wide[1]) if any(wide) else op
    if isinstance(op, ReferenceDraw) and op.out_dtype in NARROW:
        return op.in_float64()
    if isinstance(op, MakeVector | AllocEmpty) and op.dtype in NARROW:
        return type(op)("float64")
    return op


def _wide_dtype(dtype: str) -> str:
    return "float64" if dtype in NARROW else dtype


def _loop(node: Apply, inputs: Sequence[Variable]) -> Apply:
    inner = node.op.fgraph.unfreeze()
    known = {v: _wide(v) for v in inner.inputs}
    for step in inner.toposort():
        operands = [v if isinstance(v, Constant) else known[v] for v in step.inputs]
        known.update(zip(step.outputs, _applied(step, operands).outputs, strict=True))
    outputs = [known.get(v, v) for v in inner.outputs]
    outputs = [cast(v, "float64") if is_narrow(v) else v for v in outputs]
    given = [known[v] for v in inner.inputs]
    return Scan(given, outputs, node.op.info, mode=node.op.mode).make_node(*inputs)
