"""From a model's graphs to a program, for one point or a batch."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import onnx_ir as ir
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import resolve_shapes
from pytensor.conditional.op import ifelse
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable
from pytensor.xtensor.vectorization import vectorize_graph

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.program.build_program import export_graph
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.file_interface import Source, check_inputs, describe_rows
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.output_names import check_file
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.exporting.verification.results import evaluate
from pytensor_onnx.graph.names import Names, identifier
from pytensor_onnx.named_dims import is_named, tensor_of, without_named
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.pymc.inputs import BATCH, Inputs
from pytensor_onnx.pymc.model_arguments import LAYOUTS, read_choice, shared_name
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.provenance import METADATA, RENAMED, provenance


@dataclass(frozen=True)
class Details:
    """Names beside those of inputs and outputs, and the length of the data to verify on.

    Attributes
    ----------
    output_axes
        Names of the axes of unknown size that outputs begin with.
    others
        Names of the outputs in the model that begin with other axes.
    columns
        Names of the columns, by the names of inputs and outputs in the model; others than those
        of the file do not count.
    verified_length
        Length of the data that the model is verified on, if the examples are longer and may be
        shorter.
    share_data
        Whether the metadata have a sample of the data.
    """

    output_axes: Mapping[int, str] = field(default_factory=dict)
    others: Collection[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    verified_length: int | None = None
    share_data: bool = False


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of inputs and outputs in a file, by their names in the model.

    Raises
    ------
    ArgumentError
        If a name stands for two of the inputs and outputs.

    Examples
    --------
    >>> file_names(["1|group", "scale(x)", "scale_x"])
    {'1|group': '1_group', 'scale(x)': 'scale_x_1', 'scale_x': 'scale_x'}
    """
    taken = Names()
    for name in names:
        if names.count(name) > 1:
            raise shared_name(name)
        if identifier(name) == name:
            taken.reserve(name)
    return {name: name if identifier(name) == name else taken.unique(name) for name in names}


def make_program(
    graph: ModelGraph,
    inputs: Inputs,
    outputs: Mapping[str, Variable],
    options: ExportOptions,
    *,
    description: Mapping[str, Any],
    details: Details = Details(),
    batch: bool = False,
) -> ONNXProgram:
    """Export graphs of a model, with its description in the metadata.

    In names, ``_`` stands for characters that identifiers do not have; the metadata have the names
    that differ from those of the model. The model is verified at the initial point, which may be
    zero, and at one beside it. In the model of a batch, these points are two of one, which is
    compared with the graphs of a single point, too.
    """
    inputs.drop_unused(list(outputs.values()))
    output_axes = details.output_axes
    if batch:
        inputs, outputs = _of_batch(inputs, outputs, options.verify)
        output_axes = {0: BATCH, **output_axes}
    given = [str(v.name) for v in inputs.variables]
    names = file_names([*given, *outputs])
    known = {names[k]: v for k, v in details.columns.items() if k in names}
    features = {**known, **(options.feature_names or {})}
    inputs, outputs = _renamed(inputs, outputs, names)
    program = export_graph(
        inputs.variables,
        list(outputs.values()),
        replace(
            options,
            path=None,
            output_names=[names[name] for name in outputs],
            dynamic_axes=inputs.axes,
            example_inputs=inputs.examples,
            feature_names=features,
            verify=False,
        ),
    )
    conversion = program.conversion
    program.conversion = replace(conversion, changes=(*conversion.changes, *graph.changes))
    renamed = {name: new for name, new in names.items() if name != new}
    program.model.metadata_props[METADATA] = provenance(
        graph, given, share_data=details.share_data, **{RENAMED: renamed}, **description
    )
    others = {names[name] for name in details.others}
    for value in program.model.graph.outputs:
        if value.name not in others:
            _name_axes(value, output_axes)
    describe_rows(program.model, features)
    if options.verify:
        _verify(program, inputs, details.verified_length)
    if options.path is not None:
        program.save(options.path)
    return program


def _verify(program: ONNXProgram, inputs: Inputs, size: int | None) -> None:
    """Verify a program on short data, or else at the examples and at a point beside them.

    With a size of short data, the verification names the number of rows that were compared.
    """
    rows = inputs.longest
    if (short := inputs.shortened(size) if size else None) is not None:
        try:
            program.verify_on([_as_inputs(program, short)])
        except VerificationError as error:
            # Data may have to fit each other, and fail when they are shorter.
            if error.verification is not None:
                raise
        else:
            part = f"{size:,} of {rows:,} rows"
            program.verification = replace(program.verification, part=part)
            return
    points = [inputs.examples, inputs.moved(np.random.default_rng(1))]
    if all(map(np.array_equal, *points)):
        points.pop()
    tails = [_as_inputs(program, point) for point in inputs.tails()]
    program.verify_on([_as_inputs(program, point) for point in points], tails=tails)
    if size and rows:
        part = f"{rows:,} of {rows:,} rows"
        program.verification = replace(program.verification, part=part)


