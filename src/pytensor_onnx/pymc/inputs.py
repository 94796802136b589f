"""Inputs of exported models: data, values and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.graph.names import identifier
from pytensor_onnx.named_dims import tensor_of
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph

BATCH = "point"
"""Name of the axis of the points of a batch."""

Axes = Mapping[int, str] | Sequence[int]
Beside = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Input:
    """An input of a file.

    Attributes
    ----------
    variable, example, axes
        The input, an array for it, and the axes of other sizes than the array's.
    free
        Whether it may have any real values.
    beside
        Function of another array for an input that may not.
    optional
        Whether it is left out of a file whose outputs do not depend on it.
    of_point
        Whether each point of a batch has its own.
    """

    variable: Variable
    example: np.ndarray
    axes: Axes
    free: bool = False
    beside: Beside | None = None
    optional: bool = False
    of_point: bool = False

    def moved(self, rng: np.random.Generator) -> np.ndarray:
        """Return a value near the example; an input that is not free keeps its example."""
        if self.beside is not None:
            return self.beside()
        if not self.free:
            return self.example
        step = rng.uniform(-0.5, 0.5, self.example.shape)
        return (self.example + step).astype(self.example.dtype)

    def at(self, values: Sequence[float]) -> np.ndarray:
        """Return an array of values in turns; an input that is not free keeps its example."""
        if not self.free:
            return self.example
        return np.resize(np.asarray(values, self.example.dtype), self.example.shape)

    def of_batch(self, rng: np.random.Generator) -> Input:
        """Return the input of a batch of points."""
        variable, axes = self.variable, self.axes
        if not isinstance(axes, Mapping):
            axes = {axis: f"{variable.name}_dim{axis}" for axis in axes}
        return Input(
            variable.type.clone(shape=(None, *variable.type.shape))(variable.name),
            np.stack([self.example, self.moved(rng)]),
            {0: BATCH, **{axis + 1: name for axis, name in axes.items()}},
            free=self.free,
        )


class Inputs:
    """Inputs of a file, in order."""

    def __init__(self, inputs: Sequence[Input] = ()) -> None:
        self._all = list(inputs)

    @property
    def variables(self) -> list[Variable]:
        """The variables of the graph."""
        return [x.variable for x in self._all]

    @property
    def examples(self) -> list[np.ndarray]:
        """An example array for each input."""
        return [x.example for x in self._all]

    @property
    def axes(self) -> dict[str, Axes]:
        """The axes of unknown sizes, by the names of the variables."""
        return {str(x.variable.name): x.axes for x in self._all if x.axes}

    def add(
        self, variable: Variable, example: Any, axes: Axes | None = None, **options: Any
    ) -> None:
        """Add an input; the options are further attributes of `Input`."""
        array = np.asarray(example, variable.type.dtype)
        self._all.append(Input(variable, array, axes or {}, **options))

    def add_data(self, graph: ModelGraph) -> None:
        """Add the data containers, whose axes have the names of their dimensions."""
        for container, variable in graph.containers.items():
            default = [None] * variable.type.ndim
            named = graph.model.named_vars_to_dims.get(str(variable.name), default)
            dims = graph.data_dims.get(str(variable.name), named)
            sizes = enumerate(zip(variable.type.shape, dims, strict=True))
            names = {i: dim or f"{variable.name}_{i}" for i, (n, dim) in sizes if n is None}
            self.add(variable, container.get_value(), names, optional=True)

    def add_values(self, graph: ModelGraph, *, vector: bool, optional: bool = False) -> None:
        """Add the free variables, the continuous ones as one vector if wanted."""
        self.add_continuous(graph, vector=vector, optional=optional)
        for value in graph.discrete:
            self.add(value.variable, value.start, value.open_axes, optional=True, of_point=True)

    def add_continuous(
        self,
        graph: ModelGraph,
        *,
        vector: bool,
        optional: bool = False,
        others: Mapping[Variable, Variable] | None = None,
    ) -> None:
        """Add the continuous variables, or others in their place."""
        beside = _beside(graph, vector) if graph.is_constrained else {}
        for variable, start, axes in continuous_inputs(graph, vector=vector):
            given = (others or {}).get(variable, variable)
            self.add(
                given,
                start,
                {0: f"{given.name}_size"} if vector and axes else axes,
                free=not graph.is_constrained,
                beside=beside.get(variable),
                of_point=True,
                optional=optional,
            )

    def drop_unused(self, outputs: Sequence[Variable]) -> None:
        """Remove the optional inputs on which no output depends."""
        used = set(ancestors(outputs))
        self._all = [x for x in self._all if not x.optional or x.variable in used]

    @property
    def longest(self) -> int:
        """The length of the longest open axis, which is that of the rows; 0 if there is none."""
        return max((x.example.shape[a] for x in self._all for a in x.axes), default=0)

    def shortened(self, size: int) -> list[np.ndarray] | None:
        """Return the examples with less data; None if none of their open axes is longer.

        Parameters
        ----------
        size
            New length of the open axes that have as many elements as the longest of them.
        """
        longest = self.longest
        if longest <= size:
            return None
        return [
            x.example[
                tuple(
                    slice(size if axis in x.axes and length == longest else None)
                    for axis, length in enumerate(x.example.shape)
                )
            ]
            for x in self._all
        ]

    def replaced(self, others: Mapping[Variable, Variable]) -> Inputs:
        """Return the inputs with others in the place of some variables."""
        return Inputs([replace(x, variable=others.get(x.variable, x.variable)) for x in self._all])

    def of_batch(self) -> tuple[Inputs, dict[Variable, TensorVariable]]:
        """Return the inputs of a batch of points, and a map from the inputs of one point to them.

        Raises
        ------
        ArgumentError
            If there are none of a point.
        """
        rng = np.random.default_rng(2)
        new = [x.of_batch(rng) if x.of_point else x for x in self._all]
        points = {
            old.variable: x.variable for old, x in zip(self._all, new, strict=True) if old.of_point
        }
        if not points:
            raise ArgumentError("the model has no free variables, and there is no batch of points")
        return Inputs(new), points

    def tails(self) -> list[list[np.ndarray]]:
        """Return points whose free values are at 40 and -40, and in turns at both."""
        if not any(x.free for x in self._all):
            return []
        return [[x.at(values) for x in self._all] for values in ((-40,), (40,), (-40, 40))]

    def moved(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return other arrays for the inputs that may have other values."""
        return [x.moved(rng) for x in self._all]


