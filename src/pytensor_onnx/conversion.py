"""Convert a PyTensor graph to an onnx_ir model: inputs, nodes, outputs, names, metadata."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx._version import __version__
from pytensor_onnx.digests import content_key
from pytensor_onnx.dispatch.networks import opset_of
from pytensor_onnx.dispatch.registry.basic import check_type
from pytensor_onnx.dispatch.registry.graphs import GraphConverter
from pytensor_onnx.dynamic_axes import (
    NamedAxes,
    check_names,
    keep_names_of_outputs,
    name_output_dims,
    reserve_names,
)
from pytensor_onnx.errors import Problem, PyTensorONNXError, UnsupportedCase, raise_problems
from pytensor_onnx.graph.builder import Builder, drop_checks_of_inputs
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope, live_nodes
from pytensor_onnx.operators.dims import BROADCASTS
from pytensor_onnx.user_code import user_line

IR_VERSION = 10
_LATER_IR_VERSIONS = {27: 13, 28: 14}
"""Versions of the format that came with an opset."""
MIN_OPSET, MAX_OPSET = 13, 28
FIRST_CONVERTED = 18
"""Lowest opset that lowerings emit; a pass writes models in older ones."""


@dataclass
class Converted:
    """A model, with the information about it that is not in the file.

    Attributes
    ----------
    model
        The model, before legalisation.
    scope
        Names, constants and functions of the model, for passes that add to it.
    failures
        Exceptions that checks raise, by type and message. Passes may add to them.
    values
        The value that stands for each PyTensor variable.
    """

    model: ir.Model
    scope: ModelScope
    failures: dict[str, Exception] = field(default_factory=dict)
    values: dict[Variable, ir.Value] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ConversionOptions:
    """Opset, names and default values of a model, which the graph does not determine.

    Attributes
    ----------
    opset_version
        Version of the standard operator set, 13 to 28; below 18, the model is converted for 18.
    input_names, output_names
        Names wanted; by default those of the variables, or ``input_0``, ``output_0``.
    defaults
        Values of inputs that may be left out at run time.
    dynamic_axes
        Names for axes of unknown size, by the name of an input or output.
    dim_names
        Whether named dimensions of `pytensor.xtensor` keep their names: sizes of one name must
        then be equal in all inputs, where PyTensor requires it only of tensors that meet.
    fixes_sizes
        Whether an asserted constant size may become that of an axis of an input. Another size is
        then an `InputError`, and not the AssertionError of PyTensor.
    as_imported
        Whether operators of imported models have no guards that these models had not either.
    raised_opset
        Opset up to which operators of imported models raise that of the model.
    constant_names
        Arrays whose content goes by a name, in whatever shape the rewrites left it; a matrix
        ``w`` that they transposed is ``w.T``.
    is_portable
        Whether the file is for runtimes of any maker: it has no nodes that fail.
    widens
        Whether sums and functions of float32 may be computed in float64.
    masks_draws
        Whether draws by rejection keep the sizes of arrays.
    has_scan
        Whether loops over sequences may be written by Scan.
    has_kernel
        Function that tells whether the session that runs the model has a kernel for a function of
        a name, which then has no body; None for a model that stands alone.
    name
        Name of the graph.
    """

    opset_version: int
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    defaults: Mapping[Variable, np.ndarray] = field(default_factory=dict)
    dynamic_axes: NamedAxes = field(default_factory=dict)
    dim_names: bool = False
    fixes_sizes: bool = False
    is_portable: bool = False
    widens: bool = True
    masks_draws: bool = False
    has_scan: bool = True
    has_kernel: Callable[[str], bool] | None = None
    as_imported: bool = False
    raised_opset: int = 0
    constant_names: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "main_graph"


def convert(fgraph: FunctionGraph, options: ConversionOptions) -> Converted:
    """Convert a rewritten graph.

    Parameters
    ----------
    fgraph
        Graph whose inputs and outputs become those of the model, in order.
    options
        Opset, names, and values of inputs.

    Raises
    ------
    UnsupportedOpError, UnsupportedTypeError
        If parts of the graph cannot be converted; the message lists all of them.
    PyTensorONNXError
        If the opset is not one that models are made for, or ``dynamic_axes`` does not fit.
    """
    _check_opset(options.opset_version)
    scope = ModelScope(
        max(options.opset_version, FIRST_CONVERTED, opset_of(fgraph, options.raised_opset)),
        fixes_sizes=options.fixes_sizes,
        is_portable=options.is_portable,
        widens=options.widens,
        has_scan=options.has_scan,
        has_kernel=options.has_kernel,
        as_imported=options.as_imported,
    )
    scope.masks_draws = options.masks_draws
    _name_constants(scope, options.constant_names)
    scope.broadcasts = any(getattr(v.tag, BROADCASTS, False) for v in fgraph.inputs)
    converter = GraphConverter(Builder(scope, always_runs=True))
    input_names = options.input_names or names_of(fgraph.inputs, "input")
    result_names = options.output_names or names_of(fgraph.outputs, "output")
    axes = options.dynamic_axes
    check_names(axes, input_names, result_names)
    inputs = _make_inputs(fgraph, converter, input_names, axes, options.dim_names)
    wanted = [scope.names.unique(name) for name in result_names]
    converter.convert(fgraph.toposort())
    _drop_checks_of_inputs(converter, inputs)
    outputs = _make_outputs(fgraph, converter, wanted)
    raise_problems(converter.problems)

    converter.build.provenance = {}
    graph = _make_graph(options.name, converter, inputs, outputs, options.defaults)
    name_output_dims(list(zip(result_names, outputs, strict=True)), axes, scope.dims)
    if options.dim_names:
        keep_names_of_outputs(fgraph.outputs, outputs, scope.dims)
    scope.dims.finish(graph)
    scope.dims.rename_results(outputs)
    functions = [local.function for local in scope.functions.values()]
    scope.import_domains(graph, functions)
    model = _make_model(graph, functions)
    tensors = {v: x for v, x in converter.values.items() if isinstance(x, ir.Value)}
    return Converted(model, scope, scope.failures, tensors)


def names_of(variables: Sequence[Variable], kind: str) -> list[str]:
    """Return the names of variables; unnamed ones are numbered by position.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> names_of([pt.vector("x"), pt.vector()], "input")
    ['x', 'input_1']
    """
    return [variable.name or f"{kind}_{i}" for i, variable in enumerate(variables)]


def _check_opset(version: int) -> None:
    if not MIN_OPSET <= version <= MAX_OPSET:
        raise PyTensorONNXError(
            f"opset_version={version} is not supported: choose one from {MIN_OPSET} to {MAX_OPSET}"
        )


def _name_constants(scope: ModelScope, names: Mapping[str, np.ndarray]) -> None:
    """Give arrays their names, and transposed matrices names that say so."""
    for name, array in names.items():
        if array.size > 1:
            scope.constant_names[content_key(array)] = name
        if array.size > 1 and array.ndim == 2:
            scope.transposed_names[content_key(array.T)] = f"{name}.T"


def _make_inputs(
    fgraph: FunctionGraph,
    converter: GraphConverter,
    wanted: Sequence[str],
    dynamic_axes: NamedAxes,
    keeps_names: bool,
) -> list[ir.Value]:
    scope = converter.build.scope
    names_of_axes = reserve_names(fgraph.inputs, wanted, dynamic_axes, keeps_names, scope.dims)
    inputs = []
    for variable, wanted_name, axes in zip(fgraph.inputs, wanted, names_of_axes, strict=True):
        try:
            check_type(variable.type)
        except UnsupportedCase as case:
            converter.problems.append(
                Problem(
                    subject=str(variable.type),
                    variable=wanted_name,
                    where=user_line(variable),
                    reason=case.reason,
                    hint=case.hint,
                    is_type=True,
                )
            )
            converter.values[variable] = ir.Value(name=wanted_name)
            continue
        name = scope.names.unique(wanted_name)
        unique = scope.dims.names.unique
        sizes = enumerate(getattr(variable.type, "shape", ()))
        dims = [axes.get(i) or unique(f"{name}_dim{i}") if n is None else n for i, n in sizes]
        value = ir.Value(
            name=name,
            type=ir.TensorType(ir.DataType.from_numpy(np.dtype(variable.type.dtype))),
            shape=ir.Shape(dims),
        )
        converter.add_value(variable, value)
        inputs.append(value)
    return inputs


def _drop_checks_of_inputs(converter: GraphConverter, inputs: Sequence[ir.Value]) -> None:
    """Drop checks of equal sizes of inputs, and use the checked values instead."""
    kept = drop_checks_of_inputs(converter.build, inputs)
    if kept:
        for variable, value in converter.values.items():
            converter.values[variable] = _followed(value, kept)


def _followed(value: Any, replaced: Mapping[ir.Value, ir.Value]) -> Any:
    while isinstance(value, ir.Value) and value in replaced:
        value = replaced[value]
    return value


def _make_outputs(
    fgraph: FunctionGraph, converter: GraphConverter, names: Sequence[str]
) -> list[ir.Value]:
    """Return a separate value for each output, with the wanted name."""
    build = converter.build
    build.provenance = {}
    outputs: list[ir.Value] = []
    for variable, name in zip(fgraph.outputs, names, strict=True):
        try:
            value = converter.value_of(variable)
        except UnsupportedCase:
            continue
        if not isinstance(value, ir.Value):
            continue
        if value.producer() is None or any(value is other for other in outputs):
            copy = build.Identity(value)
            copy.shape = value.shape
            value = copy
        value.name = name
        outputs.append(value)
    return outputs


def _make_graph(
    name: str,
    converter: GraphConverter,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    defaults: Mapping[Variable, np.ndarray],
) -> ir.Graph:
    """Return the graph of the nodes that outputs depend on, with names for their values."""
    scope = converter.build.scope
    nodes = live_nodes(converter.build.nodes, outputs)
    initializers = [x for x in scope.initializers.values() if any(True for _ in x.uses())]
    for variable, default in defaults.items():
        value = converter.values[variable]
        value.const_value = ir.tensor(default, name=value.name)
        initializers.append(value)
    name_values(nodes, scope.names)
    return ir.Graph(
        inputs,
        outputs,
        nodes=nodes,
        initializers=initializers,
        opset_imports={"": scope.opset_version},
        name=name,
    )


def _make_model(graph: ir.Graph, functions: Sequence[ir.Function]) -> ir.Model:
    return ir.Model(
        graph,
        ir_version=_LATER_IR_VERSIONS.get(graph.opset_imports[""], IR_VERSION),
        producer_name="pytensor-onnx",
        producer_version=__version__,
        functions=functions,
        metadata_props={
            "pytensor_onnx_version": __version__,
            "pytensor_version": pytensor.__version__,
        },
    )