def _of_batch(
    inputs: Inputs, outputs: Mapping[str, Variable], verify: bool
) -> tuple[Inputs, dict[str, Variable]]:
    """Return inputs and outputs for a batch of points."""
    inputs, outputs = _as_tensors(inputs, outputs)
    new, points = inputs.of_batch()
    batched = dict(zip(outputs, of_batch(list(outputs.values()), points), strict=True))
    if verify:
        check_batch(outputs, batched, inputs.variables, points, new.examples)
    return new, batched


def _renamed(
    inputs: Inputs, outputs: Mapping[str, Variable], names: Mapping[str, str]
) -> tuple[Inputs, Mapping[str, Variable]]:
    """Return inputs with their names in the file, and the outputs as graphs of them."""
    new = {
        v: v.type(name=names[str(v.name)]) for v in inputs.variables if v.name != names[str(v.name)]
    }
    if not new:
        return inputs, outputs
    graphs = clone_replace(list(outputs.values()), new)
    return inputs.replaced(new), dict(zip(outputs, graphs, strict=True))


def _as_tensors(
    inputs: Inputs, outputs: Mapping[str, Variable]
) -> tuple[Inputs, Mapping[str, Variable]]:
    """Return tensors in place of inputs with named dimensions, which have no place for an axis."""
    tensors = {v: tensor_of(v).type(name=v.name) for v in inputs.variables if is_named(v.type)}
    if not tensors:
        return inputs, outputs
    given = {v: v.type.filter_variable(tensor) for v, tensor in tensors.items()}
    graphs = clone_replace(list(outputs.values()), given, rebuild_strict=False)
    return inputs.replaced(tensors), dict(zip(outputs, without_named(graphs), strict=True))


