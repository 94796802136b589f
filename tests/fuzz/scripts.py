"""Scripts that make a random graph and compare ONNX with PyTensor."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.layouts import literal_of
from tests.fuzz.terms import Line, Term

HEADER = """\
import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph

import pytensor_onnx
from pytensor_onnx import nn
from tests.conftest import called, compare_onnx_and_py

nan, inf = np.nan, np.inf
"""


def needed(lines: Sequence[Line], wanted: Iterable[str]) -> list[Line]:
    """Return the lines that names depend on."""
    names, kept = set(wanted), []
    for line in reversed(lines):
        if names.intersection(line.names):
            kept.append(line)
            names.update(re.findall(r"\bv\d+\b", line.code))
    return kept[::-1]


def script(
    graph: Graph,
    outputs: Sequence[Term],
    updates: Sequence[tuple[Term, Term]],
    values: Sequence[np.ndarray],
    options: Mapping[str, Any],
) -> str:
    """Return a script that makes the graph and compares ONNX with PyTensor."""
    kept = needed(
        graph.lines, {t.name for t in outputs} | {t.name for pair in updates for t in pair}
    )
    wanted = {name for line in kept for name in line.names}
    given = [(t, v) for t, v in zip(graph.inputs, values, strict=True) if t.name in wanted]
    arrays = "".join(f"    {literal_of(value, t.layout)},\n" for t, value in given)
    results = ", ".join(t.name for t in outputs)
    lines = [HEADER, *map(str, kept)]
    if updates:
        pairs = ", ".join(f"{a}: {b}" for a, b in updates)
        lines.append(f"updates = {{{pairs}}}")
    lines.append(f"inputs, outputs = [{', '.join(t.name for t, _ in given)}], [{results}]")
    lines.append(f"values = [\n{arrays}]")
    given_options = "".join(f", {name}={value!r}" for name, value in options.items())
    lines.append(f"compare_onnx_and_py(inputs, outputs, values{given_options})")
    return "\n".join(lines)
