"""Multiply a matrix product by a number within a Gemm, as the rate of a gradient step."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.rewriting import remove_unused, replace_node, sole_producer

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def scale_gemms(model: ir.Model, scope: ModelScope) -> int:
    """Replace a number that multiplies a product of matrices, or its reshape, by ``alpha``.

    The attribute is a float32, and must hold the number exactly.
    """
    count = 0
    for node in list(model.graph):
        if node.op_type != "Mul" or node.domain:
            continue
        for value, factor in (node.inputs, node.inputs[::-1]):
            number = _number(factor, value)
            views = (sole_producer(value, op_type) for op_type in ("Reshape", "Unsqueeze"))
            view = next(filter(None, views), None)
            matrix = value if view is None else view.inputs[0]
            product = sole_producer(matrix, "Gemm") or sole_producer(matrix, "MatMul")
            if number is None or product is None or not _is_scalable(product):
                continue
            build = Builder(scope)
            build.provenance = dict(node.metadata_props)
            kept = {name: attribute.value for name, attribute in product.attributes.items()}
            result = build.Gemm(*product.inputs[:2], **kept, alpha=number)
            if view is not None:
                kept = {name: attribute.value for name, attribute in view.attributes.items()}
                result = build.op(view.op_type, result, *view.inputs[1:], **kept)
            replace_node(model.graph, node, build, [result], scope.names)
            count += 1
            break
    if count:
        remove_unused(model.graph)
    return count


def _is_scalable(product: ir.Node) -> bool:
    first, second, *bias = product.inputs
    are_matrices = all(len(dims_of(factor) or ()) == 2 for factor in (first, second))
    is_plain = not any(bias) and "alpha" not in product.attributes
    return are_matrices and is_plain and product.outputs[0].dtype in _FLOATS


def _number(factor: ir.Value | None, value: ir.Value | None) -> float | None:
    """Return a constant factor that is one finite float32 other than zero."""
    if factor is None or factor.const_value is None or factor.is_graph_input():
        return None
    array = factor.const_value.numpy()
    if array.size != 1 or array.ndim > len(dims_of(value) or ()):
        return None
    number = float(array.item())
    with np.errstate(over="ignore"):
        is_held = float(np.float32(number)) == number
    return number if is_held and number and np.isfinite(number) else None
