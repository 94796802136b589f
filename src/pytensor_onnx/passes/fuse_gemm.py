"""Fusion of a matrix product with the bias added to it and the transposes of its factors."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder, ModelScope
from pytensor_onnx.dims import Dims, dims_of
from pytensor_onnx.passes.rewriting import remove_unused, replace_node, sole_producer

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


def fuse_gemm(model: ir.Model, scope: ModelScope) -> int:
    """Replace products of matrices by Gemm where that saves a node.

    A bias is taken in if the product has no other use and the bias is broadcast one way; a factor's
    Transpose, if the transposed matrix has no other use.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names, constants and functions of the model.

    Returns
    -------
    int
        How many products were replaced.
    """
    count = 0
    for node in list(model.graph):
        product, bias = _product_and_bias(node) or (node, None)
        if not _is_product_of_matrices(product):
            continue
        factors, transposed = zip(*map(_untransposed, product.inputs), strict=True)
        if bias is None and not any(transposed):
            continue
        attributes = {
            name: 1 for name, yes in zip(("transA", "transB"), transposed, strict=True) if yes
        }
        operands = factors if bias is None else (*factors, bias)
        builder = Builder(scope)
        builder.provenance = dict(node.metadata_props)
        result = builder.Gemm(*operands, **attributes)
        replace_node(model.graph, node, builder, [result], scope.names)
        count += 1
    if count:
        remove_unused(model.graph)
    return count


def _product_and_bias(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    if node.op_type != "Add" or node.domain:
        return None
    for value, bias in (node.inputs, node.inputs[::-1]):
        product = sole_producer(value, "MatMul")
        if (
            bias is not None
            and product is not None
            and product.graph is node.graph
            and _is_product_of_matrices(product)
            and _broadcasts_one_way(dims_of(bias), dims_of(value))
        ):
            return product, bias
    return None


def _is_product_of_matrices(node: ir.Node) -> bool:
    return (
        node.op_type == "MatMul"
        and not node.domain
        and node.outputs[0].dtype in _FLOATS
        and all(len(dims_of(factor) or ()) == 2 for factor in node.inputs)
    )


def _broadcasts_one_way(bias: Dims | None, product: Dims | None) -> bool:
    if bias is None or product is None or len(bias) > len(product):
        return False
    tail = product[len(product) - len(bias) :]
    return all(b in (1, p) and b is not None for b, p in zip(bias, tail, strict=True))


def _untransposed(factor: ir.Value | None) -> tuple[ir.Value | None, bool]:
    """Return what a factor is the transpose of, if nothing else needs the transpose."""
    node = sole_producer(factor, "Transpose")
    return (factor, False) if node is None else (node.inputs[0], True)
