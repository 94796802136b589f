"""The ONNX checker, and the right models that it refuses. PyTensor is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import onnx.inliner

from pytensor_onnx.errors import VerificationError

NOTE = (
    "ONNX's shape inference counts a window of {} that starts behind the array, as ceil_mode did "
    "before opset 22; ONNX Runtime does not, and other runtimes may: opset_version=22 avoids it"
)


def check_model(model: onnx.ModelProto | str, name: str = "the model") -> str:
    """Check a model; return a note where the shape inference is known to be wrong, else nothing.

    Before opset 22 it counts windows of a MaxPool in ceil mode that start in the padding behind the
    array, which runtimes leave out.

    Parameters
    ----------
    model
        The model, or the path of a file.
    name
        Its name, for the error.

    Raises
    ------
    VerificationError
        If the checker refuses the model for anything else.

    Examples
    --------
    >>> from onnx import helper
    >>> graph = helper.make_graph([], "g", [], [])
    >>> check_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    ''
    """
    try:
        onnx.checker.check_model(model, full_check=True)
        return ""
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        pools = [] if isinstance(error, onnx.checker.ValidationError) else _wrong_pools(model)
        if not pools:
            raise VerificationError(f"the ONNX checker refuses {name}: {error}") from error
        return NOTE.format(" and ".join(pools))


def _wrong_pools(model: onnx.ModelProto | str) -> list[str]:
    """Return the pools whose windows the inference counts wrongly, none if more is wrong.

    With the padding of their windows in place of ceil mode the model must be right.
    """
    if isinstance(model, str):
        model = onnx.load(model, load_external_data=False)
    copy = onnx.inliner.inline_local_functions(model)
    changed = []
    for node in _nodes(copy.graph):
        if node.op_type == "MaxPool" and not node.domain and _ints(node, "ceil_mode", 0):
            inferred = onnx.shape_inference.infer_shapes(copy).graph
            values = (*inferred.value_info, *inferred.input, *inferred.output)
            dims: Any = next(
                (v.type.tensor_type.shape.dim for v in values if v.name == node.input[0]), []
            )
            pads = _floored_pads(node, [d.dim_value for d in dims][2:])
            if pads is not None:
                kept = [a for a in node.attribute if a.name not in ("ceil_mode", "pads")]
                del node.attribute[:]
                node.attribute.extend([*kept, onnx.helper.make_attribute("pads", pads)])
                changed.append(node.name or "MaxPool")
    try:
        onnx.checker.check_model(copy, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return []
    return changed


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _floored_pads(node: onnx.NodeProto, sizes: list[int]) -> list[int] | None:
    """Return padding with which no window starts behind the array, None if none does."""
    window = _ints(node, "kernel_shape", [])
    rank = len(window)
    if rank != len(sizes) or not all(sizes):
        return None
    stride, dilation = (_ints(node, name, [1] * rank) for name in ("strides", "dilations"))
    pads, is_wrong = list(_ints(node, "pads", [0] * 2 * rank)), False
    for axis, (size, step) in enumerate(zip(sizes, stride, strict=True)):
        reach = (window[axis] - 1) * dilation[axis] + 1
        counted = -(-(size + pads[axis] + pads[rank + axis] - reach) // step) + 1
        count = min(counted, (size + pads[axis] - 1) // step + 1)
        is_wrong = is_wrong or count < counted
        pads[rank + axis] = max((count - 1) * step + reach - size - pads[axis], 0)
    return pads if is_wrong else None


def _ints(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = [a for a in node.attribute if a.name == name]
    return onnx.helper.get_attribute_value(found[0]) if found else default
