"""Store a weight once if the model uses both the weight and its transpose.

PyTensor folds the transpose of a constant before the conversion. An embedding table that is also
the last layer, as in most language models, would be stored twice.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.matching import constant_of
from pytensor_onnx.passes.model_pass import model_pass

SMALLEST = 1024
"""Number of elements from which on a node costs less than the copy."""


@model_pass(
    family="products",
    purpose="size",
    identity="A and constant A.T = A and transpose(A)",
    requires="a large constant matrix",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def share_transposed(model: ir.Model, scope: ModelScope) -> int:
    """Replace a constant matrix that is the transpose of another one by a Transpose node.

    The constant with the name of a parameter is kept. A runtime computes the Transpose once, when
    it loads the model.
    """
    graph, named = model.graph, set(scope.constant_names.values())
    matrices = [
        (value, array)
        for value in graph.initializers.values()
        if (array := constant_of(value)) is not None and _is_large_matrix(value, array)
    ]
    matrices.sort(key=lambda pair: pair[0].name not in named)
    kept: dict[tuple[int, ...], list[tuple[ir.Value, np.ndarray]]] = {}
    count = 0
    for value, array in matrices:
        others = kept.get(array.shape[::-1], ())
        source = next((other for other, own in others if _same_bits(array, own.T)), None)
        if source is None:
            kept.setdefault(array.shape, []).append((value, array))
            continue
        build = Builder(scope)
        ir.convenience.replace_all_uses_with(value, build.Transpose(source, perm=[1, 0]))
        name_values(build.nodes, scope.names)
        graph.insert_before(next(iter(graph)), build.nodes)
        del graph.initializers[str(value.name)]
        count += 1
    return count


def _is_large_matrix(value: ir.Value, array: np.ndarray) -> bool:
    return array.ndim == 2 and array.size >= SMALLEST and not value.is_graph_output()


def _same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    if first.dtype != second.dtype:
        return False
    bits = f"u{first.dtype.itemsize}"
    # Most pairs differ in the first row.
    return all(
        np.array_equal(
            np.ascontiguousarray(first[rows]).view(bits),
            np.ascontiguousarray(second[rows]).view(bits),
        )
        for rows in (slice(1), slice(None))
    )
