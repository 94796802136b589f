"""Size checks of pools, convolutions and norms: large windows, empty filters and channels."""

from collections.abc import Sequence

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of, is_positive
from pytensor_onnx.graph.failures import name_failure
from pytensor_onnx.graph.node_flags import is_checked, mark_checked, mark_guarded
from pytensor_onnx.passes.node_walk import emit_alike

POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})


def may_be_short(node: ir.Node) -> bool:
    """Return whether the array of a pool may be shorter than a window.

    The number of windows is a quotient rounded down, plus one. Rounded towards zero, it is one if
    less than a stride is missing. The runtime refuses empty axes itself.
    """
    return not is_checked(node) and any(_least_sizes(node))


def check_room(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Make a pool fail if an axis is shorter than a window."""
    message = "a window of a pool is larger than the padded array"
    checked = _at_least(build, node.inputs[0], _least_sizes(node), message)
    return _with_operand(build, node, 0, checked)


def may_have_no_taps(node: ir.Node) -> bool:
    """Return whether the filters of a convolution may have a spatial size of zero."""
    if is_checked(node) or "kernel_shape" in node.attributes:
        return False
    dims = dims_of(node.inputs[1])
    return dims is not None and not all(map(is_positive, dims[2:]))


def check_taps(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Make a convolution fail if its filters are empty."""
    dims = dims_of(node.inputs[1]) or ()
    least = [0 if is_positive(dim) else 1 for dim in dims[2:]]
    message = f"the filters of {node.op_type} are empty"
    return _with_operand(build, node, 1, _at_least(build, node.inputs[1], least, message))


def may_have_empty_channels(node: ir.Node) -> bool:
    """Return whether channels to normalise may have a spatial size of zero."""
    dims = dims_of(node.inputs[0])
    return not is_checked(node) and dims is not None and not all(map(is_positive, dims[2:]))


def check_channels(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Let a normalisation fail where its channels are empty.

    Where there are none at all, the result keeps the sizes of the operand.
    """
    x = node.inputs[0]
    dims = dims_of(x) or ()
    least = [0 if is_positive(dim) else 1 for dim in dims[2:]]
    message = f"the channels of {node.op_type} are empty"
    results = _with_operand(build, node, 0, _at_least(build, x, least, message))
    if all(map(is_positive, dims[:2])):
        return results
    return [build.Reshape(results[0], build.Shape(x), allowzero=1), *results[1:]]


def _at_least(build: Builder, x: ir.Value | None, least: Sequence[int], message: str) -> ir.Value:
    """Reshape an array to its own sizes, or to larger required ones, which fails."""
    if x is None:
        raise TypeError(f"an operand is missing where {message}")
    sizes = build.Max(build.Shape(x), build.ints([0, 0, *least]))
    mark_guarded(sizes)
    checked = build.Reshape(x, sizes)
    checked.shape = x.shape
    name_failure(build, checked, ValueError(message))
    return checked


def _with_operand(
    build: Builder, node: ir.Node, position: int, operand: ir.Value
) -> list[ir.Value]:
    """Emit a node with another operand, marked as checked."""
    operands = [operand if i == position else old for i, old in enumerate(node.inputs)]
    results = emit_alike(build, node, operands)
    mark_checked(results[0]).meta.update(node.meta)
    return results


def _least_sizes(node: ir.Node) -> list[int]:
    """Return the smallest sizes of the spatial axes for a window, 0 without a condition."""
    kernel = node.attributes["kernel_shape"].as_ints()
    rank = len(kernel)
    dims = (dims_of(node.inputs[0]) or (None,) * (2 + rank))[2:]
    if node.attributes.get_int("ceil_mode", 0) != 0:
        return [0] * rank
    pads = node.attributes.get_ints("pads", (0,) * (2 * rank))
    strides, dilations = (
        node.attributes.get_ints(name, (1,) * rank) for name in ("strides", "dilations")
    )
    least = [
        (taps - 1) * dilation + 1 - before - after
        for taps, dilation, before, after in zip(
            kernel, dilations, pads[:rank], pads[rank:], strict=True
        )
    ]
    return [
        0 if size <= 1 or stride == 1 or (isinstance(dim, int) and dim >= size) else size
        for size, stride, dim in zip(least, strides, dims, strict=True)
    ]
