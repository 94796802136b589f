"""Find the shapes of the operands of a failed node whose message does not contain them."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.origins import Place

Shapes = tuple[tuple[int, ...], tuple[int, ...]]

_PREFIX = "shapes_of_operands"
_OFFSET = 2
_LARGEST_MODEL = 2**26


def operand_shapes(model: ir.Model, place: Place, feed: Mapping[str, Any]) -> Shapes | None:
    """Return the shapes of the first two operands of a node, None if they are not found.

    The model runs again with a Reshape before the failing node, whose own error message has the
    sizes, within loops and functions too. For an Expand, the second shape is the target shape.

    Parameters
    ----------
    model
        Model that failed; it is modified.
    place
        The node that failed, at its first execution.
    feed
        Inputs of the model.
    """
    import onnxruntime as ort

    if len(place.node.inputs) < 2 or None in place.node.inputs[:2]:
        return None
    _fail_with_shapes(place.node)
    source = ir.to_proto(model).SerializeToString()
    if len(source) > _LARGEST_MODEL:
        return None
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        session.run(None, dict(feed))
    except Exception as error:
        return _read_shapes(str(error))
    return None


def products_fit(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether arrays of two shapes have a matrix product.

    Examples
    --------
    >>> products_fit((2, 3), (3,)), products_fit((2, 3), (2, 3)), products_fit((2, 1, 3), (4, 3, 1))
    (True, False, False)
    """
    if not first or not second or first[-1] != second[-2 if len(second) > 1 else -1]:
        return False
    return expands(first[:-2], second[:-2]) or expands(second[:-2], first[:-2])


def expands(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to another."""
    return all(1 in sizes or len(set(sizes)) == 1 for sizes in zip(shape[::-1], wanted[::-1]))  # noqa: B905


def _fail_with_shapes(node: ir.Node) -> None:
    """Insert a Reshape before the first operand to a shape that lists all sizes."""
    first, second = node.inputs[:2]
    assert first is not None
    assert second is not None
    new: list[ir.Node] = []

    def emit(op_type: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        emitted = ir.node(op_type, inputs, attributes)
        emitted.name = emitted.outputs[0].name = f"{_PREFIX}_{len(new)}"
        new.append(emitted)
        return emitted.outputs[0]

    def constant(number: int) -> ir.Value:
        return emit("Constant", value=ir.tensor(np.array([number])))

    own, other = emit("Shape", first), emit("Shape", second)
    if node.op_type == "Expand":
        other = second
    ranks = [emit("Shape", sizes) for sizes in (own, other)]
    sizes = emit("Concat", *ranks, own, other, axis=0)
    # All sizes are above 1, so that no array fits.
    listed = emit("Concat", constant(2), emit("Add", sizes, constant(_OFFSET)), axis=0)
    failing = emit("Reshape", first, listed)
    node.replace_input_with(0, emit("Reshape", failing, own))
    assert node.graph is not None
    node.graph.insert_before(node, new)


def _read_shapes(message: str) -> Shapes | None:
    listed = re.search(rf"{_PREFIX}_\d+'.*requested shape:{{2,([\d,]+)}}", message, re.DOTALL)
    if listed is None:
        return None
    n_first, n_second, *sizes = (int(size) - _OFFSET for size in listed[1].split(","))
    if len(sizes) != n_first + n_second:
        return None
    return tuple(sizes[:n_first]), tuple(sizes[n_first:])
