"""Draw by the keys of rows, so that results do not depend on how rows are split into batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set

import numpy as np
import pytensor.tensor as pt
from pymc.pytensorf import resolve_shapes
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.compat.pytensor import shape_of_draw
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.functions.random.drawing import draw
from pytensor_onnx.functions.random.row_draws import RowState
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.seeds import SEED

_WAY_OUT = "export without row_id, and score all rows in one call"


class Keys:
    """The seed of all draws, and the keys of rows."""

    def __init__(self, graph: ModelGraph, seed: int | None, row_id: str | None) -> None:
        if seed is not None and not (isinstance(seed, int | np.integer) and 0 <= seed < 2**63):
            raise ArgumentError(f"seed={seed!r}: a seed is an integer from 0 to 2**63 - 1")
        self._graph, self._stored = graph, seed is not None
        shape = () if row_id is None else (1,)
        self._input = pt.tensor(SEED, dtype="int64", shape=shape)
        self.seed = self._input.reshape(()) if seed is None else pt.constant(np.int64(seed))
        self._row_id = None if row_id is None else pt.lvector(row_id)
        self._dim, self._sources = sources_of_rows(graph) if row_id is not None else ("", set())

    @property
    def by_rows(self) -> Callable[[list[Variable], int], list[Variable]] | None:
        """Function that draws a number of draws by the keys of rows, None without these."""
        if self._row_id is None:
            return None
        return lambda outputs, n: keyed_by_row(outputs, self._sources, n, self.seed, self._row_id)

    def check_columns(self, columns: Mapping[str, Collection[str]]) -> None:
        """Raise if the keys have the name of a column of data, which a table has once."""
        for name, features in columns.items():
            if self._row_id is not None and self._row_id.name in features:
                raise ArgumentError(
                    f"row_id={self._row_id.name!r} is a column of {name}: name the keys otherwise"
                )

    def add_to(self, inputs: Inputs) -> None:
        """Add the inputs, as far as outputs depend on them."""
        if self._row_id is not None:
            rows = next(c for c in self._graph.containers if c in self._sources).get_value()
            inputs.add(self._row_id, np.arange(len(rows)), {0: self._dim}, optional=True)
        if not self._stored:
            inputs.add(self._input, np.ones(self._input.type.shape), optional=True)


def sources_of_rows(graph: ModelGraph) -> tuple[str, set[Variable]]:
    """Return the name of the dimension of the rows, and the variables that its size follows from.

    Raises
    ------
    ArgumentError
        If data have first dimensions of several names.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model(coords={"person": [1, 2]}) as model:
    ...     x = pm.Data("x", np.zeros(2), dims="person")
    >>> sources_of_rows(ModelGraph(model))[0]
    'person'
    """
    model = graph.model
    dims = {
        container: model.named_vars_to_dims.get(str(container.name), (None,))[0]
        for container in graph.containers
        if container.type.ndim
    }
    names = set(dims.values())
    if len(names) != 1:
        found = ", ".join(sorted(map(str, names))) or "none"
        raise ArgumentError(
            f"row_id: the data have several first dimensions ({found}), and one has the rows: name "
            "the containers of rows, data=['x']"
        )
    [name] = names
    length = model.dim_lengths.get(name) if name else None
    sources = {*dims, *([length] if isinstance(length, Variable) else [])}
    return name or f"{next(iter(dims)).name}_0", sources


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """Write out graphs that draw within an Op, such as mixtures."""
    fgraph = FunctionGraph(outputs=list(outputs), clone=True, copy_inputs=False)
    while nodes := [node for node in fgraph.toposort() if _draws_within(node)]:
        for node in nodes:
            graph = node.op.fgraph.unfreeze()
            inner = dict(zip(graph.inputs, node.inputs, strict=True))
            results = clone_replace(graph.outputs, inner, rebuild_strict=False)
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)), import_missing=True)
    return list(fgraph.outputs)


def _draws_within(node: Apply) -> bool:
    return isinstance(node.op, OpFromGraph) and any(
        isinstance(v.type, RandomType) for v in node.inputs
    )


def keyed_by_row(
    outputs: Sequence[Variable],
    sources: Set[Variable],
    n_draws: int,
    seed: TensorVariable,
    keys: TensorVariable,
) -> list[Variable]:
    """Replace the random variables that have rows by draws from the keys of the rows.

    Parameters
    ----------
    outputs
        Graphs of all draws, on the first axis.
    sources
        Variables that the number of rows follows from.
    n_draws
        Number of draws.
    seed, keys
        int64: the seed, 0-d, and the key of each row.

    Raises
    ------
    ArgumentError
        If a variable has no draws by rows.
    """
    fgraph = FunctionGraph(outputs=list(outputs), clone=True, copy_inputs=False)
    words = seed.astype("uint64"), keys.astype("uint64")
    stream = 0
    for node in fgraph.toposort():
        if not any(isinstance(v.type, RandomType) for v in node.inputs):
            continue
        axes = _axes_of_rows(node, sources)
        if not axes:
            continue
        new = _drawn(node, RowState(*words, stream=stream, draws=n_draws, axis=axes[0]), axes)
        old = node.outputs[1]
        fgraph.replace(old, old.type.filter_variable(new), import_missing=True)
        stream += 1
    return list(fgraph.outputs)


def _axes_of_rows(node: Apply, sources: Set[Variable]) -> list[int]:
    """Return the axes of a draw whose sizes follow from the number of rows."""
    if not isinstance(node.op, RandomVariable):
        raise _refused(node, "it is no single distribution")
    shape = shape_of_draw(node.op, node.op.size_param(node), node.op.dist_params(node))
    sizes, static = infer_static_shape(shape)
    open_ = [axis for axis, known in enumerate(static) if known is None]
    resolved = resolve_shapes([pt.as_tensor(sizes[axis]) for axis in open_]) if open_ else []
    # The first axis has the draws.
    return [
        axis
        for axis, size in zip(open_, resolved, strict=True)
        if axis and not sources.isdisjoint(ancestors([size]))
    ]


def _drawn(node: Apply, state: RowState, axes: Sequence[int]) -> Variable:
    if len(axes) > 1:
        raise _refused(node, "two of its axes have the size of the data")
    if axes[0] >= node.op.batch_ndim(node):
        raise _refused(node, "its rows are drawn together")
    try:
        drawn = draw(node, state)
    except ValueError as error:
        raise _refused(node, str(error)) from error
    if drawn is None:
        raise _refused(node, "it has no sampler")
    return drawn[1]


def _refused(node: Apply, reason: str) -> ArgumentError:
    return ArgumentError(f"row_id: {node.op} is not drawn by rows, as {reason}: {_WAY_OUT}")
