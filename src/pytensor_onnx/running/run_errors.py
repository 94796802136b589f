"""Errors at run time as PyTensor's exceptions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import (
    InputError,
    PyTensorONNXError,
    RunAssertionError,
    RunError,
    RunIndexError,
    RunValueError,
    RunZeroDivisionError,
)
from pytensor_onnx.graph.builder import CHECK, NO_BROADCAST, fails_by
from pytensor_onnx.graph.names import LOOP, OP, VARIABLE, Lines, Place, find_place, origins, places
from pytensor_onnx.user_code import line_in, trace_of_caller

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


@dataclass(frozen=True)
class Meaning:
    """Exception and text for a message of the runtime.

    Attributes
    ----------
    message
        Regular expression for a part of the runtime's message.
    error
        Class of the exception to raise.
    text
        The message in the user's terms, formatted with the groups of the expression.
    numbers
        Further fields of the text, computed from the groups.
    sized
        Text for the shapes of two operands, for messages without sizes.
    """

    message: str
    error: type[PyTensorONNXError]
    text: str
    numbers: Mapping[str, Callable[[Mapping[str, str]], str]] = field(default_factory=dict)
    sized: str = ""

    def of(
        self, message: str, into: str = "", shapes: Callable[[], Shapes | None] = lambda: None
    ) -> str | None:
        """Return the text for a message of the runtime, None for other messages."""
        match = re.search(self.message, message, re.DOTALL)
        if match is None:
            return None
        groups = {name: value or "" for name, value in match.groupdict().items()}
        groups["into"] = into
        groups.update({name: number(groups) for name, number in self.numbers.items()})
        known = shapes() if self.sized else None
        if known is None:
            return self.text.format_map(groups)
        return self.sized.format_map({**groups, "first": known[0], "second": known[1]})


def _shape(name: str) -> Callable[[Mapping[str, str]], str]:
    """Return a function that formats a shape such as ``3,4`` as a Python tuple."""

    def shape(groups: Mapping[str, str]) -> str:
        sizes = [size for size in groups[name].split(",") if size]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    return shape


def _size(groups: Mapping[str, str]) -> str:
    return str(int(groups["last"]) + 1)


BROADCAST = "operands cannot be broadcast together: one axis has the sizes {first} and {second}"

MEANINGS = (
    Meaning(
        r"indices element out of data bounds, idx=(?P<index>-?\d+) .*\[-?\d+,(?P<last>-?\d+)\]",
        RunIndexError,
        "index {index}{into} is out of range for an axis of size {size}",
        {"size": _size},
    ),
    Meaning(
        r"invalid ind(?:ex|ice) found, ind(?:ex|ice) = (?P<index>-?\d+)",
        RunIndexError,
        "index {index}{into} is out of range",
        sized="index {index}{into} is out of range for an array of shape {first}",
    ),
    Meaning(
        "Out of range value in index tensor",
        RunIndexError,
        "an index{into} is out of range",
        sized="an index{into} is out of range for an array of shape {first}",
    ),
    Meaning(
        r"by a dimension other than 1\. (?P<first>\d+) by (?P<second>\d+)",
        RunValueError,
        BROADCAST,
    ),
    Meaning(
        r"Can broadcast (?P<first>0) by 0 or 1\. (?P<second>\d+) is invalid",
        RunValueError,
        BROADCAST,
    ),
    Meaning(
        "invalid expand shape",
        RunValueError,
        "an array cannot be broadcast to the shape that is asked for",
        sized="an array of shape {first} cannot be broadcast to the shape {second}",
    ),
    Meaning(
        r"updates shape: {(?P<values>[\d,]*)}, indices shape: {(?P<indices>[\d,]*)}, "
        r"data shape: {(?P<array>[\d,]*)}",
        RunValueError,
        "values of shape {new} do not fit the {count} elements that are set or incremented in an "
        "array of shape {old}",
        {
            "new": _shape("values"),
            "old": _shape("array"),
            "count": lambda groups: groups["indices"].rpartition(",")[0].replace(",", " x "),
        },
    ),
    Meaning(
        r"Input shape:{(?P<old>[\d,]*)}, requested shape:{(?P<new>[-\d,]*)}",
        RunValueError,
        "an array of shape {old_shape} cannot be reshaped to {new_shape}",
        {"old_shape": _shape("old"), "new_shape": _shape("new")},
    ),
    Meaning(
        "At most one dimension can be -1",
        RunValueError,
        "only one size of the new shape may be -1",
    ),
    Meaning(
        r"A dimension cannot be less than -1, got (?P<size>-\d+)",
        RunValueError,
        "negative dimensions are not allowed: {size}",
    ),
    Meaning(
        r"Input shape={(?P<shape>[\d,]*)} .*was (?P<total>-?\d+)\s*$",
        RunValueError,
        "the sizes of a split sum to {total}, for an array of shape {old}",
        {"old": _shape("shape")},
    ),
    Meaning(
        r"Invalid value in 'split' input\. All values must be >= 0",
        RunValueError,
        "the sizes of a split cannot be negative",
    ),
    Meaning(
        r"Split size (?P<size>\d+) exceeds the remaining size of the selected axis, (?P<rest>\d+)",
        RunValueError,
        "the sizes of a split are more than the axis has: {size} where {rest} are left",
    ),
    Meaning(
        r"Axis (?P<axis>\d+) has mismatched dimensions of (?P<second>\d+) and (?P<first>\d+)",
        RunValueError,
        "arrays that are joined differ in another axis: axis {axis} has the sizes {first} and "
        "{second}",
    ),
    Meaning(
        r"MatMul dimension mismatch|operand cannot broadcast on dim|GEMM: Dimension mismatch",
        RunValueError,
        "the shapes of a matrix product do not fit",
        sized="the shapes {first} and {second} of a matrix product do not fit",
    ),
    Meaning(
        r"Gemm: Invalid bias shape for broadcast",
        RunValueError,
        "a product and its addend cannot be broadcast together",
    ),
    Meaning(
        r"The shape is: {(?P<shape>[\d,]*)}Another operand has a dim value of (?P<size>\d+)",
        RunValueError,
        "the shapes of a product do not fit: {own} where the other operand has {size}",
        {"own": _shape("shape")},
    ),
    Meaning(
        r"Dimension of input (?P<axis>\d+) must be 1 instead of (?P<size>\d+)",
        RunValueError,
        "axis {axis} cannot be dropped: it has the size {size}",
    ),
    Meaning(
        r"Input channels C is not equal to kernel channels \* group\. C: (?P<found>\d+) "
        r"kernel channels: (?P<wanted>\d+) group: (?P<groups>\d+)",
        RunValueError,
        "an image of {found} channels does not fit filters for {wanted} channels in {groups} "
        "groups",
    ),
    Meaning(
        r"filter_number: (?P<wanted>\d+) num_input_channels: (?P<found>\d+)",
        RunValueError,
        "an image of {found} channels does not fit filters for {wanted} channels",
    ),
    Meaning(
        r"X\.shape={(?P<shape>[\d,]*)} scale\.shape={(?P<scale>[\d,]*)}",
        RunValueError,
        "a scale of shape {own} does not fit an array of shape {whole}",
        {"own": _shape("scale"), "whole": _shape("shape")},
    ),
    Meaning(
        r"shape\.Size\(\) must be >= 0|repeat value must be non-negative|Depth is negative",
        RunValueError,
        "negative dimensions are not allowed",
    ),
    Meaning(
        "'step' value cannot be 0",
        RunValueError,
        "the step of a slice cannot be zero",
    ),
    Meaning(
        "delta in Range operator can not be zero",
        RunZeroDivisionError,
        "the step of a range cannot be zero",
    ),
    Meaning(
        "Integer (?:division|modulo) by zero",
        RunZeroDivisionError,
        "integer division by zero",
    ),
    Meaning(
        r"Previous value was (?P<first>\d+) but input .* has length of (?P<second>\d+)",
        RunValueError,
        "the sequences of a loop differ in length: {first} and {second}",
    ),
    Meaning(
        r"Shape mismatch attempting to re-use buffer\. {(?P<first>[\d,]*)} != {(?P<second>[\d,]*)}",
        RunValueError,
        "arrays that must have one shape have the shapes {expected} and {found}",
        {"expected": _shape("first"), "found": _shape("second")},
    ),
    Meaning(
        r"Invalid rank for input: (?P<name>.+?) Got: (?P<rank>\d+) Expected: (?P<wanted>\d+)",
        InputError,
        "input {name} has {rank} axes, but {wanted} are expected",
    ),
    Meaning(
        r"invalid dimensions for input: (?P<name>.+?) for .*index: (?P<axis>\d+) "
        r"Got: (?P<size>\d+) Expected: (?P<wanted>\d+)",
        InputError,
        "axis {axis} of input {name} has the size {size}, but {wanted} is expected",
    ),
)
