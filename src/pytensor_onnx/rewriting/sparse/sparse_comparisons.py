"""Compare sparse matrices where the result is dense: with dense ones, and for equality."""

import warnings
from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.sparse.math import (
    EqualSparseDense,
    EqualSparseSparse,
    GreaterEqualSparseDense,
    GreaterEqualSparseSparse,
    GreaterThanSparseDense,
    LessEqualSparseDense,
    LessEqualSparseSparse,
    LessThanSparseDense,
    NotEqualSparseDense,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.sparse.complex_entries import greater, less
from pytensor_onnx.rewriting.sparse.sparse_conversions import from_dense
from pytensor_onnx.rewriting.sparse.sparse_parts import (
    Compressed,
    checked_shape,
    rewrites,
)

Comparison = Callable[[TensorVariable, TensorVariable], TensorVariable]

_WITH_DENSE: dict[type[Op], Comparison] = {
    EqualSparseDense: pt.eq,
    NotEqualSparseDense: pt.neq,
    LessThanSparseDense: pt.lt,
    LessEqualSparseDense: pt.le,
    GreaterThanSparseDense: pt.gt,
    GreaterEqualSparseDense: pt.ge,
}
# True for two zeros: SciPy returns the opposite of the other comparison, also for NaN.
_OPPOSITES: dict[type[Op], Comparison] = {
    EqualSparseSparse: pt.neq,
    LessEqualSparseSparse: greater,
    GreaterEqualSparseSparse: less,
}


@rewrites(*_WITH_DENSE)
def compare_with_dense(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Compare the elements of a sparse and a dense matrix."""
    x, (dense,) = Compressed.of(node.inputs[0], inputs[0]), inputs[1]
    result = _WITH_DENSE[type(op)](x.dense(), checked_shape(dense, x))
    return [[pt.cast(result, "uint8")]]


@rewrites(*_OPPOSITES)
def compare_all_elements(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Compare all elements, with a warning: zeros are equal, so that most results are stored."""
    x, y = (Compressed.of(v, t) for v, t in zip(node.inputs, inputs, strict=True))
    sizes = " x ".join("?" if n is None else str(n) for n in node.inputs[0].type.shape)
    warnings.warn(
        f"{node.inputs[0]} is made dense ({sizes}) for {type(op).__name__}, which is true for two "
        "zeros: the opposite comparison has entries for few elements",
        UserWarning,
        stacklevel=2,
    )
    opposite = _OPPOSITES[type(op)](x.dense(), checked_shape(y.dense(), x))
    result = pt.cast(~opposite, "uint8")
    return [from_dense(result, node.outputs[0].type.format).tensors]
