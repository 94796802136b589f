"""The posterior of a fitted model, its summaries and keys of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import resolve_shapes
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.compat.pytensor import shape_of_draw
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.functions.random.drawing import RowState, draw
from pytensor_onnx.ops.encoded import Decode
from pytensor_onnx.ops.sorting import OrderStatistics
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.model_arguments import unknown
from pytensor_onnx.pymc.model_graphs import ModelGraph

_FORMS = (
    "give the result of pymc.sample, a Dataset with the dimensions chain and draw, or a dict of "
    "arrays whose first two axes are these"
)


def read_posterior(
    idata: Any, variables: Collection[Variable], draws: int | None = None
) -> dict[str, np.ndarray]:
    """Return the draws of variables by name, their chains in one axis.

    Parameters
    ----------
    idata
        Result of `pymc.sample`, a Dataset, or a dict of arrays by name.
    variables
        The variables, which have names.
    draws
        Number of draws to take, at equal distances; all unless given.

    Raises
    ------
    ArgumentError
        If there are no draws of a variable, or they have the wrong shape.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> draws = {"mu": np.arange(8.0).reshape(2, 4)}
    >>> read_posterior(draws, [pt.scalar("mu")], 4)
    {'mu': array([0., 2., 4., 6.])}
    """
    posterior = posterior_of(idata)
    found = {}
    for variable in variables:
        name = str(variable.name)
        if name not in posterior:
            raise unknown(name, "draws of", list(map(str, posterior)))
        found[name] = _array(posterior[name], variable)
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) > 1:
        raise ArgumentError(f"the variables have different numbers of draws: {counts}")
    n = next(iter(counts.values()), 0)
    if draws is None:
        return found
    if not 0 < draws <= max(n, 1):
        raise ArgumentError(f"draws={draws}: the posterior has {n}")
    chosen = np.arange(draws) * n // draws
    return {name: np.ascontiguousarray(array[chosen]) for name, array in found.items()}


def posterior_of(idata: Any) -> Any:
    """Return the group of posterior draws, a mapping of names.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    group = getattr(idata, "posterior", None)
    if group is None and hasattr(idata, "children") and not idata.data_vars:
        raise ArgumentError(f"idata has no group posterior: {_FORMS}")
    posterior = idata if group is None else group
    if not isinstance(posterior, Mapping) and not hasattr(posterior, "data_vars"):
        raise ArgumentError(f"idata is of type {type(idata).__name__}: {_FORMS}")
    return posterior


def _array(values: Any, variable: Variable) -> np.ndarray:
    """Return draws of a variable, as an array of its dtype with one axis for the draws."""
    dims = getattr(values, "dims", None)
    if dims is not None and {"chain", "draw"} <= set(dims):
        values = values.transpose("chain", "draw", ...)
    array = np.asarray(values)
    shape = variable.type.shape
    fits = array.ndim == len(shape) + 2 and all(
        known in (None, size) for known, size in zip(shape, array.shape[2:], strict=False)
    )
    if not fits or not np.can_cast(array.dtype, variable.type.dtype, "same_kind"):
        wanted = ", ".join("?" if n is None else str(n) for n in shape)
        raise ArgumentError(
            f"the draws of {variable.name} are {array.dtype}{list(array.shape)}: the model has "
            f"{variable.type.dtype}[chain, draw{wanted and ', '}{wanted}]"
        )
    return array.reshape(-1, *array.shape[2:]).astype(variable.type.dtype)


