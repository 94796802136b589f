"""A program as a notebook shows it: interface, sizes, changes, verification and picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.verification.results import Verification
from pytensor_onnx.graph.model_reading import state_pairs
from pytensor_onnx.graph.traversal import operator_counts
from pytensor_onnx.graph.weights import weight_bytes

if TYPE_CHECKING:
    from pytensor_onnx.pictures.graph_picture import Drawing

_MOST_OPERATORS = 6
"""Kinds of operators that a line names."""
_STYLE = """\
.onnx-program table{border-collapse:collapse;margin:.4em 0 .8em}
.onnx-program th,.onnx-program td{text-align:left;padding:.2em 1.2em .2em 0}
.onnx-program th{font-weight:600;opacity:.7}
.onnx-program td:first-child{font-weight:600}
.onnx-program summary{cursor:pointer}
.onnx-program p{margin:.3em 0}"""


def notebook_view(
    model: ir.Model,
    picture: Drawing,
    verification: Verification,
    changes: Sequence[Change],
    target: str,
) -> str:
    """Return the HTML of a program.

    Parameters
    ----------
    model, picture
        The model, and its picture.
    verification, changes, target
        Result of its verification, changes for its target, and the target.
    """
    graph = model.graph
    states = state_pairs(model)
    inputs = [v for v in graph.inputs if not v.is_initializer() or v.name in states]
    rows = [_row(v, "state" if v.name in states else "input") for v in inputs]
    rows += [_row(v, "output") for v in graph.outputs if v.name not in states.values()]
    operators = operator_counts(model)
    most = [f"{name} {count}" for name, count in operators.most_common(_MOST_OPERATORS)]
    more = ["…"] if len(operators) > _MOST_OPERATORS else []
    facts = [
        f"opset {graph.opset_imports['']}, target {target}",
        f"{operators.total():,} nodes: {', '.join([*most, *more])}",
        f"{len(graph.initializers):,} constants, {_size(weight_bytes(model))}",
        f"verification: {verification}",
    ]
    return "\n".join(
        [
            f'<div class="onnx-program"><style>{_STYLE}</style>',
            "<table><tr><th>value</th><th>dtype and shape</th><th></th></tr>",
            *rows,
            "</table>",
            *(f"<p>{escape(fact)}</p>" for fact in facts),
            _listed("changes for the target", changes),
            f"<details open><summary>graph</summary>{picture._repr_html_()}</details>",
            "</div>",
        ]
    )


def _row(value: ir.Value, kind: str) -> str:
    name, _, type_ = describe(value).partition(": ")
    return f"<tr><td>{escape(name)}</td><td>{escape(type_)}</td><td>{kind}</td></tr>"


def _size(count: int) -> str:
    """Return a number of bytes in the unit that a reader knows."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:.3g} {unit}"
    return f"{count} bytes"


def _listed(title: str, lines: Iterable[object]) -> str:
    items = "".join(f"<li>{escape(str(line))}</li>" for line in lines)
    return f"<details><summary>{title}</summary><ul>{items}</ul></details>" if items else ""
