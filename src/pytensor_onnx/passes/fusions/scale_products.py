"""Fold a constant factor of each column into the weights of a product, as of a layer scale."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.rewriting import (
    exchange_names,
    given,
    remove_unused,
    replace_node,
    sole_producer,
)


def scale_products(model: ir.Model, scope: ModelScope) -> int:
    """Multiply constant weights, and the bias after them, by the factors of the columns.

    Weights are multiplied in float64 and rounded once.
    """
    renamed: list[tuple[ir.Value, ir.Value]] = []
    count = 0
    for node in list(model.graph):
        for value, factors in (node.inputs, node.inputs[::-1]) if _is(node, "Mul") else ():
            pairs = _fold(model.graph, node, value, factors, scope)
            if pairs:
                renamed += pairs
                count += 1
                break
    if count:
        remove_unused(model.graph)
    exchange_names(renamed)
    return count


def _fold(
    graph: ir.Graph,
    node: ir.Node,
    value: ir.Value | None,
    factors: ir.Value | None,
    scope: ModelScope,
) -> list[tuple[ir.Value, ir.Value]]:
    """Replace a product with factors; return the constants before and after."""
    addition = sole_producer(value, "Add")
    for product, bias in _summands(addition) if addition is not None else [(value, None)]:
        matmul = sole_producer(product, "MatMul")
        if matmul is None or matmul.graph is not graph or node.graph is not graph:
            continue
        weights = _constant(matmul.inputs[1])
        scale = _vector(factors, weights)
        shift = None if bias is None else _vector(bias, weights)
        if weights is None or scale is None or (bias is not None and shift is None):
            continue
        scaled = _scaled(weights, scale)
        moved = None if shift is None else _scaled(shift, scale)
        if scaled is None or (shift is not None and moved is None):
            continue
        builder = Builder(scope)
        builder.provenance = dict(node.metadata_props)
        constants = [(given(matmul.inputs[1]), builder.constant(scaled))]
        result = builder.MatMul(matmul.inputs[0], constants[0][1])
        if moved is not None:
            constants.append((given(bias), builder.constant(moved)))
            result = builder.Add(result, constants[1][1])
        replace_node(graph, node, builder, [result], scope.names)
        return constants
    return []


def _summands(addition: ir.Node) -> list[tuple[ir.Value | None, ir.Value | None]]:
    first, second = addition.inputs
    return [(first, second), (second, first)]


def _is(node: ir.Node, op_type: str) -> bool:
    return node.op_type == op_type and not node.domain


def _constant(value: ir.Value | None) -> np.ndarray | None:
    """Return a matrix or vector of floats with one use, None for other values."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    array = value.const_value.numpy()
    is_float = array.dtype in (np.float32, np.float64)
    return array if is_float and len(value.uses()) == 1 else None


def _vector(value: ir.Value | None, weights: np.ndarray | None) -> np.ndarray | None:
    """Return a constant with one number for each column of a matrix."""
    array = _constant(value)
    if array is None or weights is None or weights.ndim != 2 or array.size != weights.shape[1]:
        return None
    return array if array.size > 1 and (dims_of(value) or (0,))[-1] == array.size else None


def _scaled(array: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    """Return an array times factors, None if a product overflows or loses digits."""
    with np.errstate(all="ignore"):
        wide = array.astype("float64") * scale.astype("float64").ravel()
        result = wide.astype(array.dtype)
    smallest = np.finfo(array.dtype).tiny
    is_kept = (np.abs(result) >= smallest) | (array == 0)
    return result if np.isfinite(result).all() and is_kept.all() and scale.all() else None
