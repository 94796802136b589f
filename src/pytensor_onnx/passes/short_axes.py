"""Pools refuse an axis too short for a window, where a runtime finds one window all the same."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.failures import name_failure
from pytensor_onnx.inference import dims_of
from pytensor_onnx.passes.exact import mark_guarded

POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})

_CHECKED = "windows are known to fit"


def mark_checked(pooled: ir.Value) -> ir.Node:
    """Mark the pool that makes a value: its windows fit, or have been checked."""
    node = pooled.producer()
    if node is None:
        raise TypeError("only what a node makes can be marked")
    node.meta[_CHECKED] = True
    return node


def may_be_short(node: ir.Node) -> bool:
    """Return whether a pool may meet an array without room for a window.

    The number of windows is a quotient rounded down, plus one. Rounded towards zero it is one where
    less than a stride is missing. An axis has one cell at least: the runtime refuses others.
    """
    return _CHECKED not in node.meta and any(_least_sizes(node))


def check_sizes(onnx: Builder, node: ir.Node) -> list[ir.Value]:
    """Reshape the array to its own sizes, or to the least where it is shorter, which fails."""
    x, attributes = node.inputs[0], {k: v.value for k, v in node.attributes.items()}
    if x is None:
        raise TypeError(f"{node.op_type} without an operand")
    sizes = onnx.Max(onnx.Shape(x), onnx.ints([0, 0, *_least_sizes(node)]))
    mark_guarded(sizes.producer())
    checked = onnx.Reshape(x, sizes)
    checked.shape = x.shape
    error = ValueError(f"a window of {node.op_type} is larger than the padded array")
    name_failure(onnx, checked, error)
    results = onnx.op(node.op_type, checked, outputs=len(node.outputs), **attributes)
    values = [results] if isinstance(results, ir.Value) else results
    mark_checked(values[0]).meta.update(node.meta)
    return values


def _least_sizes(node: ir.Node) -> list[int]:
    """Return the sizes of the spatial axes from which on windows fit, 0 where they do anyway."""
    kernel = node.attributes["kernel_shape"].as_ints()
    rank = len(kernel)
    dims = (dims_of(node.inputs[0]) or (None,) * (2 + rank))[2:]

    def ints(name: str, default: list[int]) -> list[int]:
        attribute = node.attributes.get(name)
        return default if attribute is None else list(attribute.as_ints())

    if "ceil_mode" in node.attributes and node.attributes["ceil_mode"].as_int():
        return [0] * rank
    pads = ints("pads", [0] * (2 * rank))
    strides, dilations = ints("strides", [1] * rank), ints("dilations", [1] * rank)
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
