"""Evaluate graphs with PyTensor's own Python implementations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import PerformLinker

from pytensor_onnx.exporting.verification.many_operands import TakeManyOperands
from pytensor_onnx.rewriting.linalg.signed_vectors import give_signs


def evaluate(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a graph as written, with PyTensor's own Python implementations."""
    storage = evaluate_all(fgraph, inputs)
    return [np.asarray(storage[variable]) for variable in fgraph.outputs]


def evaluate_all(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> dict[Variable, Any]:
    """Return the value of every variable of a graph."""
    graph, equivalent = fgraph.clone_get_equiv(check_integrity=False)
    for replaced in (give_signs(graph), TakeManyOperands().replace(graph)):
        equivalent = {v: replaced.get(w, w) for v, w in equivalent.items()}
    linker = PerformLinker(allow_gc=False).accept(graph)
    storage_in = [[np.array(array)] for array in inputs]
    # Otherwise inner graphs of Ops would be compiled in C.
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        run, _, _, _, _ = linker.make_all(input_storage=storage_in)
        run()
    return {v: run.storage_map[w][0] for v, w in equivalent.items() if w in run.storage_map}
