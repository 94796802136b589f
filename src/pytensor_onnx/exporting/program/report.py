"""Describe an exported model in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.verification.converted_graph import Conversion
from pytensor_onnx.exporting.verification.results import ValueDifference, Verification
from pytensor_onnx.graph.node_counts import function_sizes, operator_counts
from pytensor_onnx.graph.weights import weight_bytes


def report_on(
    conversion: Conversion, verification: Verification, kernels: Iterable[str] = ()
) -> str:
    """Return the report on a model and its verification in Markdown.

    Parameters
    ----------
    conversion
        The model and the graph.
    verification
        The result of its verification.
    kernels
        Lines on the regions of its session.
    """
    model = conversion.model
    graph = model.graph
    operators = operator_counts(model)
    functions = [f"{name}: {count} nodes" for name, count in function_sizes(model)]
    state = [f"{s.name} -> {s.next_name}" for s in conversion.states]
    sections = [
        "# ONNX model",
        f"opset {graph.opset_imports['']}, IR version {model.ir_version}, "
        f"target {_target_of(conversion)}, made by {model.producer_name} {model.producer_version} "
        f"with PyTensor {model.metadata_props.get('pytensor_version', '?')}",
        _section("Inputs", map(describe, conversion.inputs)),
        _section("Outputs", map(describe, graph.outputs)),
        _section("State", state),
        _section("Operators", (f"{name}: {count}" for name, count in sorted(operators.items()))),
        _section("Functions", functions),
        _section(
            "Size",
            [
                f"{sum(operators.values())} nodes",
                f"{len(graph.initializers)} constants, {weight_bytes(model):,} bytes",
            ],
        ),
        _section("Native kernels of this session", kernels),
        _section("Changes for the target", conversion.changes),
        _section("Precision", verification.losses),
        _section("Verification", [verification]),
        _table_of(verification.values),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _target_of(conversion: Conversion) -> str:
    request = conversion.request
    version = None if request is None else request.options.runtime_version
    return conversion.target + (f" from version {version} on" if version else "")


def _table_of(values: Iterable[ValueDifference]) -> str:
    """Return a table of the differences of values from PyTensor's, empty without any."""
    rows = [
        f"| {value.name} | {value.computes} | {value.largest:.3g} | {value.relative:.3g} "
        f"| {value.line} |"
        for value in values
    ]
    if not rows:
        return ""
    columns = (
        "| value | computes | largest difference | relative | made at |\n|---|---|---|---|---|"
    )
    return "\n".join(["## Differences by value\n", columns, *rows])


def _section(title: str, lines: Iterable[object]) -> str:
    listing = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{listing}" if listing else ""
