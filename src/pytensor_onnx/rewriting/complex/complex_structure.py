"""Move complex numbers by the Ops that move real ones: shapes, indices, joins, copies."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ExtractDiag,
    Join,
    MakeVector,
    Nonzero,
    PermuteRowElements,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import FillDiagonal, FillDiagonalOffset, Repeat
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.elementwise import ChooseFrom
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    known_parts,
    operand,
    parts_of,
    real_dtype,
)

# Ops that count axes from the first, with the operands that are values and not positions. They
# leave a last axis alone.
_LEADING: dict[type[Op], slice] = {
    Subtensor: slice(1),
    AdvancedSubtensor: slice(1),
    IncSubtensor: slice(2),
    AdvancedIncSubtensor: slice(2),
    Join: slice(None),
    JoinDims: slice(1),
    Split: slice(1),
    SplitDims: slice(1),
}
_OTHER: dict[type[Op], slice] = {
    ChooseFrom: slice(1, None),
    ExtractDiag: slice(1),
    FillDiagonal: slice(2),
    FillDiagonalOffset: slice(2),
    PermuteRowElements: slice(1),
    Repeat: slice(1),
}
# Those whose sizes differ from batch to batch, as far as PyTensor knows.
_BATCHED: dict[type[Op], slice] = {
    Alloc: slice(1),
    MakeVector: slice(None),
    Reshape: slice(1),
    SpecifyShape: slice(1),
}


@ENCODING.rewrites(*_LEADING)
def move_pairs(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Move pairs by the Op itself, or each part where the parts are known."""
    values = values_of(op)
    assert values is not None
    if not any(map(is_complex, node.outputs)):
        return _move_real(op, node, inputs)
    if known_parts(inputs[0][0]) is not None:
        return by_part(op, node, inputs, values)
    arguments = [tensors[0] for tensors in inputs]
    dtype = real_dtype(*node.outputs)
    for i in range(*values.indices(len(arguments))):
        variable = node.inputs[i]
        if is_complex(variable):
            arguments[i] = pt.cast(arguments[i], dtype)
        else:
            real, imag = operand(variable, inputs[i], dtype)
            arguments[i] = joined(Parts(real, pt.zeros_like(real) + imag))
    return [[pairs] for pairs in op.make_node(*arguments).outputs]


def _move_real(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Set the real parts of numbers in an array that is real, as PyTensor does."""
    arguments = [
        parts_of(tensors[0]).real if is_complex(variable) else tensors[0]
        for variable, tensors in zip(node.inputs, inputs, strict=True)
    ]
    return [[x] for x in op.make_node(*arguments).outputs]


@ENCODING.rewrites(*_OTHER)
def move_parts(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Move the real and the imaginary parts by the Op itself."""
    values = values_of(op)
    assert values is not None
    return by_part(op, node, inputs, values)


@ENCODING.rewrites(DimShuffle)
def shuffle(op: DimShuffle, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs with their axes in another order."""
    if known_parts(inputs[0][0]) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[inputs[0][0].dimshuffle(*op.new_order, node.inputs[0].type.ndim)]]


@ENCODING.rewrites(Reshape)
def reshape(op: Reshape, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs in another shape; a size of -1 stands for the remaining numbers."""
    (pairs,), (sizes,) = inputs
    if known_parts(pairs) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[pairs.reshape((*(sizes[i] for i in range(op.ndim)), 2), ndim=op.ndim + 1)]]


@ENCODING.rewrites(Alloc)
def allocate(op: Alloc, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs in the shape."""
    (pairs,), *sizes = inputs
    if known_parts(pairs) is not None:
        return by_part(op, node, inputs, slice(1))
    return [[pt.alloc(pairs, *(size for (size,) in sizes), 2)]]


@ENCODING.rewrites(AllocEmpty)
def allocate_empty(op: AllocEmpty, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs that have no values yet."""
    return [[AllocEmpty(REAL[op.dtype])(*(size for (size,) in inputs), 2)]]


@ENCODING.rewrites(SpecifyShape)
def specify_shape(op: SpecifyShape, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return pairs whose sizes are known."""
    (pairs,), *sizes = inputs
    return [[pt.specify_shape(pairs, [*(size for (size,) in sizes), 2])]]


@ENCODING.rewrites(MakeVector)
def make_vector(op: MakeVector, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs of single numbers."""
    dtype = REAL[op.dtype]
    parts = [operand(v, x, dtype) for v, x in zip(node.inputs, inputs, strict=True)]
    return [[joined(Parts(*(MakeVector(dtype)(*part) for part in zip(*parts, strict=True))))]]


@ENCODING.rewrites(Shape, Shape_i)
def shape(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return sizes of the real part."""
    return [[op(parts_of(inputs[0][0]).real)]]


@ENCODING.rewrites(Nonzero)
def nonzero(op: Nonzero, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the positions of numbers with a part that is not zero."""
    real, imag = parts_of(inputs[0][0])
    return [[x] for x in op.make_node(pt.neq(real, 0) | pt.neq(imag, 0)).outputs]


@ENCODING.rewrites(TensorFromScalar, ScalarFromTensor)
def same_pairs(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the pairs; a scalar type has a tensor of pairs, too."""
    return [inputs[0]]


def values_of(op: Op, *, in_batch: bool = False) -> slice | None:
    """Return the operands whose elements an Op moves, or None if it does more than move them."""
    kinds = {**_LEADING, **_OTHER, **(_BATCHED if in_batch else {})}
    return next((kinds[kind] for kind in type(op).__mro__ if kind in kinds), None)


def by_part(
    op: Op, node: Apply, inputs: Sequence[Tensors], values: slice
) -> list[Sequence[Variable]]:
    """Apply an Op to the real and to the imaginary parts of the operands that are values."""
    dtype = real_dtype(*node.outputs)
    sides: list[list[TensorVariable]] = [[tensors[0] for tensors in inputs] for _ in range(2)]
    for i in range(*values.indices(len(inputs))):
        real, imag = operand(node.inputs[i], inputs[i], dtype)
        if not is_complex(node.inputs[i]):
            imag = pt.zeros_like(real)
        sides[0][i], sides[1][i] = real, imag
    results = [op.make_node(*side).outputs for side in sides]
    return [[joined(Parts(*parts))] for parts in zip(*results, strict=True)]