def continuous_inputs(
    graph: ModelGraph, *, vector: bool
) -> list[tuple[Variable, np.ndarray, Axes]]:
    """Return the inputs for the continuous values, their initial values and open axes."""
    if not vector:
        return [(value.variable, value.start, value.open_axes) for value in graph.continuous]
    if not graph.continuous:
        return []
    is_open = graph.point.type.shape == (None,)
    return [(graph.point, graph.start, {0: f"{POINT}_size"} if is_open else {})]


def _beside(graph: ModelGraph, vector: bool) -> dict[Variable, Beside]:
    """Return functions of constrained values beside the initial point."""
    values = cache(lambda: _constrained_beside(graph.model))
    if vector:
        return {graph.point: lambda: graph.raveled(values())}

    def of(name: str) -> Beside:
        return lambda: values()[name]

    return {value.variable: of(value.name) for value in graph.continuous}


def _constrained_beside(model: pm.Model) -> dict[str, np.ndarray]:
    """Return values of the free variables whose unconstrained ones are beside the initial point."""
    graph, rng = ModelGraph(model, data="stored"), np.random.default_rng(3)
    inputs = Inputs()
    inputs.add_values(graph, vector=False)
    compute = pytensor.function(
        inputs.variables,
        [tensor_of(v) for v in graph.constrained.values()],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    return dict(zip(graph.constrained, compute(*inputs.moved(rng)), strict=True))


def columns_of_data(graph: ModelGraph) -> dict[str, list[str]]:
    """Return the labels of the second dimension of data containers that are matrices.

    Examples
    --------
    >>> import numpy as np
    >>> with pm.Model(coords={"feature": ["age", "income"]}) as model:
    ...     x = pm.Data("x", np.zeros((3, 2)), dims=("person", "feature"))
    >>> columns_of_data(ModelGraph(model))
    {'x': ['age', 'income']}
    """
    names = [str(v.name) for v in graph.containers.values()]
    found = {name: labels_of_columns(graph.model, name, 2) for name in names}
    return {name: labels for name, labels in found.items() if labels}


def labels_of_columns(model: pm.Model, name: str, rank: int) -> list[str]:
    """Return the labels of the last of two dimensions of a variable, none if it has others."""
    dims = model.named_vars_to_dims.get(name, ())
    if len(dims) != rank or rank != 2:
        return []
    labels = list(map(str, model.coords.get(dims[1]) or ()))
    return labels if len(set(labels)) == len(labels) else []


def columns_of_summaries(
    model: pm.Model, name: str, rank: int, suffixes: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the columns of summaries of a variable, by the names of the outputs.

    Parameters
    ----------
    model, name, rank
        The variable, whose first axis has the rows.
    suffixes
        For each kind of summary the names of the numbers that it consists of, none if it is one.

    Examples
    --------
    >>> columns_of_summaries(pm.Model(), "y", 1, {"mean": [], "hdi": ["low", "high"]})
    {'y_hdi': ['y_hdi_low', 'y_hdi_high']}
    """
    labels = labels_of_columns(model, name, rank)
    columns = {}
    for kind, endings in suffixes.items():
        along = endings if rank == 1 else labels if not endings else []
        output = f"{name}_{kind}"
        named = [identifier(f"{output}_{identifier(ending)}") for ending in along]
        if named and len(set(named)) == len(named):
            columns[output] = named
    return columns
