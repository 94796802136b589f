"""Rewrites of convolutions and Fourier transforms."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, graph_inputs, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.fft import IRFFTOp, RFFTOp
from pytensor.tensor.fourier import Fourier
from pytensor.tensor.rewriting.blockwise import blockwise_of
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.subtensor import IncSubtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.complex_arithmetic import conjugate
from pytensor_onnx.ops.signal import FourierTransform, FullConvolution
from pytensor_onnx.rewriting.complex.complex_elementwise import ENCODING, joined, operand
from pytensor_onnx.rules import part_of, rewrites_nodes

_NOT_EMPTY = CheckAndRaise(ValueError, "an array to convolve is empty")
_ONE_MODE = CheckAndRaise(ValueError, "a batch of convolutions has one mode")
_COVERED = CheckAndRaise(
    ValueError,
    "for mode 'valid', one array must be at least as large as the other in every dimension",
)


@rewrites_nodes(
    [Convolve1d, Convolve2d, blockwise_of(Convolve1d | Convolve2d)],
    family="signal",
    purpose="conversion",
    identity="convolve(x, y, 'valid') = part of convolve(x, y, 'full')",
)
def convolve_fully(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable] | None:
    """Convolve fully, and take the part where one array covers the other in mode ``valid``.

    Examples
    --------
    >>> from pytensor.tensor.signal import convolve1d
    >>> node = convolve1d(pt.vector("x"), pt.vector("y"), mode="full").owner
    >>> convolve_fully.transform(None, node)[0].owner.op
    Blockwise{FullConvolution{axes=1}, (n0),(k0)->(o0)}
    """
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    x, y, is_full = node.inputs
    if any(v.type.dtype.startswith("complex") for v in (x, y)):
        return None
    axes = op.ndim
    sizes = [(x.shape[axis], y.shape[axis]) for axis in range(-axes, 0)]
    x = _NOT_EMPTY(x, *(size > 0 for pair in sizes for size in pair))
    result = Blockwise(FullConvolution(axes))(x, y)
    known = get_underlying_scalar_constant_value(is_full, raise_not_constant=False)
    if not (isinstance(known, np.ndarray) and known):
        is_full = _common_mode(is_full) if isinstance(known, Variable) else pt.constant(known)
        covers = pt.all([n >= k for n, k in sizes]), pt.all([n <= k for n, k in sizes])
        result = _COVERED(result, is_full | covers[0] | covers[1])
        parts = [
            slice(
                pt.switch(is_full, 0, pt.minimum(n, k) - 1),
                pt.switch(is_full, n + k - 1, pt.maximum(n, k)),
            )
            for n, k in sizes
        ]
        result = result[(..., *parts)]
    return [node.outputs[0].type.filter_variable(result, allow_convert=True)]


def _common_mode(is_full: Variable) -> TensorVariable:
    """Return the mode of all signals of a batch, whose results have one shape."""
    if isinstance(is_full.type, ScalarType):
        return pt.tensor_from_scalar(is_full)
    if all(is_full.type.broadcastable):
        return is_full.squeeze()
    return _ONE_MODE(is_full.all(), pt.eq(is_full.any(), is_full.all()) | pt.eq(is_full.size, 0))


type Size = int | TensorVariable

_KEEP_SIZES = (Elemwise, DimShuffle, IncSubtensor)


@rewrites_nodes(
    [RFFTOp],
    name="transform_pairs",
    family="signal",
    purpose="conversion",
    identity="rfft(x) = half of fft(x, 0), irfft(z) = ifft(z and conj(z[1:-1]) reversed)",
    ensures="transforms of pairs along one axis",
    begins_at=("RFFTOp", "IRFFTOp"),
)
def transform_real(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable]:
    """Transform the last axis, keep the first half, and transform the axes before it.

    Examples
    --------
    >>> from pytensor.raise_op import CheckAndRaise
    from pytensor.tensor.fft import rfft_op
    >>> transform_real.transform(None, rfft_op(pt.matrix("x", shape=(3, 8))).owner)
    [Subtensor{..., :stop, :}.0]
    """
    x, lengths = node.inputs
    rank = x.type.ndim
    sizes = [_size(lengths[i]) for i in range(rank - 1)]
    x = _checked(x, sizes)
    x = _fitted(x, rank - 1, sizes[-1])
    pairs = _transformed(pt.stack([x, pt.zeros_like(x)], axis=-1), rank - 1, sizes[-1])
    pairs = pairs[..., : sizes[-1] // 2 + 1, :]
    for axis, size in zip(range(1, rank - 1), sizes, strict=False):
        pairs = _transformed(_fitted(pairs, axis, size), axis, size)
    return [_as_output(node, pairs)]


@part_of(transform_real.rule, [IRFFTOp])
def transform_to_real(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable]:
    """Transform the axes before the last, and the last with the conjugate of its first half."""
    pairs, lengths = node.inputs
    last = pairs.type.ndim - 2
    sizes = [_size(lengths[i]) for i in range(last)]
    pairs = _checked(pairs, sizes)
    for axis, size in zip(range(1, last), sizes, strict=False):
        pairs = _transformed(_fitted(pairs, axis, size), axis, size, inverse=True)
    n = sizes[-1]
    half = _fitted(pairs, last, n // 2 + 1)
    mirrored = conjugate(half[..., 1 : (n + 1) // 2, :][..., ::-1, :])
    whole = pt.concatenate([half, mirrored], axis=last)
    return [_as_output(node, _transformed(whole, last, n, inverse=True)[..., 0])]


@ENCODING.rewrites(Fourier)
def transform_complex(op: Fourier, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Transform one axis, or return None if the axis is known only at run time."""
    axis = _number(inputs[2][0])
    if axis is None:
        return None
    size = _size(inputs[1][0])
    parts = operand(node.inputs[0], inputs[0], "float64")
    pairs = joined(parts) if parts.real.type.ndim == parts.imag.type.ndim else None
    if pairs is None:
        pairs = pt.stack([parts.real, pt.zeros_like(parts.real)], axis=-1)
    pairs = _checked(pairs, [size])
    return [[_transformed(_fitted(pairs, axis, size), axis, size)]]