def check_lengths(model: pm.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise if the draws of a variable do not have the length of its dimensions' coordinates.

    Raises
    ------
    ArgumentError
        If sizes differ.
    """
    for name, array in arrays.items():
        for axis, dim in enumerate(model.named_vars_to_dims.get(name, ())):
            labels = model.coords.get(dim)
            if labels is not None and len(labels) != array.shape[axis + 1]:
                raise ArgumentError(
                    f"the draws of {name} have {array.shape[axis + 1]} values along {dim}: the "
                    f"model has {len(labels)}, for which sample_vars=[{name!r}] draws it from its "
                    "distribution"
                )


MASS_OF_HDI = 0.94


def mean(draws: TensorVariable) -> TensorVariable:
    """Return the mean of draws.

    Examples
    --------
    >>> float(mean(pt.constant([1.0, 2.0, 6.0])).eval(mode="FAST_COMPILE"))
    3.0
    """
    return as_float(draws).mean(axis=0)


def standard_deviation(draws: TensorVariable) -> TensorVariable:
    """Return the standard deviation of draws, with the divisor of a sample.

    Examples
    --------
    >>> float(standard_deviation(pt.constant([1.0, 2.0, 3.0])).eval(mode="FAST_COMPILE"))
    1.0
    """
    return as_float(draws).std(axis=0, ddof=1)


def quantiles(draws: TensorVariable, levels: Sequence[float], count: int) -> TensorVariable:
    """Return quantiles of a number of draws, the levels on the last axis, as `numpy.quantile` does.

    Examples
    --------
    >>> quantiles(pt.constant([1.0, 2.0, 4.0]), [0.5, 0.75], 3).eval(mode="FAST_COMPILE")
    array([2., 3.])
    """
    draws = as_float(draws)
    position = np.array(levels, "float64") * (count - 1)
    below = np.clip(np.floor(position), 0, max(count - 2, 0)).astype("int64")
    above = np.minimum(below + 1, count - 1)
    places = np.unique([below, above])
    ordered = pt.moveaxis(OrderStatistics(count, places.tolist())(draws), 0, -1)
    lower, upper = (ordered[..., np.searchsorted(places, x)] for x in (below, above))
    return lower + (position - below).astype(draws.type.dtype) * (upper - lower)


def highest_density_interval(
    draws: TensorVariable, count: int, mass: float = MASS_OF_HDI
) -> TensorVariable:
    """Return the narrowest interval that has a part of a number of draws, as ArviZ does.

    Its ends are on the last axis.

    Examples
    --------
    >>> draws = pt.constant([0.0, 5.0, 5.1, 5.2, 9.0])
    >>> highest_density_interval(draws, 5, 0.5).eval(mode="FAST_COMPILE")
    array([5. , 5.2])
    """
    inside = int(mass * count)
    candidates = count - inside
    places = sorted({*range(candidates), *range(inside, count)})
    ordered = OrderStatistics(count, places)(as_float(draws))
    lower, upper = ordered[:candidates], ordered[-candidates:]
    first = pt.argmin(upper - lower, axis=0)[None]
    ends = [pt.take_along_axis(end, first, axis=0)[0] for end in (lower, upper)]
    return pt.stack(ends, axis=-1)


def as_float(draws: TensorVariable) -> TensorVariable:
    """Return draws as floats."""
    return draws if draws.type.dtype.startswith("float") else draws.astype("float64")


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


SEED = "seed"
"""Name of the input of a file that draws."""


def state_of_seed(
    seed: TensorVariable, stream: TensorVariable | int, position: TensorVariable | int = 0
) -> TensorVariable:
    """Return the state of a generator whose key is the seed and the number of a stream.

    Parameters
    ----------
    seed
        int64, 0-d.
    stream
        Number of the stream.
    position
        Number of words that come before.

    Examples
    --------
    >>> state_of_seed(pt.constant(2**32 + 5), 3).eval(mode="FAST_COMPILE")
    array([4294967301,          3,          0], dtype=uint64)
    """
    words = [seed, stream, position]
    return pt.stack([pt.as_tensor(word).astype("uint64") for word in words])


def seeded(
    outputs: Sequence[Variable], seed: TensorVariable, number: TensorVariable | int, count: int
) -> list[Variable]:
    """Replace the generators of a graph by streams of a seed.

    Parameters
    ----------
    outputs
        The graphs.
    seed
        int64, 0-d.
    number
        Number of the first stream of the first generator.
    count
        Number of streams that each generator has.
    """
    generators = [v for v in graph_inputs(outputs) if isinstance(v.type, RandomType)]
    streams = {
        generator: Decode(generator.type)(state_of_seed(seed, number + i * count))
        for i, generator in enumerate(dict.fromkeys(generators))
    }
    return list(clone_replace(list(outputs), streams)) if streams else list(outputs)
