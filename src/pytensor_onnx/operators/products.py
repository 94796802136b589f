"""Products of vectors and matrices."""

from collections.abc import Iterator, Sequence

from pytensor_onnx.operators.dims import Dim, Dims, broadcast, dims_of
from pytensor_onnx.operators.facts import Attributes, Operands, Operator


def _matrix_product(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of MatMul."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def _gemm(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Gemm."""
    a, b = dims_of(inputs[0]), dims_of(inputs[1])
    if not a or not b:
        return None
    return a[1 if attributes["transA"] else 0], b[0 if attributes["transB"] else 1]


def _equal_inner_sizes(
    inputs: Sequence[Dims | None], attributes: Attributes
) -> Iterator[tuple[Dim, Dim]]:
    a, b = inputs[:2]
    if a and b:
        yield a[-1], b[-2] if len(b) > 1 else b[-1]


def _equal_sizes_of_gemm(
    inputs: Sequence[Dims | None], attributes: Attributes
) -> Iterator[tuple[Dim, Dim]]:
    a, b = inputs[:2]
    if a and b:
        yield a[0 if attributes["transA"] else 1], b[1 if attributes["transB"] else 0]


OPERATORS: dict[str, Operator] = {
    "Gemm": Operator(shape=_gemm, equal=_equal_sizes_of_gemm),
    "MatMul": Operator(shape=_matrix_product, equal=_equal_inner_sizes),
}
