"""Lower elementwise selections: choices between arrays, permutations of rows."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import Choose, PermuteRowElements

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.dispatch.ranges import within_bounds
from pytensor_onnx.dispatch.shape import concatenated
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(Choose)
def lower_choose(
    op: Choose, node: Apply, onnx: Builder, a: ir.Value, choices: ir.Value
) -> ir.Value:
    """Gather along the first axis of the choices, broadcast with the array of numbers."""
    error = ValueError("invalid entry in choice array")
    index = within_bounds(onnx, onnx.cast(a, "int64"), onnx.size(choices, 0), op.mode, error)
    rank = max(node.inputs[0].type.ndim, node.inputs[1].type.ndim - 1)
    missing = rank + 1 - node.inputs[1].type.ndim
    if missing:
        choices = onnx.Unsqueeze(choices, onnx.ints(range(1, 1 + missing)))
    index = _expanded(onnx, index, onnx.sizes(choices, 1, rank + 1))
    choices = _expanded(onnx, choices, concatenated(onnx, [onnx.ints([1]), onnx.shape(index)]))
    chosen = onnx.GatherElements(choices, onnx.Unsqueeze(index, onnx.ints([0])), axis=0)
    return onnx.Squeeze(chosen, onnx.ints([0]))


@onnx_funcify.register(PermuteRowElements)
def lower_permute_row_elements(
    op: PermuteRowElements, node: Apply, onnx: Builder, x: ir.Value, permutation: ir.Value
) -> ir.Value:
    """Gather along the last axis, or scatter for the inverse, after broadcasting."""
    last = node.inputs[0].type.ndim - 1
    same = onnx.Equal(onnx.size(x, last), onnx.size(permutation, last))
    error = ValueError("a permutation has another length than the rows that it permutes")
    permutation = check_that(onnx, [same], onnx.cast(permutation, "int64"), error)
    rows = concatenated(onnx, [onnx.sizes(permutation, 0, last), onnx.ints([1])])
    x = _expanded(onnx, x, rows)
    permutation = _expanded(onnx, permutation, onnx.shape(x))
    if op.inverse:
        return onnx.ScatterElements(x, permutation, x, axis=last)
    return onnx.GatherElements(x, permutation, axis=last)


def _expanded(onnx: Builder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Broadcast a value to a shape; return the value if the shape is known to be its own."""
    grown = onnx.Expand(x, shape)
    return x if onnx.dims(grown) == onnx.dims(x) and None not in onnx.dims(x) else grown
