"""Fuse a matrix product with the transposes of its factors and an added bias into a Gemm."""

from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dims, dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import put_before, remove_unused, sole_producer

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


@model_pass(
    family="products",
    purpose="size",
    identity="A.T @ B + c = Gemm(A, B, c, transA=1)",
    begins_at=("MatMul",),
    requires="matrices, and no other use of the product",
)
def fuse_gemm(model: ir.Model, scope: ModelScope) -> int:
    """Replace matrix products by Gemm if that removes a node.

    A bias that is added or subtracted is fused if the product has no other use and the bias is
    broadcast one way; a factor's Transpose, if the transposed matrix has no other use. Steps of
    loops get no transposed factors, which would be turned in each step.
    """
    count = 0
    for node in list(all_nodes(model.graph)):
        if (fused := _product_and_bias(node)) is not None and isinstance(node.graph, ir.Graph):
            _replace(node.graph, node, *fused, scope)
            count += 1
    for node in list(model.graph):
        if _is_product_of_matrices(node) and any(map(_sole_transpose, node.inputs)):
            _replace(model.graph, node, node, None, scope)
            count += 1
    if count:
        for graph in (*model.graph.subgraphs(), model.graph):
            remove_unused(graph)
    return count


def _replace(
    graph: ir.Graph, node: ir.Node, product: ir.Node, bias: ir.Value | None, scope: ModelScope
) -> None:
    """Replace a product, or the node that adds or subtracts a bias, by a Gemm."""
    operands: list[ir.Value | None] = []
    attributes: dict[str, Any] = {"beta": -1.0} if node.op_type == "Sub" else {}
    for factor, attribute in zip(product.inputs, ("transA", "transB"), strict=True):
        transpose = _sole_transpose(factor)
        operands.append(factor if transpose is None else transpose.inputs[0])
        if transpose is not None:
            attributes[attribute] = 1
    if bias is not None:
        operands.append(bias)
    builder = Builder(scope)
    builder.provenance = dict(node.metadata_props)
    put_before(graph, node, builder, [builder.Gemm(*operands, **attributes)], scope.names)


def _product_and_bias(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    if node.op_type not in ("Add", "Sub") or node.domain:
        return None
    for value, bias in (node.inputs, node.inputs[::-1])[: 2 if node.op_type == "Add" else 1]:
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
    """Return whether a bias need not make the product larger.

    Elements of the sequences of a loop have sizes of no name. They equal those of the product, as
    PyTensor broadcasts axes only that are known to have the size one.
    """
    if bias is None or product is None or len(bias) > len(product):
        return False
    tail = product[len(product) - len(bias) :]
    return all(b in (1, p) or (b is None and p != 1) for b, p in zip(bias, tail, strict=True))


def _sole_transpose(factor: ir.Value | None) -> ir.Node | None:
    """Return the Transpose of a factor whose only use is the product."""
    node = sole_producer(factor, "Transpose")
    perm = node.attributes.get("perm") if node is not None else None
    return None if perm is not None and list(perm.as_ints()) != [1, 0] else node
