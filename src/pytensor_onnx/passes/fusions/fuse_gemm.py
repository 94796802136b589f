"""Fuse a matrix product with the transposes of its factors and an added bias into a Gemm."""

from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.dims import Dims, dims_of
from pytensor_onnx.passes.matching import is_operator, sole_producer
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


@node_rule(
    "Add",
    "MatMul",
    "Sub",
    family="products",
    purpose="size",
    identity="A.T @ B + c = Gemm(A, B, c, transA=1)",
    requires="matrices, and no other use of the product",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def fuse_gemm(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Replace a matrix product by a Gemm if that removes a node.

    A bias that is added or subtracted is fused if the product has no other use and the bias is
    broadcast one way; a factor's Transpose, if the transposed matrix has no other use. Steps of
    loops get no transposed factors, which would be turned in each step.
    """
    if node.op_type == "MatMul":
        is_turned = not build.within and any(map(_sole_transpose, node.inputs))
        is_last = is_turned and _is_product_of_matrices(node) and not _gets_bias(node)
        return _gemm(build, node, None, {}) if is_last else None
    found = _product_and_bias(node)
    if found is None:
        return None
    return _gemm(build, *found, {"beta": -1.0} if node.op_type == "Sub" else {})


def _gemm(
    build: NodeBuilder, product: ir.Node, bias: ir.Value | None, attributes: dict[str, Any]
) -> ir.Value:
    operands: list[ir.Value | None] = []
    for factor, attribute in zip(product.inputs, ("transA", "transB"), strict=True):
        transpose = _sole_transpose(factor)
        operands.append(factor if transpose is None else transpose.inputs[0])
        if transpose is not None:
            attributes[attribute] = 1
    operands += [] if bias is None else [bias]
    result: ir.Value = build.Gemm(*operands, **attributes)
    return result


def _gets_bias(product: ir.Node) -> bool:
    """Return whether a bias is fused into a product, where the walk comes to its sum."""
    found = (_product_and_bias(user) for user in product.outputs[0].consumers())
    return any(pair is not None and pair[0] is product for pair in found)


def _product_and_bias(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    """Return the product and the bias that a node adds or subtracts."""
    if not is_operator(node, "Add", "Sub"):
        return None
    for value, bias in (node.inputs, node.inputs[::-1])[: 2 if node.op_type == "Add" else 1]:
        product = sole_producer(value, "MatMul")
        if (
            bias is not None
            and product is not None
            and _is_product_of_matrices(product)
            and _broadcasts_one_way(dims_of(bias), dims_of(value))
        ):
            return product, bias
    return None


def _is_product_of_matrices(node: ir.Node) -> bool:
    return node.outputs[0].dtype in _FLOATS and all(
        len(dims_of(factor) or ()) == 2 for factor in node.inputs
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
    perm = node.attributes.get_ints("perm", (1, 0)) if node is not None else ()
    return node if tuple(perm) == (1, 0) else None