def _checked(x: TensorVariable, sizes: Sequence[Size]) -> TensorVariable:
    """Return an array if all sizes are positive, else fail as NumPy does."""
    unknown = [size for size in sizes if not isinstance(size, int)]
    check = CheckAndRaise(ValueError, "Invalid number of FFT data points: it should be positive.")
    return check(x, *(pt.gt(size, 0) for size in unknown)) if unknown else x


def _size(length: TensorVariable) -> Size:
    """Return a length as a number if it follows from known sizes and is positive."""
    number = _number(length)
    return length if number is None or number < 1 else number


def _number(length: TensorVariable) -> int | None:
    """Return an integer that follows from static sizes, otherwise None."""
    known: dict[Variable, Variable] = {}
    shapes = [v for v in ancestors([length]) if v.owner and isinstance(v.owner.op, Shape | Shape_i)]
    for shape in shapes:
        sizes = [
            pt.lscalar() if size is None else pt.constant(size, dtype="int64")
            for size in _retyped(shape.owner.inputs[0]).type.shape
        ]
        is_one = isinstance(shape.owner.op, Shape_i)
        known[shape] = sizes[shape.owner.op.i] if is_one else pt.stack(sizes)
    (alone,) = clone_replace([length], known)
    if any(not isinstance(v, Constant) and v.type.ndim for v in graph_inputs([alone])):
        return None
    alone = rewrite_graph(alone, include=("canonicalize",), clone=False)
    return int(alone.data) if isinstance(alone, Constant) else None


def _retyped(variable: Variable) -> Variable:
    """Infer the static sizes of a variable again from the present sizes of its operands.

    The new spectrum of a transform has static sizes; products of the old spectrum have none.
    """
    found = ancestors([variable])
    ends = {v for v in found if v.owner and not isinstance(v.owner.op, _KEEP_SIZES)}
    types: dict[Variable, Variable] = {}
    for node in toposort([variable], blockers=ends):
        inputs = [types.get(v, v) for v in node.inputs]
        types.update(zip(node.outputs, node.op.make_node(*inputs).outputs, strict=True))
    return types.get(variable, variable)


def _fitted(x: TensorVariable, axis: int, size: Size) -> TensorVariable:
    """Return an array with an axis cut, or continued by zeros, to a size."""
    known = x.type.shape[axis]
    if known is not None and known == size:
        return x
    x = x[(slice(None),) * axis + (slice(size),)]
    if isinstance(size, int) and known is not None and known > size:
        return x
    missing = [x.shape[i] for i in range(x.type.ndim)]
    missing[axis] = size - missing[axis]
    fitted = pt.concatenate([x, pt.zeros(missing, dtype=x.type.dtype)], axis=axis)
    return pt.specify_shape(fitted, _only(axis, size, x.type.ndim))


def _only(axis: int, size: Size, rank: int) -> list[int | None]:
    return [size if i == axis and isinstance(size, int) else None for i in range(rank)]


def _transformed(
    pairs: TensorVariable, axis: int, size: Size, inverse: bool = False
) -> TensorVariable:
    """Return the transform of pairs along an axis."""
    transform = FourierTransform(size if isinstance(size, int) else None, inverse)
    before_last = pairs.type.ndim - 2
    if axis == before_last:
        return transform(pairs)
    return transform(pairs.swapaxes(axis, before_last)).swapaxes(axis, before_last)


def _as_output(node: Apply, result: TensorVariable) -> TensorVariable:
    return node.outputs[0].type.filter_variable(result, allow_convert=True)
