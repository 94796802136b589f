"""Forward draws of a model, in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.basic import ScalarFromTensor, infer_shape_db
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable
from pytensor.xtensor.vectorization import vectorize_graph

from pytensor_onnx.compat.pytensor import shape_of_draw
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.named_dims import tensor_of, without_named
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.posterior import SEED, inlined, seeded

_DRAW = "__draw__"
_FEWEST_STREAMS = 2**16
"""Streams of a generator in a file of few draws."""


def forward(
    outputs: Sequence[Variable],
    given: Mapping[Variable, TensorVariable],
    n_draws: int,
    seed: TensorVariable,
    by_rows: Callable[[list[Variable], int], list[Variable]] | None = None,
) -> list[Variable]:
    """Return the outputs for each draw of the given variables, on a new first axis.

    All other random variables are drawn anew for each of these draws.

    Parameters
    ----------
    outputs
        Variables of a model.
    given
        Draws of variables of the model.
    n_draws
        Number of draws.
    seed
        int64, 0-d.
    by_rows
        Function that replaces random variables by draws from the keys of rows.

    Raises
    ------
    ArgumentError
        If draws are to be by rows, and a part has no form for a batch of draws.
    """
    graphs = _Graphs(outputs, given, inlines=by_rows is not None)
    batched = None if graphs.need_loop else _batched(graphs, list(given.values()), n_draws)
    if batched is not None and by_rows is not None:
        batched = by_rows(batched, n_draws)
    if batched is None and by_rows is not None:
        raise ArgumentError(
            "row_id: the model has a part that is computed for one draw after another, such as a "
            "time series: export without row_id, and score all rows in one call"
        )
    if batched is None:
        return _by_loop(outputs, given, n_draws, seed)
    return seeded(batched, seed, pt.constant(0, dtype="int64"), streams_of(n_draws))


class _Graphs:
    """Graphs of one draw, whose sizes follow from the data.

    The size of a draw that is that of its mean would otherwise get the axis of the draws.

    Attributes
    ----------
    given, outputs
        Inputs for the given variables, and the graphs.
    sources
        Nodes of the random variables that depend on no given or random variable.
    sizes
        Sizes of draws, by the inputs that stand for them.
    """

    def __init__(
        self,
        outputs: Sequence[Variable],
        given: Mapping[Variable, TensorVariable],
        *,
        inlines: bool = False,
    ) -> None:
        inputs = {v: v.type.clone(shape=draws.type.shape[1:])() for v, draws in given.items()}
        graphs = clone_replace(list(outputs), inputs, rebuild_strict=False)
        graphs = inlined(graphs) if inlines else graphs
        fgraph = FunctionGraph(outputs=graphs, features=[ShapeFeature()], clone=False)
        for node in fgraph.toposort():
            # PyTensor would batch the weight by an Op without a conversion.
            if isinstance(node.op, MinibatchRandomVariable):
                fgraph.replace(node.outputs[0], node.inputs[0])
        infer_shape_db.default_query.rewrite(fgraph)
        self.given = list(inputs.values())
        self.sources: list[Apply] = []
        self.sizes: dict[Variable, Variable] = {}
        self._varying = set[Variable](self.given)
        for node in fgraph.toposort():
            if isinstance(node.op, RandomVariable):
                # Draws of one generator would use the same words of its stream.
                fgraph.change_node_input(node, 0, node.inputs[0].type(), import_missing=True)
                new = self._with_size_of_data(fgraph, node)
                if self._varying.isdisjoint(new.inputs):
                    self.sources.append(new)
                self._varying.update(new.outputs)
            elif not self._varying.isdisjoint(node.inputs) or _draws(node):
                self._varying.update(node.outputs)
                if isinstance(node.op, ScalarFromTensor):
                    # PyTensor replaces it by all outputs of the node that has made its input.
                    copied = pt.tensor_copy(node.inputs[0])
                    fgraph.change_node_input(node, 0, copied, import_missing=True)
        self.outputs = fgraph.outputs

    def _with_size_of_data(self, fgraph: FunctionGraph, node: Apply) -> Apply:
        """Replace the size of a random variable by an input, and return the new node."""
        size = node.op.size_param(node)
        if not isinstance(size.type, TensorType):
            return node
        stand_in = size.type()
        self.sizes[stand_in] = size
        fgraph.replace(size, stand_in, import_missing=True)
        # PyTensor gives a size the batch axes of the first parameter only.
        first, *rest = node.op.dist_params(node)
        if first in self._varying or self._varying.isdisjoint(rest):
            return node
        new = _without_size(node)
        pairs = list(zip(node.outputs, new.outputs, strict=True))
        fgraph.replace_all(pairs, import_missing=True)
        return new

    @property
    def need_loop(self) -> bool:
        """Whether a part has no form for a batch of draws."""
        nodes = {v.owner for v in ancestors([*self.outputs, *self.sizes.values()]) if v.owner}
        return (
            any(isinstance(node.op, Scan) or _draws(node) for node in nodes)
            or not self._varying.isdisjoint(self.sizes.values())
            or any(self._is_refused(node) for node in nodes)
        )

    def _is_refused(self, node: Apply) -> bool:
        """Whether a random variable, such as that of `pymc.CAR`, takes no batch of parameters."""
        if not isinstance(node.op, RandomVariable):
            return False
        parameters = [
            x.type.clone(shape=(None, *x.type.shape))() if x in self._varying else x
            for x in node.op.dist_params(node)
        ]
        try:
            node.op.make_node(node.inputs[0], None, *parameters)
        except (TypeError, ValueError):
            return True
        return False


def without_weight(variable: Variable) -> Variable:
    """Return a random variable without the weight of its density by `total_size`."""
    node = variable.owner
    is_weighted = node is not None and isinstance(node.op, MinibatchRandomVariable)
    return node.inputs[0] if is_weighted else variable


def _draws(node: Apply) -> bool:
    """Whether a node other than a random variable draws from a generator."""
    return not isinstance(node.op, RandomVariable) and any(
        isinstance(v.type, RandomType) for v in node.inputs
    )


def _without_size(node: Apply) -> Apply:
    """Return a random variable without an argument for its size, which its first parameter has."""
    rng, size, first, *rest = node.inputs
    n_batch = first.type.ndim - node.op.ndims_params[0]
    core = [first.shape[axis] for axis in range(n_batch, first.type.ndim)]
    sizes = [size[i] for i in range(node.op.batch_ndim(node))]
    return node.op.make_node(rng, None, pt.broadcast_to(first, [*sizes, *core]), *rest)


def _of_draws(node: Apply, n_draws: int) -> Apply:
    """Return a random variable with an axis of draws in front."""
    op, (rng, size, *parameters) = node.op, node.inputs
    batch = shape_of_draw(op, size, parameters)[: op.batch_ndim(node)]
    size = pt.stack([pt.as_tensor(n, dtype="int64") for n in (n_draws, *batch)])
    return op.make_node(rng, size, *parameters)


def _batched(
    graphs: _Graphs, given: Sequence[TensorVariable], n_draws: int
) -> list[Variable] | None:
    """Return all draws at once, None where PyTensor has no batch of an operation."""
    replacements: dict[Variable, Variable] = dict(zip(graphs.given, given, strict=True))
    for node in graphs.sources:
        replacements[node.outputs[1]] = _of_draws(node, n_draws).outputs[1]
    try:
        batched = vectorize_graph(graphs.outputs, replacements, new_tensor_dims=(_DRAW,))
    except NotImplementedError:
        return None
    batched = [tensor_of(v) for v in batched]
    batched = [
        new if new.type.ndim > old.type.ndim else pt.repeat(new[None], n_draws, axis=0)
        for old, new in zip(graphs.outputs, batched, strict=True)
    ]
    return list(clone_replace(batched, graphs.sizes, rebuild_strict=False))


def _by_loop(
    outputs: Sequence[Variable],
    given: Mapping[Variable, TensorVariable],
    n_draws: int,
    seed: TensorVariable,
) -> list[Variable]:
    """Compute one draw after another."""
    variables, count = list(given), streams_of(n_draws)

    def step(number: TensorVariable, *values: TensorVariable) -> list[Variable]:
        replacements = {
            v: v.type.filter_variable(value) for v, value in zip(variables, values, strict=True)
        }
        results = clone_replace(list(outputs), replacements, rebuild_strict=False)
        results = [tensor_of(v) for v in results]
        return seeded(results, seed, number + 1, count)

    draws = pytensor.scan(
        step, [pt.arange(n_draws), *given.values()], return_updates=False, strict=False
    )
    return draws if isinstance(draws, list) else [draws]


def streams_of(n_draws: int) -> int:
    """Return the number of streams of each generator: one for each draw, and one for all.

    Examples
    --------
    >>> [streams_of(n) for n in (100, 65_535, 65_536)]
    [65536, 65536, 131072]
    """
    return max(_FEWEST_STREAMS, 1 << n_draws.bit_length())


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
