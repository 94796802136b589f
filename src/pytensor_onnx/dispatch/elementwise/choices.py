"""Lower elementwise selections: choices between arrays, permutations of rows."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import PermuteRowElements

from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.indexing.ranges import within_bounds
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.shape.shapes import concatenated
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.elementwise import ChooseFrom


@onnx_funcify.register(ChooseFrom)
def lower_choose_from(
    op: ChooseFrom, node: Apply, build: Builder, numbers: ir.Value, *arrays: ir.Value
) -> ir.Value:
    """Select arrays by their numbers one after the other, which broadcasts all of them."""
    error = ValueError("invalid entry in choice array")
    numbers = build.cast(numbers, "int64")
    if op.is_stacked:
        index = within_bounds(build, numbers, build.size(arrays[0], 0), op.mode, error)
        return _gathered(node, build, index, arrays[0])
    count = build.constant(np.int64(len(arrays)))
    index = within_bounds(build, numbers, count, op.mode, error)
    chosen = arrays[-1]
    for number, array in reversed(list(enumerate(arrays))):
        chosen = build.Where(build.Equal(index, number), array, chosen)
    return chosen


@onnx_funcify.register(PermuteRowElements)
def lower_permute_row_elements(
    op: PermuteRowElements, node: Apply, build: Builder, x: ir.Value, permutation: ir.Value
) -> ir.Value:
    """Gather along the last axis, or scatter for the inverse, after broadcasting."""
    last = node.inputs[0].type.ndim - 1
    same = build.Equal(build.size(x, last), build.size(permutation, last))
    error = ValueError("a permutation has another length than the rows that it permutes")
    permutation = check_that(build, [same], build.cast(permutation, "int64"), error)
    rows = concatenated(build, [build.sizes(permutation, 0, last), build.ints([1])])
    x = _expanded(build, x, rows)
    permutation = _expanded(build, permutation, build.shape(x))
    if op.inverse:
        return build.ScatterElements(x, permutation, x, axis=last)
    return build.GatherElements(x, permutation, axis=last)


def _expanded(build: Builder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Broadcast a value to a shape; return the value if the shape is known to be its own."""
    grown = build.Expand(x, shape)
    return x if build.dims(grown) == build.dims(x) and None not in build.dims(x) else grown


def _gathered(node: Apply, build: Builder, index: ir.Value, choices: ir.Value) -> ir.Value:
    """Gather along the first axis of the choices, broadcast with the array of numbers."""
    rank = max(node.inputs[0].type.ndim, node.inputs[1].type.ndim - 1)
    missing = rank + 1 - node.inputs[1].type.ndim
    if missing:
        choices = build.Unsqueeze(choices, build.ints(range(1, 1 + missing)))
    index = _expanded(build, index, build.sizes(choices, 1, rank + 1))
    choices = _expanded(build, choices, concatenated(build, [build.ints([1]), build.shape(index)]))
    chosen = build.GatherElements(choices, build.Unsqueeze(index, build.ints([0])), axis=0)
    return build.Squeeze(chosen, build.ints([0]))
