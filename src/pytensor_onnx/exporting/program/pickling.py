"""Pickle programs and their graphs."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir
from pytensor.scan.op import Scan

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram

_NOT_COPIED = frozenset(
    (
        *("session", "model", "state", "_lock"),
        *("_reference", "_rewritten", "_values", "_owners"),
    )
)


def program_state(program: ONNXProgram, values: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a copy of a program: no session, and the model as bytes.

    Parameters
    ----------
    program
        The program.
    values
        Values of the variables that its graph updates.
    """
    names = {variable: value.name for variable, value in program._values.items()}
    graphs = program._reference, program._rewritten, program._owners, names
    return {
        **{k: v for k, v in vars(program).items() if k not in _NOT_COPIED},
        "state": values,
        "model": program.proto.SerializeToString(),
        "graphs": dump_graphs(graphs),
    }


def restore_program(program: ONNXProgram, state: dict[str, Any]) -> None:
    """Restore a program from the state of `program_state`."""
    program._reference, program._rewritten, program._owners, names = pickle.loads(
        state.pop("graphs")
    )
    vars(program).update(state)
    program.model = ir.from_proto(onnx.ModelProto.FromString(state["model"]))
    graph = program.model.graph
    named = {v.name: v for v in (*graph.inputs, *graph.initializers.values())}
    named.update((v.name, v) for node in graph for v in node.outputs)
    program._values = {v: named[name] for v, name in names.items() if name in named}


def dump_graphs(graphs: Any) -> bytes:
    """Return the pickle of graphs, for `pickle.loads`."""
    buffer = io.BytesIO()
    _GraphPickler(buffer).dump(graphs)
    return buffer.getvalue()


class _GraphPickler(pickle.Pickler):
    """Pickler of graphs without the compiled functions of loops, which cannot be pickled."""

    def reducer_override(self, value: Any) -> Any:
        """Rebuild a loop from its arguments; leave other values to `pickle`."""
        if not isinstance(value, Scan):
            return NotImplemented
        make, arguments, state, *_ = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return make, arguments, {**state, "_fn": None}
