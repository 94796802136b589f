"""Export in narrower floats than a graph is written in, and measure the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx.changes import Change
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.exporting.requests.signature import WIDER
from pytensor_onnx.exporting.verification.array_differences import relative_error
from pytensor_onnx.exporting.verification.float_conversion import FloatConversion
from pytensor_onnx.exporting.verification.reference_evaluation import evaluate_all
from pytensor_onnx.exporting.verification.rounding import arrays_in_double
from pytensor_onnx.ops.random.draws import Draw
from pytensor_onnx.rewriting.engine.inner_graphs import inner_nodes
from pytensor_onnx.rewriting.engine.keep_origins import KeepOrigins
from pytensor_onnx.user_code import user_line

_SHOWN = 5
_NOTABLE = 4


@dataclass(frozen=True)
class Narrowing:
    """The reference graph in its own dtypes and in narrower floats.

    Attributes
    ----------
    precision
        Dtype of the floats.
    written, narrow
        Both graphs.
    variables
        Variables of the narrow graph, by those of the written one.
    """

    precision: str
    written: FunctionGraph
    narrow: FunctionGraph
    variables: dict[Variable, Variable]

    def losses(
        self,
        arrays: Sequence[np.ndarray],
        names: Sequence[str],
        narrow: Mapping[Variable, Any] | None = None,
    ) -> list[Change]:
        """Describe the errors of outputs, and the operations that add most to them.

        Parameters
        ----------
        arrays
            Inputs of the narrow graph.
        names
            Names of the outputs.
        narrow
            Values of the variables of the narrow graph for these inputs; evaluated unless given.
        """
        nodes = self.written.apply_nodes
        within = (inner for node in nodes for inner in inner_nodes(node.op))
        if any(isinstance(node.op, Draw | RandomVariable) for node in (*nodes, *within)):
            text = f"random numbers drawn in {self.precision} are others than in float64"
            return [Change(text)]
        exact = evaluate_all(self.written, arrays_in_double(arrays))
        narrow = evaluate_all(self.narrow, arrays) if narrow is None else narrow

        def error(variable: Variable) -> float:
            new = self.variables.get(variable)
            if new not in narrow or variable not in exact:
                return 0.0
            return relative_error(narrow[new], exact[variable])

        found = [
            Change(f"{name}: error {error(v):.1e} of the largest value", error=error(v))
            for name, v in zip(names, self.written.outputs, strict=True)
        ]
        unit = float(np.finfo(self.precision).eps)
        losses = []
        for node in self.written.toposort():
            before = max([unit, *map(error, node.inputs)])
            after = max(map(error, node.outputs))
            if after > _NOTABLE * before:
                losses.append((after / before, node))
        losses.sort(key=lambda entry: -entry[0])
        for factor, node in losses[:_SHOWN]:
            result = node.outputs[0]
            called = f" ({result.name})" if result.name else ""
            text = f"{node.op}{called} multiplies the error by {factor:.0f}"
            found.append(Change(text, error=factor, line=user_line(result)))
        return found


def narrowed_for(
    fgraph: FunctionGraph, precision: str | None, default: str | None
) -> tuple[Narrowing | None, list[Change]]:
    """Return a graph in the floats that an export asks for or its target has, and what to report.

    Parameters
    ----------
    fgraph
        The graph.
    precision
        Dtype that the export asks for.
    default
        Widest dtype of the target, for a graph whose inputs and outputs have none but wider floats.
    """
    if precision is not None:
        return (None if precision == "float64" else narrowed(fgraph, precision)), []
    dtypes = {getattr(v.type, "dtype", "") for v in (*fgraph.inputs, *fgraph.outputs)}
    # The dtype of a typed list is a type.
    floats = {dtype for dtype in dtypes if isinstance(dtype, str) and dtype.startswith("float")}
    # Whoever mixes dtypes has chosen them; sums of float32 accumulate in float64.
    if default is None or not floats or not floats <= set(WIDER[default]):
        return None, []
    note = f'floats of {default} in place of wider ones: precision="float64" keeps these'
    return narrowed(fgraph, default), [Change(note)]


def narrowed(fgraph: FunctionGraph, precision: str) -> Narrowing:
    """Return a graph with all wider floats replaced by floats of a precision.

    Integers that meet floats are cast to them, sums of float16 are accumulated in float32, and
    random numbers are drawn in the new dtype: they are other numbers than in float64.

    Raises
    ------
    ArgumentError
        If there is no such precision.
    PyTensorONNXError
        If constants overflow in the new dtype or become zero; the message names all of them.
    """
    if precision not in WIDER:
        known = ", ".join(map(repr, WIDER))
        raise ArgumentError(f"precision is one of {known}, not {precision!r}")
    conversion = FloatConversion(WIDER[precision], precision)
    graph = conversion.of_graph(fgraph)
    if conversion.lost:
        listing = "\n".join(
            f"- {_described(constant.data)} {(user and user_line(user.outputs[0])) or ''}".rstrip()
            for constant, user in conversion.lost.items()
        )
        raise PyTensorONNXError(
            f"constants have no value in {precision}: write others, or export with "
            f'precision="float64"\n{listing}'
        )
    graph.attach_feature(KeepOrigins())
    return Narrowing(precision, fgraph, graph, conversion.variables)


def _described(data: Any) -> str:
    numbers = np.asarray(data)
    return f"{numbers.item()!r}" if numbers.size == 1 else f"an array up to {np.abs(numbers).max()}"
