"""Effects of rounding on values: where it happens, its bounds, and alternative roundings."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as ps
from pytensor.tensor import basic, blas, extra_ops, math, subtensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.sort import SortOp

PRECISIONS = ("float16", "float32", "float64")
TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "float16": 5e-3}
"""Relative tolerance where a value is computed well, by the narrowest float that goes into it."""

LARGEST_DEVIATION = {"float64": 1e-5, "float32": 1e-3, "float16": 2e-2}
"""How far rounding may move a value that is compared; graphs where it does more are not made."""

MARGIN = 20
"""How often that is excused in an implementation: it may round more than once where NumPy does."""

_GRID = {"float64": (2.0**-8, 2.0**40), "float32": (2.0**-6, 2.0**14), "float16": (0.25, 2.0**6)}

# Results that are operands or zeros and ones: nothing is rounded.
SELECTING: tuple[type[Op], ...] = (
    *(ps.Identity, ps.Neg, ps.Abs, ps.Maximum, ps.Minimum, ps.Switch, ps.Second, ps.Clip),
    *(ps.Conj, ps.Real, ps.Imag, ps.Sign, ps.UnaryBitOp, ps.BinaryBitOp, ps.LogicalComparison),
    *(ps.IsNan, ps.IsInf),
    *(DimShuffle, Reshape, SpecifyShape, JoinDims, SplitDims),
    *(basic.Join, basic.Split, basic.Alloc, basic.AllocDiag, basic.ExtractDiag, basic.Eye),
    *(basic.MakeVector, basic.ScalarFromTensor, basic.TensorFromScalar, basic.Choose),
    *(basic.PermuteRowElements, subtensor.Subtensor, subtensor.AdvancedSubtensor, SortOp),
    *(extra_ops.Repeat, extra_ops.Unique, extra_ops.FillDiagonal, extra_ops.FillDiagonalOffset),
    *(CheckAndRaise, extra_ops.CpuContiguous),
)
# Results that are exact where they and all between are small multiples of a power of two.
ARITHMETIC: tuple[type[Op], ...] = (
    *(ps.Add, ps.Sub, ps.Mul, ps.Sqr, ps.Mod, ps.IntDiv, ps.Floor, ps.Ceil, ps.Trunc, ps.Cast),
    *(ps.RoundHalfToEven, ps.RoundHalfAwayFromZero, math.MulWithoutZeros),
    *(math.Dot, blas.BatchedDot, extra_ops.CumOp, basic.ARange),
    *(subtensor.IncSubtensor, subtensor.AdvancedIncSubtensor),
)


def rounds(op: Op) -> bool:
    """Return whether an Op computes floats that it has to round."""
    return not issubclass(type(_core(op)), SELECTING)


def loses_signs(op: Op) -> bool:
    """Return whether an Op computes anything, with zeros of either sign.

    docs/project/limits.md names them.
    """
    return isinstance(op, Elemwise | CAReduce) or rounds(op)


def accumulates(node: Apply) -> bool:
    """Return whether a node adds floats up, in an order that is open."""
    is_sum = isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, ps.Add)
    others = (math.Dot, blas.BatchedDot, extra_ops.CumOp)
    takes_floats = getattr(node.inputs[0].type, "dtype", "").startswith("float")
    return takes_floats and (is_sum or isinstance(_core(node.op), others))


def _core(op: Op) -> Op:
    if isinstance(op, Elemwise | CAReduce):
        return op.scalar_op
    return op.core_op if isinstance(op, Blockwise) else op


def is_exact(op: Op, variable: Variable, value: Any) -> bool:
    """Return whether an Op computes a value of exact operands to the last bit."""
    dtype = getattr(variable.type, "dtype", "")
    if not dtype.startswith("float") or not rounds(op):
        return True
    if not issubclass(type(_core(op)), ARITHMETIC):
        return False
    return is_on_grid(value)


def is_on_grid(value: Any) -> bool:
    """Return whether floats are small multiples of a power of two, which are added exactly."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return True
    step, largest = _GRID[str(array.dtype)]
    finite = array[np.isfinite(array)].astype("float64")
    return bool(np.all(np.abs(finite) < largest) and np.all(finite % step == 0))


def moved(value: Any, scale: float, rng: np.random.Generator) -> Any:
    """Return floats rounded another way; other values as they are."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    factor = 1 + 2 * scale * rng.uniform(-1, 1, size=array.shape)
    return np.asarray(array * factor, dtype=array.dtype)


def coarse(value: Any, scale: float) -> Any:
    """Return floats rounded to three bits less, as to one where they are nearly one.

    Implementations differ where one of them rounds to a number that is special to the next
    operation: ``1 / (1 - tanh(x))`` is infinite where the tangent is rounded to one.

    Examples
    --------
    >>> float(coarse(1 - 2**-52, 2**-52))
    1.0
    """
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    mantissa, exponent = np.frexp(array.astype("float64"))
    step = 4 * scale
    return np.asarray(np.ldexp(np.rint(mantissa / step) * step, exponent), dtype=array.dtype)


def with_any_signs(value: Any, rng: np.random.Generator) -> Any:
    """Return floats whose zeros have signs by chance; a value without zeros itself."""
    array = np.asarray(value)
    zeros = array == 0
    if array.dtype.kind != "f" or not zeros.any():
        return value
    signs = rng.choice(np.array([-0.0, 0.0], array.dtype), size=array.shape)
    return np.where(zeros, signs, array)
