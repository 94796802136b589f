"""List the operators of a model without a kernel in a runtime."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import onnx_ir as ir

from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.graph.names import LINE, OP
from pytensor_onnx.graph.traversal import all_nodes, nodes_of_model
from pytensor_onnx.operators.entries import WITH_BODIES
from pytensor_onnx.operators.inference import signature
from pytensor_onnx.targets import Profile, main_type
from pytensor_onnx.targets.kernel_tables import MAIN_TYPES

_SHOWN, _SHOWN_OPERATORS = 10, 4


def missing_kernels(model: ir.Model, profile: Profile) -> list[str]:
    """Return the operators that a runtime lacks, with their dtypes, each once.

    Parameters
    ----------
    model
        Model whose values know their dtypes.
    profile
        Kernels and defects of the runtime.

    Examples
    --------
    >>> from pytensor_onnx.targets import get_profile
    >>> text = "m (double[n] x) => (double[n] y) {y = Erf(x)}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> missing_kernels(model, get_profile("onnxruntime"))
    ['Erf in float64']
    """
    opset = model.graph.opset_imports[""]
    missing = []
    for node in _nodes(model):
        dtype = main_dtype(node, opset)
        if dtype is None or profile.supports(node.op_type, dtype, opset, node.attributes):
            continue
        missing.append(f"{node.op_type} in {dtype.numpy()}")
    return list(dict.fromkeys(missing))


def check_loops(model: ir.Model, profile: Profile) -> None:
    """Raise if a model has loops or choices that a runtime does not run."""
    opset = model.graph.opset_imports[""]
    found = [
        Refusal(node.op_type, node)
        for node in nodes_of_model(model)
        if not node.domain
        and node.op_type in WITH_BODIES
        and not profile.supports(node.op_type, ir.DataType.FLOAT, opset)
    ]
    if found:
        listing = describe_refusals(found, model)
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operations:\n{listing}"
        )


class Refusal(NamedTuple):
    """A node that a target cannot run, the reason, and the function that holds it."""

    reason: str
    node: ir.Node
    function: ir.Function | None = None


def describe_refusals(refusals: Iterable[Refusal], model: ir.Model) -> str:
    """Return a line for each operation of the user that needs operators without a kernel.

    Parameters
    ----------
    refusals
        The nodes.
    model
        Model with the functions that hold them.
    """
    callers: dict[ir.OperatorIdentifier, list[ir.Node]] = defaultdict(list)
    holders: dict[ir.Node, ir.Function] = {}
    for node in all_nodes(model.graph):
        callers[node.op_identifier()].append(node)
    for function in model.functions.values():
        for node in all_nodes(function):
            callers[node.op_identifier()].append(node)
            holders[node] = function
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for reason, node, holder in refusals:
        origins, level = [node], holder
        while level is not None:
            origins = callers[level.identifier()] or origins
            level = holders.get(origins[0])
        for origin in origins:
            found[_origin(origin)][reason] = None
    lines = [f"- {origin}: {_listing(reasons)}" for origin, reasons in found.items()]
    more = len(lines) - _SHOWN
    return "\n".join([*lines[:_SHOWN], *([f"- and {more} more"] if more > 0 else [])])


def _origin(node: ir.Node) -> str:
    """Return the PyTensor operation that a node was made for, and the line that called it."""
    line = node.metadata_props.get(LINE, "")
    op = node.metadata_props.get(OP) or f"node {node.name!r}"
    return f"{op} ({line})" if line else op


def _listing(reasons: Collection[str]) -> str:
    """Return the reasons on one line: ``Mul, Add of float64, for which the runtime …``."""
    by_end: dict[str, list[str]] = defaultdict(list)
    for reason in reasons:
        operator, of, end = reason.partition(" of ")
        by_end[of + end].append(operator)
    parts = []
    for end, operators in by_end.items():
        more = len(operators) - _SHOWN_OPERATORS
        names = ", ".join(operators[:_SHOWN_OPERATORS])
        parts.append(f"{names}{f' and {more} more' if more > 0 else ''}{end}")
    return "; ".join(parts)


def main_dtype(node: ir.Node, opset_version: int) -> ir.DataType | None:
    """Return the dtype by which a table of kernels lists an operator."""
    types = signature(node.op_type, opset_version)
    main = main_type(node.op_type, opset_version)
    assert types is not None
    if isinstance(main, ir.DataType):
        return main
    for position, value in enumerate(node.inputs):
        if value is not None and types.input_type(position) == main:
            return value.dtype
    if node.op_type not in MAIN_TYPES and node.inputs:
        # The type variable of the first operand stands for one dtype.
        first = types.input_type(0)
        return first if isinstance(first, ir.DataType) else node.outputs[0].dtype
    return node.outputs[0].dtype


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    for node in nodes_of_model(model):
        if not node.domain and node.op_type not in WITH_BODIES | {"Constant"}:
            yield node
