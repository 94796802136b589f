"""Protection of matrix products from runtimes that take in what stands before and after them.

ONNX Runtime makes a fused operator of a MatMul and a constant factor before or after it, which
becomes an attribute. Attributes are float32: to a float64 product a factor of 0.1 comes out wrong
by 1.5e-8. And they have to be finite, or the model is refused. It takes in a Transpose of the batch
before a MatMul too, and divides by the number of rows then, which ends the process where there are
none. A Gemm is left alone, and so is a product with a Sum of one operand, which is that operand, in
between.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import dims_of, is_positive
from pytensor_onnx.passes.layout_walk import is_transpose, perm_of
from pytensor_onnx.passes.rewriting import GraphLike, replace_node
from pytensor_onnx.scope import ModelScope


def protect_products(owner: GraphLike, scope: ModelScope, *, in_function: bool = False) -> int:
    """Separate matrix products from what a runtime must not take in.

    Parameters
    ----------
    owner
        Graph or function to change in place; its subgraphs are visited too.
    scope
        Names and constants of the model.
    in_function
        Whether the graph is the body of a function.

    Returns
    -------
    int
        How many products were changed.
    """
    count = 0
    for node in list(owner):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                count += protect_products(attribute.as_graph(), scope, in_function=in_function)
        if node.op_type != "MatMul" or node.domain or not _is_of_floats(node):
            continue
        before = [_is_unfit(_through_transpose(x)) or _moves_rows(x) for x in node.inputs]
        after = any(_is_unfit(user) for user in node.outputs[0].consumers())
        if not any(before) and not after:
            continue
        builder = Builder(scope, in_function=in_function)
        builder.provenance = dict(node.metadata_props)
        if all(x is not None and x.shape is not None and len(x.shape) == 2 for x in node.inputs):
            result = builder.Gemm(*node.inputs)
        else:
            operands = [
                builder.Sum(x) if apart else x for x, apart in zip(node.inputs, before, strict=True)
            ]
            result = builder.MatMul(*operands)
            result = builder.Sum(result) if after else result
        replace_node(owner, node, builder, [result], scope.names)
        count += 1
    return count


def _is_of_floats(node: ir.Node) -> bool:
    dtypes = [v.dtype for v in (*node.inputs, *node.outputs) if v is not None]
    return any(dtype is not None and dtype.is_floating_point() for dtype in dtypes)


def _through_transpose(value: ir.Value | None) -> ir.Node | None:
    producer = None if value is None else value.producer()
    if producer is not None and producer.op_type == "Transpose":
        return _through_transpose(producer.inputs[0])
    return producer


def _moves_rows(value: ir.Value | None) -> bool:
    """Return whether rows or columns that may be none were the first axis, before a batch."""
    node = None if value is None else value.producer()
    if node is None or not is_transpose(node):
        return False
    perm = perm_of(node)
    *batch, last = range(1, len(perm))
    if perm not in ((*batch, 0, last), (*batch, last, 0)):
        return False
    dims = dims_of(node.inputs[0])
    return dims is None or not is_positive(dims[0])


def _is_unfit(node: ir.Node | None) -> bool:
    """Return whether a node multiplies or divides by a number that is not right as an attribute."""
    if node is None or node.op_type not in ("Mul", "Div"):
        return False
    factors = node.inputs if node.op_type == "Mul" else node.inputs[1:]
    constants = [x.const_value for x in factors if x is not None]
    return any(
        constant is not None and constant.size == 1 and not _fits(constant, node.op_type)
        for constant in constants
    )


def _fits(constant: ir.TensorProtocol, op_type: str) -> bool:
    if constant.dtype == ir.DataType.DOUBLE:
        return False
    number = constant.numpy().astype("float32")
    with np.errstate(divide="ignore", over="ignore"):
        return bool(np.isfinite(number if op_type == "Mul" else 1 / number).all())
