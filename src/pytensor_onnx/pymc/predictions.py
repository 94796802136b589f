"""Predict for new data with a fitted PyMC model by one call."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from arviz_base import dict_to_dataset
from pymc.backends.arviz import coords_and_dims_for_inferencedata, find_constants
from pymc.sampling.forward import observed_dependent_deterministics
from pymc.util import get_random_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from xarray import DataTree

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.named_dims import tensor_of
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.inputs import labels_of_columns
from pytensor_onnx.pymc.kept_programs import content_of, content_of_shared, kept_of
from pytensor_onnx.pymc.model_arguments import check_model, read_data, read_strings, unknown
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.posterior import SEED, posterior_of, read_posterior
from pytensor_onnx.pymc.predictor import PredictorRequest, conditioned, predictor_of
from pytensor_onnx.pymc.provenance import METADATA, RENAMED
from pytensor_onnx.user_code import untraced

_LOG = logging.getLogger("pymc")


@untraced()
@working("predicting")
def predict(
    model: pm.Model | None,
    trace: Any,
    new_data: Mapping[str, Any] | Any = None,
    *,
    outputs: str | Sequence[str] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    sample_vars: str | Sequence[str] = (),
    random_seed: Any = None,
    verify: bool = False,
) -> DataTree:
    """Draw predictions of a fitted PyMC model for new data, on ONNX Runtime.

    The result is that of `pymc.sample_posterior_predictive` with ``predictions=True`` after
    `pymc.set_data`, with other random numbers. The model keeps its data.

    The first call exports a program, as `export_predictor` does, and later calls run it, also for
    data of other values and sizes. Another program is exported once the model, the values of the
    trace, the outputs, or the length of a dimension without data containers differ. The last 8
    programs of a model are kept, as long as the model.

    Parameters
    ----------
    model
        The model, or another one with variables of the same names; None for that of the ``with``
        statement.
    trace
        The posterior: the result of `pymc.sample`, a Dataset, or a dict of arrays with the axes
        chain and draw first.
    new_data
        Arrays for data containers, by their names; others keep their values. Or a table of pandas
        or Polars: a column fills the container of its name, and a matrix is filled by the columns
        that its second dimension labels. The index of a table of pandas labels its rows.
    outputs
        Names of variables; by default the observed variables and the deterministics that read them.
    coords
        Labels of dimensions. A dimension that has labels and gets another length needs them.
    sample_vars
        Free variables that are drawn from their distributions although the trace has them, such as
        the effects of new groups. Free variables that the trace lacks are drawn too, unless the
        trace has the deterministics that need them.
    random_seed
        A seed as for `numpy.random.default_rng`.
    verify
        Whether to compare a program with PyTensor when it is exported, in some of the draws, which
        takes about as long as the export.

    Returns
    -------
    xarray.DataTree
        The groups ``predictions``, with the dimensions chain and draw first, and
        ``predictions_constant_data``.

    Raises
    ------
    ArgumentError
        If the model has no such variable, data container or dimension, or sizes do not fit.
    InputError
        If an array does not fit its data container.
    RunError
        If the prediction fails, such as for the index of a group that the trace does not have.
    UnsupportedOpError
        If a part of the model cannot be converted.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from pytensor_onnx.pymc import predict
    >>> with pm.Model(coords={"row": ["a", "b", "c"]}) as model:
    ...     x = pm.Data("x", np.zeros(3), dims="row")
    ...     mu = pm.Deterministic("mu", pm.Normal("slope") * x, dims="row")
    ...     y = pm.Normal("y", mu, 0.5, observed=np.zeros(3), dims="row")
    >>> trace = {"slope": np.array([[1.0, 2.0, 3.0]])}
    >>> new = {"x": [1.0, 10.0]}
    >>> tree = predict(model, trace, new, outputs=["mu", "y"], coords={"row": ["d", "e"]})
    >>> tree.predictions["mu"].mean("draw").values, tree.predictions["y"].shape
    (array([[ 2., 20.]]), (1, 3, 2))
    """
    model = pm.modelcontext(model)
    check_model(model)
    read = ExportOptions.of("predict", {"verify": verify})
    names = _names_of_outputs(model, outputs)
    new = _New(model, new_data, coords)
    graph = ModelGraph(model, lengths=new.lengths_without_data)
    computed = [model[name] for name in names]
    observed = {v.name for v in model.observed_RVs}
    # Observed variables are drawn anyway, and PyMC lets them be named.
    drawn = [name for name in read_strings(sample_vars, "sample_vars") if name not in observed]
    given, missing = conditioned(graph, trace, drawn, computed)
    while missing:
        drawn = [*drawn, *missing]
        given, missing = conditioned(graph, trace, drawn, computed)
    needed = set(ancestors(computed, blockers=given))
    # One of the others tells the number of draws.
    given = [v for v in given if v in needed] or given[:1]
    if not given:
        raise ArgumentError(
            "no variable of the model takes draws of the trace: pymc.sample_prior_predictive draws "
            "all of them from their distributions"
        )
    new.check_draws(given)
    new.check_containers(needed)
    posterior = {name: array[None] for name, array in read_posterior(trace, given).items()}
    kept = kept_of(model)
    nodes = list(ancestors(computed))
    variables = [*nodes, *given, *graph.containers]
    key = (
        *("predict", tuple(names), tuple(drawn), tuple(sorted(new.lengths_without_data.items()))),
        tuple(map(id, variables)),
        tuple(
            (name, tuple(model.named_vars_to_dims.get(name) or ()))
            for name in map(str, model.named_vars)
        ),
        tuple((name, content_of(array)) for name, array in posterior.items()),
        content_of_shared(v for v in nodes if v not in graph.containers),
    )
    program = kept.find(key)
    if program is None or (verify and program.verification.verdict == "not verified"):
        request = PredictorRequest(outputs=names, sample_vars=drawn)
        program = predictor_of(graph, posterior, request, read)
        kept.add(key, program, variables)
    needed -= set(given)
    resampled = sorted(str(v.name) for v in model.basic_RVs if v in needed)
    _LOG.info(f"Sampling: [{', '.join(resampled)}]")
    results = program(**_feed(program, new, random_seed))
    first = posterior_of(trace)[str(given[0].name)]
    return _tree(dict(zip(names, results, strict=True)), new, first)


def _names_of_outputs(model: pm.Model, outputs: str | Sequence[str] | None) -> list[str]:
    """Return the names of the outputs, by default those of PyMC."""
    if outputs is None:
        found = [*model.observed_RVs, *observed_dependent_deterministics(model)]
        if not found:
            raise ArgumentError("the model has no observed variables: name the outputs")
        return [str(v.name) for v in found]
    known = [str(v.name) for v in [*model.basic_RVs, *model.deterministics]]
    names = list(dict.fromkeys(read_strings(outputs, "outputs")))
    for name in names:
        if name not in known:
            raise unknown(name, "variable", known)
    if not names:
        raise ArgumentError("there are no outputs: outputs=['y']")
    return names


class _New:
    """New values of data containers and labels of dimensions, which the model does not get.

    Attributes
    ----------
    values
        Arrays by the names of the containers.
    coords
        Labels by the names of the dimensions.
    """

    def __init__(self, model: pm.Model, new_data: Any, coords: Any) -> None:
        self.model = model
        self._containers = {str(v.name): v for v in read_data(model, "inputs")}
        self.coords = {name: np.asarray(labels) for name, labels in (coords or {}).items()}
        for dim in self.coords:
            if dim not in model.coords:
                raise unknown(dim, "dimension", list(model.coords))
        self.values = self._read(new_data)
        lengths = self._lengths()
        for dim, labels in self.coords.items():
            if lengths.setdefault(dim, len(labels)) != len(labels):
                raise ArgumentError(
                    f"coords has {len(labels)} labels of {dim}, and the new data have "
                    f"{lengths[dim]} values along it"
                )
        self._changed = {
            dim: n for dim, n in lengths.items() if n != length_of(model, dim, self._containers)
        }
        for dim, n in self._changed.items():
            if model.coords.get(dim) is not None and dim not in self.coords:
                raise ArgumentError(
                    f"the dimension {dim} has {len(model.coords[dim])} labels and gets {n} values: "
                    f"give new ones, coords={{{dim!r}: [...]}}"
                )

    def _read(self, new_data: Any) -> dict[str, np.ndarray]:
        """Return arrays by the names of the containers that they are for."""
        if new_data is None:
            return {}
        if hasattr(new_data, "columns"):
            return self._of_table(new_data)
        if not isinstance(new_data, Mapping):
            raise ArgumentError(
                f"new_data is of type {type(new_data).__name__}: give a dict of arrays by the "
                "names of data containers, or a table of pandas or Polars"
            )
        values = {}
        for name, given in new_data.items():
            if name not in self._containers:
                advice = "wrap its values in pymc.Data to give others"
                hint = advice if name in self.model.named_vars else ""
                raise unknown(name, "data container", list(self._containers), hint)
            values[name] = self._array(name, given)
            found, rank = values[name].ndim, tensor_of(self._containers[name]).type.ndim
            if found != rank:
                raise ArgumentError(
                    f"new_data[{name!r}] has {found} dimensions: the data container has {rank}"
                )
        return values

    def _array(self, name: str, given: Any) -> np.ndarray:
        """Return new values of a container as an array, in its dtype where `set_data` casts."""
        dims, dtype = self._dims(name), np.dtype(self._containers[name].type.dtype)
        if dims and set(dims) == set(getattr(given, "dims", ())):
            given = given.transpose(*dims)
        array = np.asarray(given)
        are_floats = array.dtype.kind == dtype.kind == "f"
        return array.astype(dtype) if are_floats or np.can_cast(array.dtype, dtype) else array

    def _of_table(self, table: Any) -> dict[str, np.ndarray]:
        """Return columns of a table, and matrices of its columns."""
        columns, values = list(map(str, table.columns)), {}
        for name, container in self._containers.items():
            rank = tensor_of(container).type.ndim
            labels = labels_of_columns(self.model, name, rank)
            if rank == 1 and name in columns:
                values[name] = self._array(name, table[name])
            elif labels and set(labels) <= set(columns):
                matrix = np.column_stack([np.asarray(table[label]) for label in labels])
                values[name] = self._array(name, matrix)
        if not values:
            raise ArgumentError(
                f"no column of new_data is for a data container: it has {', '.join(columns)}, and "
                f"the model has {', '.join(self._containers) or 'none'}"
            )
        if hasattr(table, "index"):
            for name in values:
                dim = self._dims(name)[0]
                if dim is not None and self.model.coords.get(dim) is not None:
                    self.coords.setdefault(dim, np.asarray(table.index))
        return values

    def _dims(self, name: str) -> Sequence[str | None]:
        rank = tensor_of(self.model[name]).type.ndim
        return self.model.named_vars_to_dims.get(name) or [None] * rank

    def _lengths(self) -> dict[str, int]:
        """Return the lengths of the dimensions of new data."""
        found: dict[str, tuple[int, str]] = {}
        for name, array in self.values.items():
            for dim, n in zip(self._dims(name), array.shape, strict=True):
                if dim is None:
                    continue
                known, other = found.setdefault(dim, (n, name))
                if known != n:
                    raise ArgumentError(
                        f"new_data has {known} values along {dim} in {other} and {n} in {name}"
                    )
        return {dim: n for dim, (n, _) in found.items()}

    @property
    def lengths_without_data(self) -> dict[str, int]:
        """Changed lengths of dimensions that no container has, so that a program stores them."""
        with_data = {dim for name in self._containers for dim in self._dims(name)}
        found = {dim: n for dim, n in self._changed.items() if dim not in with_data}
        for dim, n in found.items():
            if not isinstance(self.model.dim_lengths[dim], SharedVariable):
                old = len(self.model.coords[dim] or ())
                raise ArgumentError(f"coords: the model fixes the length of {dim}, {old}, not {n}")
        return found

    def check_draws(self, given: Iterable[Variable]) -> None:
        """Raise if variables with draws have a dimension that gets another length."""
        for name in (str(v.name) for v in given):
            for dim in self.model.named_vars_to_dims.get(name, ()):
                if dim in self._changed:
                    raise ArgumentError(
                        f"the trace has draws of {name}, whose dimension {dim} gets "
                        f"{self._changed[dim]} values: sample_vars=[{name!r}] draws it from its "
                        "distribution"
                    )

    def check_containers(self, needed: Iterable[Variable]) -> None:
        """Raise if a needed container that keeps its values has a changed dimension."""
        needed = set(needed)
        for name, container in self._containers.items():
            for dim in self._dims(name) if container in needed and name not in self.values else ():
                if dim in self._changed:
                    raise ArgumentError(
                        f"{dim} gets {self._changed[dim]} values, and the data container {name} "
                        f"has it: give new_data[{name!r}] too"
                    )

    def value_of(self, name: str) -> np.ndarray:
        """Return the value of a container.

        A container that keeps its values and has a changed dimension is not needed but for its
        sizes, such as the observations.
        """
        if name in self.values:
            return self.values[name]
        value = np.asarray(self._containers[name].get_value(borrow=True))
        sizes = zip(self._dims(name), value.shape, strict=True)
        shape = tuple(self._changed.get(str(dim), n) for dim, n in sizes)
        return value if shape == value.shape else np.zeros(shape, value.dtype)

    def constants(self) -> dict[str, Any]:
        """Return the values of the data that PyMC calls constant."""
        return {name: self.values.get(name, x) for name, x in find_constants(self.model).items()}


def length_of(model: pm.Model, dim: str, containers: Mapping[str, SharedVariable]) -> int:
    """Return the length of a dimension of a model.

    Examples
    --------
    >>> with pm.Model(coords={"group": ["a", "b"]}) as model:
    ...     pass
    >>> length_of(model, "group", {})
    2
    """
    labels = model.coords.get(dim)
    if labels is not None:
        return len(labels)
    for name, container in containers.items():
        dims = list(model.named_vars_to_dims.get(name, ()))
        if dim in dims:
            return int(np.shape(container.get_value(borrow=True))[dims.index(dim)])
    return int(model.dim_lengths[dim].eval(mode="FAST_COMPILE"))


def _feed(program: ONNXProgram, new: _New, random_seed: Any) -> dict[str, Any]:
    """Return the inputs of a program."""
    renamed = json.loads(program.model.metadata_props[METADATA])[RENAMED]
    in_model = {short: name for name, short in renamed.items()}
    feed: dict[str, Any] = {}
    for value in program.model.graph.inputs:
        name = in_model.get(str(value.name), str(value.name))
        if name == SEED:
            generator = get_random_generator(random_seed, copy=False)
            feed[str(value.name)] = generator.integers(2**63 - 1, dtype="int64")
        else:
            feed[str(value.name)] = new.value_of(name)
    return feed


def _tree(arrays: Mapping[str, np.ndarray], new: _New, draws: Any) -> DataTree:
    """Return predictions as a tree, with chains and draws as those of the posterior."""
    dims = getattr(draws, "dims", ("chain", "draw"))
    sizes = dict(zip(dims, np.shape(draws), strict=False))
    coords, names = coords_and_dims_for_inferencedata(new.model)
    coords.update(new.coords)
    for dim in ("chain", "draw"):
        if dim in getattr(draws, "coords", ()):
            coords[dim] = draws.coords[dim].values
    shape = (sizes["chain"], sizes["draw"])
    library = sys.modules["pytensor_onnx"]
    predictions = dict_to_dataset(
        {name: array.reshape(*shape, *array.shape[1:]) for name, array in arrays.items()},
        inference_library=library,
        coords=coords,
        dims={name: ["chain", "draw", *names.get(name, [])] for name in arrays},
    )
    groups = {"/predictions": predictions}
    if constants := new.constants():
        groups["/predictions_constant_data"] = dict_to_dataset(
            constants, inference_library=library, coords=coords, dims=names, sample_dims=[]
        )
    return DataTree.from_dict(groups)
