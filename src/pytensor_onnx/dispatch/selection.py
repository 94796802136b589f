"""Lower elementwise selections: choices between arrays, permutations of rows."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import PermuteRowElements

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.raise_op import check_that
from pytensor_onnx.dispatch.ranges import within_bounds
from pytensor_onnx.dispatch.shape import concatenated
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.choices import ChooseFrom


@onnx_funcify.register(ChooseFrom)
def lower_choose_from(
    op: ChooseFrom, node: Apply, onnx: Builder, numbers: ir.Value, *arrays: ir.Value
) -> ir.Value:
    """Select arrays by their numbers one after the other, which broadcasts all of them."""
    error = ValueError("invalid entry in choice array")
    numbers = onnx.cast(numbers, "int64")
    if op.is_stacked:
        index = within_bounds(onnx, numbers, onnx.size(arrays[0], 0), op.mode, error)
        return _gathered(node, onnx, index, arrays[0])
    count = onnx.constant(np.int64(len(arrays)))
    index = within_bounds(onnx, numbers, count, op.mode, error)
    chosen = arrays[-1]
    for number, array in reversed(list(enumerate(arrays))):
        chosen = onnx.Where(onnx.Equal(index, number), array, chosen)
    return chosen


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


def _gathered(node: Apply, onnx: Builder, index: ir.Value, choices: ir.Value) -> ir.Value:
    """Gather along the first axis of the choices, broadcast with the array of numbers."""
    rank = max(node.inputs[0].type.ndim, node.inputs[1].type.ndim - 1)
    missing = rank + 1 - node.inputs[1].type.ndim
    if missing:
        choices = onnx.Unsqueeze(choices, onnx.ints(range(1, 1 + missing)))
    index = _expanded(onnx, index, onnx.sizes(choices, 1, rank + 1))
    choices = _expanded(onnx, choices, concatenated(onnx, [onnx.ints([1]), onnx.shape(index)]))
    chosen = onnx.GatherElements(choices, onnx.Unsqueeze(index, onnx.ints([0])), axis=0)
    return onnx.Squeeze(chosen, onnx.ints([0]))
