"""Multiply a column by a short row, or by a matrix whose rows are summed, as matrices.

The first layer of a network of one input is such a product, and so is the gradient of its weights.
PyTensor's rewrites before a gradient write them with an elementwise product.
"""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Sum, add, dot, mul

from pytensor_onnx.rewriting.guards.thin_products import SHORT, is_thin

COLUMN, ROW, MATRIX = (False, True), (True, False), (False, False)
"""Patterns of axes of size one."""
MOST_TERMS = 1024
"""Terms of a float32 sum that a product of matrices adds as accurately; others add in float64."""


@node_rewriter([add])
def add_to_thin_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace a column times a row plus a bias by a matrix product plus the bias.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x, w, b = pt.col("x"), pt.tensor("w", shape=(1, 8)), pt.vector("b")
    >>> [node.op_type for node in export_onnx([x, w, b], x * w + b).model.graph]
    ['Gemm']
    """
    for i, product in enumerate(node.inputs):
        others = [*node.inputs[:i], *node.inputs[i + 1 :]]
        operands = _operands(fgraph, product)
        columns = [x for x in operands if x.type.broadcastable == COLUMN]
        rows = [x for x in operands if x.type.broadcastable == ROW]
        if (
            len(operands) == len(columns) + len(rows) == 2
            and columns
            and rows
            and is_thin(columns[0], rows[0])
            and all(x.type.broadcastable[0] for x in others)
        ):
            result = add(dot(columns[0], rows[0]), *others)
            copy_stack_trace(node.outputs[0], result)
            return [result]
    return None


@node_rewriter([Sum])
def sum_thin_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the sum over the rows of a column times a matrix by a matrix product.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x, d = pt.col("x"), pt.tensor("d", shape=(None, 8))
    >>> program = export_onnx([x, d], (x * d).sum(axis=0, keepdims=True))
    >>> [node.op_type for node in program.model.graph]
    ['Gemm']
    """
    operands = _operands(fgraph, node.inputs[0])
    column = next((x for x in operands if x.type.broadcastable == COLUMN), None)
    others = [x for x in operands if x is not column]
    if node.op.axis != (0,) or column is None or not others:
        return None
    matrix = mul(*others) if len(others) > 1 else others[0]
    height, width = (column.type.shape[0] or matrix.type.shape[0]), matrix.type.shape[-1]
    if matrix.type.broadcastable != MATRIX or width is None or width > SHORT:
        return None
    if matrix.type.dtype != node.outputs[0].type.dtype:
        return None
    if matrix.type.dtype == "float32" and (height is None or height > MOST_TERMS):
        return None
    result = dot(column.T, matrix).dimshuffle(1)
    copy_stack_trace(node.outputs[0], result)
    return [result]


def _operands(fgraph: FunctionGraph, product: Variable) -> list[Variable]:
    """Return the operands of a product of matrices with one use, which have its dtype."""
    node = product.owner
    if (
        node is None
        or not (isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Mul))
        or product.type.ndim != 2
        or product.type.dtype not in ("float32", "float64")
        or any(x.type.dtype != product.type.dtype for x in node.inputs)
        or len(fgraph.clients[product]) > 1
    ):
        return []
    return list(node.inputs)
