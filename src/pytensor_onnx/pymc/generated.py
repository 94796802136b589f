"""Draw the observed variables of a model at a point."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.named_dims import without_named
from pytensor_onnx.pymc.forward import streams_of
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.seeds import SEED, seeded


def seed_variable() -> TensorVariable:
    """Return the input for the seed."""
    return pt.lscalar(SEED)


def add_seed(inputs: Inputs, seed: TensorVariable) -> None:
    """Add the seed to the inputs of a file; each point of a batch has its own."""
    inputs.add(seed, 1, optional=True, of_point=True, beside=lambda: np.array(2))


def generated_quantities(graph: ModelGraph, seed: TensorVariable) -> dict[str, Variable]:
    """Return a draw of each observed variable, as a function of the values.

    Variables that depend on others of them depend on their draws.

    Parameters
    ----------
    graph
        The graphs of the model.
    seed
        int64, 0-d.
    """
    observed = graph.model.observed_RVs
    given = {rv: graph.constrained[str(rv.name)] for rv in graph.model.free_RVs}
    draws = without_named(clone_replace(list(observed), given, rebuild_strict=False))
    draws = seeded(draws, seed, 0, streams_of(1))
    return dict(zip([str(v.name) for v in observed], draws, strict=True))
