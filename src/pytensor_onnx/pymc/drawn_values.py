"""A program of the variables of a model for each draw of its point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.pymc.drawn_graphs import values_of_points
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import make_program
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.posterior import SEED


@dataclass(frozen=True, kw_only=True)
class Values:
    """A program from points of chains to variables of the model.

    Attributes
    ----------
    program
        Program from points, seeds of chains and the number of steps before the first point to
        variables; None if there are none.
    names
        Names of the variables.
    """

    program: ONNXProgram | None
    names: list[str]

    @classmethod
    def of(
        cls, graph: ModelGraph, wanted: Mapping[str, Variable], options: ExportOptions
    ) -> Values:
        """Export the variables of a model without inputs for its data."""
        if not wanted:
            return cls(program=None, names=[])
        size = graph.start.size
        points = pt.tensor("points", dtype="float64", shape=(None, None, size))
        seed, first = pt.lvector(SEED), pt.lscalar("first")
        values = values_of_points(graph, points, wanted, seed, first)
        taken = Inputs()
        taken.add(points, np.zeros((1, 1, size)), {0: "chain", 1: "draw"})
        taken.add(seed, [1], {0: "chain"}, optional=True)
        taken.add(first, 0, optional=True)
        named = {f"output_{i}": value for i, value in enumerate(values.values())}
        program = make_program(graph, taken, named, options, description={})
        return cls(program=program, names=list(values))

    def __call__(
        self, points: np.ndarray, seeds: Sequence[int], first: int
    ) -> dict[str, np.ndarray]:
        """Return the variables of points of chains, of shape ``(chain, draw, ...)``."""
        if self.program is None:
            return {}
        session = self.program.session
        given = {"points": points, SEED: np.array(seeds, "int64"), "first": np.array(first)}
        results = session.run({name: given[name] for name in session.input_names})
        return dict(zip(self.names, results, strict=True))
