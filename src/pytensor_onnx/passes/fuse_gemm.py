"""Fusion of a matrix product and the bias added to it into one Gemm."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder, ModelScope
from pytensor_onnx.inference import Dims, dims_of
from pytensor_onnx.passes.rewriting import replace_node

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


def fuse_gemm(model: ir.Model, scope: ModelScope) -> int:
    """Replace MatMul and Add by Gemm where the factors are matrices and the product has one use.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names, constants and functions of the model.

    Returns
    -------
    int
        How many products were fused.
    """
    count = 0
    for node in list(model.graph):
        fused = _product_and_bias(node)
        if fused is None:
            continue
        product, bias = fused
        builder = Builder(scope)
        builder.provenance = dict(node.metadata_props)
        result = builder.Gemm(*product.inputs, bias)
        replace_node(model.graph, node, builder, [result], scope.names)
        model.graph.remove(product, safe=True)
        count += 1
    return count


def _product_and_bias(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    if node.op_type != "Add" or node.domain:
        return None
    for product_value, bias in (node.inputs, node.inputs[::-1]):
        if product_value is None or bias is None:
            continue
        product = product_value.producer()
        if (
            product is not None
            and product.op_type == "MatMul"
            and product.graph is node.graph
            and not product_value.is_graph_output()
            and len(product_value.uses()) == 1
            and product_value.dtype in _FLOATS
            and all(_is_matrix(operand) for operand in product.inputs)
            and _broadcasts_one_way(dims_of(bias), dims_of(product_value))
        ):
            return product, bias
    return None


def _is_matrix(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and len(value.shape) == 2


def _broadcasts_one_way(bias: Dims | None, product: Dims | None) -> bool:
    if bias is None or product is None or len(bias) > len(product):
        return False
    tail = product[len(product) - len(bias) :]
    return all(b in (1, p) and b is not None for b, p in zip(bias, tail, strict=True))