def _as_inputs(program: ONNXProgram, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Cast arrays to the dtypes of a program's inputs, which `precision` makes narrower."""
    pairs = zip(arrays, program.inputs, strict=True)
    return [x.astype(v.dtype.numpy()) if v.dtype else x for x, v in pairs]


def _name_axes(value: ir.Value, names: Mapping[int, str]) -> None:
    """Name the axes of unknown size that a value has."""
    dims = list(dims_of(value) or ())
    for axis, name in names.items():
        if axis < len(dims) and not isinstance(dims[axis], int):
            dims[axis] = name
    value.shape = ir.Shape(dims)


_NOT_TAKEN = ("output_names", "state_path", "dynamic_axes", "example_inputs")


def read_options(
    export: Callable[..., Any],
    path: str | os.PathLike | None,
    verify: bool,
    given: Mapping[str, Any],
) -> ExportOptions:
    """Return the options of an export of a model, before all work.

    Parameters
    ----------
    export
        The function, whose own arguments a misspelt keyword may mean.

    Raises
    ------
    ArgumentError, MissingFolderError
        For an unknown keyword, or a path that cannot be written.
    """
    own = [name for name in inspect.signature(export).parameters if name != "options"]
    given = {"path": path, "verify": verify, **given}
    options = ExportOptions.of(export.__name__, given, others=own, without=_NOT_TAKEN)
    check_file(path)
    return options


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of `export_logp`, `export_transforms` and `export_model`.

    Attributes
    ----------
    export
        Options of the export.
    vector
        Whether all continuous variables are one input.
    data
        Which data containers become inputs.
    batch
        Whether the file computes any number of points at once.
    constrained
        Whether the inputs are the variables themselves.
    jacobian, propto
        Which terms the density has.
    """

    export: ExportOptions
    vector: bool
    data: str | Iterable[str]
    batch: bool
    constrained: bool = False
    jacobian: bool = True
    propto: bool = False

    @classmethod
    def of(cls, export: ExportOptions, inputs: str, **shared: Any) -> Self:
        """Return the options of a layout of the inputs, ``"vector"`` or ``"named"``."""
        vector = read_choice(inputs, LAYOUTS, "inputs") == "vector"
        return cls(export=export, vector=vector, **shared)

    def graph_of(self, model: pm.Model) -> ModelGraph:
        """Return the graphs of a model."""
        return ModelGraph(model, constrained=self.constrained, data=self.data)


_AXIS = "__point__"


def of_batch(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Return the outputs for each of the points, on a new first axis.

    Loops and random draws are computed for one point after another, all else for all at once.

    Parameters
    ----------
    outputs
        Graphs of one point, of tensors.
    points
        For each input that belongs to a point, the batch of its values.

    Examples
    --------
    >>> x, xs = pt.vector("x"), pt.matrix("xs")
    >>> (sums,) = of_batch([x.sum()], {x: xs})
    >>> sums.eval({xs: [[1.0, 2.0], [3.0, 4.0]]}, mode="FAST_COMPILE")
    array([3., 7.])
    """
    # First, so that no size depends on the points.
    rewritten = rewrite_graph(copied(outputs), include=("ShapeOpt", "canonicalize"), clone=False)
    results: dict[int, TensorVariable] = {}
    at_once = [i for i, output in enumerate(rewritten) if not _need_loop(output)]
    try:
        vectorized = vectorized_graph([rewritten[i] for i in at_once], points)
        results.update(zip(at_once, vectorized, strict=True))
    except NotImplementedError:
        pass
    rest = [i for i in range(len(outputs)) if i not in results]
    for group, used in _by_points([outputs[i] for i in rest], points):
        loop = _by_loop([outputs[rest[i]] for i in group], used)
        results.update(zip([rest[i] for i in group], loop, strict=True))
    return [results[i] for i in range(len(outputs))]


def vectorized_graph(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Return the outputs for all points at once.

    Raises
    ------
    NotImplementedError
        If PyTensor has no batch of an operation.
    """
    if not outputs:
        return []
    batched = vectorize_graph(list(outputs), points, new_tensor_dims=(_AXIS,))
    n = next(iter(points.values())).shape[0]
    return [
        new if new.type.ndim > old.type.ndim else pt.broadcast_to(new, (n, *new.shape))
        for old, new in zip(outputs, batched, strict=True)
    ]


def check_batch(
    outputs: Mapping[str, Variable],
    batched: Mapping[str, Variable],
    inputs: Sequence[Variable],
    points: Mapping[Variable, TensorVariable],
    arrays: Sequence[np.ndarray],
) -> None:
    """Raise an error if the results of a batch and of a loop over its points differ.

    Parameters
    ----------
    outputs, batched
        Graphs of one point, and those of the batch.
    inputs
        Inputs of the graphs of one point.
    points
        As in `of_batch`.
    arrays
        Inputs of the batch.

    Raises
    ------
    VerificationError
        If numbers of a point differ. Numbers that are NaN for the one point are not compared.
    """
    of_all = evaluate(_graph([points.get(v, v) for v in inputs], list(batched.values())), arrays)
    single = _graph(inputs, list(outputs.values()))
    for i in range(next(len(x) for v, x in zip(inputs, arrays, strict=True) if v in points)):
        row = [x[i] if v in points else x for v, x in zip(inputs, arrays, strict=True)]
        for name, found, expected in zip(outputs, of_all, evaluate(single, row), strict=True):
            if not _agree(found[i], expected):
                raise VerificationError(
                    f"output {name} of a batch differs from that of its point {i} alone: export it "
                    f"without batch, and report the model"
                )


def _agree(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether arrays agree but for rounding, where the second is not NaN."""
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(found, expected)
    with np.errstate(all="ignore"):
        tolerance = np.sqrt(np.finfo(expected.dtype).eps)
        scale = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
        close = np.isclose(found, expected, rtol=tolerance, atol=tolerance * scale)
    return bool(np.all(close | np.isnan(expected)))


def copied(outputs: Sequence[Variable]) -> list[Variable]:
    """Return a copy of graphs, with the same inputs."""
    return list(FunctionGraph(outputs=list(outputs), clone=True, copy_inputs=False).outputs)


def _graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> FunctionGraph:
    """Return a graph with constants in place of shared variables."""
    values = {v: v.get_value(borrow=False) for v in check_inputs(inputs, outputs)}
    source = Source(inputs=list(inputs), results=list(outputs), updates={}, values=values)
    return reference_graph(source, None)


def _need_loop(output: Variable) -> bool:
    """Whether an output has a part without a form for a batch."""
    return any(v.owner is not None and _has_no_batch(v.owner) for v in ancestors([output]))


def _has_no_batch(node: Apply) -> bool:
    return isinstance(node.op, Scan) or any(isinstance(v.type, RandomType) for v in node.inputs)


def _by_points(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[tuple[list[int], dict[Variable, TensorVariable]]]:
    """Return the positions of outputs of the same inputs of a point, with these inputs."""
    groups: dict[tuple[Variable, ...], list[int]] = {}
    for i, output in enumerate(outputs):
        behind = set(ancestors([output]))
        used = tuple(v for v in points if v in behind) or tuple(points)[:1]
        groups.setdefault(used, []).append(i)
    return [(group, {v: points[v] for v in used}) for used, group in groups.items()]


def _by_loop(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Compute the outputs of one point after another."""
    variables = list(points)

    def at_point(*values: TensorVariable) -> list[Variable]:
        given = {v: v.type.filter_variable(x) for v, x in zip(variables, values, strict=True)}
        return list(clone_replace(list(outputs), given, rebuild_strict=False))

    rows = pytensor.scan(
        at_point,
        list(points.values()),
        return_updates=False,
        return_list=True,
        strict=False,
        name="points",
    )
    return [_sized(row, output, variables) for row, output in zip(rows, outputs, strict=True)]


def _sized(
    rows: TensorVariable, output: Variable, variables: Collection[Variable]
) -> TensorVariable:
    """Return rows of a loop with the sizes of one, which a loop over no points does not know."""
    if None not in output.type.shape:
        return rows
    (shape,) = resolve_shapes([output.shape])
    if any(v in variables or isinstance(v.type, RandomType) for v in ancestors([shape])):
        return rows
    none = pt.zeros((0, *(shape[i] for i in range(output.type.ndim))), output.type.dtype)
    return ifelse(pt.eq(rows.shape[0], 0), none, rows)
