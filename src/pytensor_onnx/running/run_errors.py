"""Translate errors of ONNX Runtime into PyTensor's exceptions, in the user's terms."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import (
    RunAssertionError,
    RunError,
    RunIndexError,
    RunValueError,
    RunZeroDivisionError,
)
from pytensor_onnx.graph.failures import CHECK, NO_BROADCAST, fails_by
from pytensor_onnx.graph.origins import (
    LOOP,
    OP,
    VARIABLE,
    Lines,
    Place,
    find_place,
    origins,
    places,
)
from pytensor_onnx.running.error_table import BROADCAST, MEANINGS
from pytensor_onnx.running.operand_shapes import Shapes, expands, operand_shapes, products_fit
from pytensor_onnx.user_code import line_in, trace_of_caller

_BUILT_IN: dict[str, type[RunError]] = {
    "IndexError": RunIndexError,
    "ValueError": RunValueError,
    "AssertionError": RunAssertionError,
    "ZeroDivisionError": RunZeroDivisionError,
}
_INDEX = re.compile(r"\bidx=(\d+)")
_UNNAMED = re.compile(r"c(_\d+)?")
"""Names of constant arrays that have no name of the user."""
_RESHAPED = re.compile(r"Input shape:\{(.*?)\}, requested shape:\{(.*?)\}")
_MOST_PLACES = 3
_FAILED = re.compile(r"while running (\w+) node\. Name:'(.*?)' Status Message: ?", re.DOTALL)


def explain(
    error: Exception,
    model: ir.Model,
    lines: Lines,
    failures: Mapping[str, Exception],
    feed: Mapping[str, Any],
) -> Exception:
    """Return the exception for an error of the runtime.

    Parameters
    ----------
    error
        Exception of the runtime.
    model
        Model that was run.
    lines
        Lines of code that made its nodes.
    failures
        Exceptions that checks of the graph raise, by type and message.
    feed
        Inputs of the run, which is repeated for a message without sizes.
    """
    runtime = str(error).strip()
    steps = list(_FAILED.finditer(runtime))
    message = runtime[steps[-1].end() :] if steps else runtime
    failed = [find_place(model, step[2]) for step in steps]
    place = (failed[-1] if failed else None) or _check_by_index(model, message)
    details = _where(model, place, lines)
    details += [f"loop:     {name}" for name in _loops(failed)]
    details.append(f"runtime:  {runtime}")
    check = place.node.metadata_props.get(CHECK) if place else None
    if check is not None:
        found = _RESHAPED.search(message) if check.endswith(NO_BROADCAST) else None
        if found:
            axes = zip(*(map(int, part.split(",")) for part in found.groups()), strict=True)
            small, large = next((sorted(x) for x in axes if len({*x}) > 1), (1, 1))
            parts = [NO_BROADCAST] if small == 1 else []
            parts.append(BROADCAST.format(first=small, second=large))
            return RunValueError(_lines([*parts, *details]))
        return _checked(check, failures, details)
    into = _indexed(model, place, failed)
    for meaning in MEANINGS:
        text = meaning.of(message, into, partial(_shapes, model, place, feed))
        if text is not None:
            return meaning.error(_lines([text, *details]))
    return RunError(_lines(["ONNX Runtime failed", *details]))


def _check_by_index(model: ir.Model, message: str) -> Place | None:
    """Return the place of a check that the runtime renamed."""
    index = _INDEX.search(message)
    found = [p for p in places(model) if fails_by(p.node, int(index[1]))] if index else []
    return found[0] if found else None


def _lines(texts: Sequence[str]) -> str:
    return "\n    ".join(texts)


def _checked(check: str, failures: Mapping[str, Exception], details: list[str]) -> Exception:
    """Return the exception of a failed check; classes of the user are kept."""
    kind, _, text = check.partition(": ")
    failure = failures.get(check)
    if kind in _BUILT_IN and (failure is None or type(failure).__module__ == "builtins"):
        return _BUILT_IN[kind](_lines([text, *details]))
    if failure is None:
        return RunError(_lines([check, *details]))
    error = type(failure)(*failure.args)
    error.add_note(_lines(["", *details]).lstrip("\n"))
    return error


def _where(model: ir.Model, place: Place | None, lines: Lines) -> list[str]:
    """Return the user's operations that a node may belong to, with their lines of code."""
    if place is None:
        return []
    texts = dict.fromkeys(
        (", in ".join(filter(None, map(_operation, path))), path[-1].line(lines))
        for path in origins(model, place, lines)
    )
    found = [(operation, line) for operation, line in texts if operation or line]
    details = []
    for i, (operation, line) in enumerate(found[:_MOST_PLACES]):
        details += [f"{'or in:' if i else 'in:   '}    {operation}"] if operation else []
        details += [f"made at:  {line}"] if line else []
    if not any(line for _, line in found) and (caller := line_in(trace_of_caller())):
        details.append(f"call:     {caller}")
    rest = len(found) - _MOST_PLACES
    return [*details, f"or in:    {rest} other places"] if rest > 0 else details


def _operation(place: Place) -> str:
    """Return the Op and the variable that a node computes."""
    known = place.node.metadata_props
    computed = f", which computes {known[VARIABLE]}" if VARIABLE in known else ""
    return known.get(OP, "") + computed


def _shapes(model: ir.Model, place: Place | None, feed: Mapping[str, Any]) -> Shapes | None:
    """Return the shapes of operands that do not fit, None if unknown."""
    shapes = operand_shapes(model, place, feed) if place is not None else None
    if place is None or shapes is None:
        return None
    first, second = shapes
    if place.node.op_type in ("Gemm", "MatMul"):
        attributes = place.node.attributes
        first = first[::-1] if attributes.get_int("transA", 0) else first
        second = second[::-1] if attributes.get_int("transB", 0) else second
        return None if products_fit(first, second) else (first, second)
    if place.node.op_type == "Expand" and expands(first, second):
        return None
    return first, second


def _indexed(model: ir.Model, place: Place | None, failed: Sequence[Place | None]) -> str:
    """Return the array that a node indexes, if it has a name of the user.

    An element of a sequence of a Scan has the name of the sequence.
    """
    value = place.node.inputs[0] if place and place.node.inputs else None
    for outer in reversed(failed[:-1]):
        if outer is not None and outer.node.op_type == "Scan":
            value = _sequences(outer.node).get(value, value)
    if value is None:
        return ""
    made = value.producer()
    is_named = value.is_initializer() and not _UNNAMED.fullmatch(str(value.name))
    given = any(value is x for x in model.graph.inputs) or is_named
    named = VARIABLE in made.metadata_props if made is not None else given
    return f" into {value.name}" if named else ""


def _sequences(scan: ir.Node) -> dict[ir.Value | None, ir.Value | None]:
    """Return the sequences of a Scan, by their elements in its body."""
    elements = scan.attributes["body"].as_graph().inputs
    n_states = len(elements) - scan.attributes["num_scan_inputs"].as_int()
    return dict(zip(elements[n_states:], scan.inputs[n_states:], strict=True))


def _loops(failed: Sequence[Place | None]) -> list[str]:
    """Return the names of the loops around the failing node, innermost last."""
    innermost = failed[-1].node.metadata_props if failed and failed[-1] else {}
    names = [innermost[LOOP]] if LOOP in innermost else []
    for place in reversed(failed[:-1]):
        is_loop = place is not None and place.node.op_type in ("Loop", "Scan")
        op = place.node.metadata_props.get(OP, "") if place and is_loop else ""
        scan = re.match(r"Scan\{([^,}]+)", op)
        if scan:
            names.append(scan[1])
    return names
