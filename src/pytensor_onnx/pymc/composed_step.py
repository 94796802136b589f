"""One transition of NUTS or HMC for a log-density that is a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytensor.tensor as pt
from onnx import FunctionProto, GraphProto, ModelProto, helper
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.program.build_program import export_graph
from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.model_graphs import POINT
from pytensor_onnx.pymc.step import Step, check_step

DOMAIN, FUNCTION = "pytensor.composed", "LogDensity"

OLDEST = 18
"""Files of older opsets are converted to this one."""

type Model = str | os.PathLike | ModelProto | ONNXProgram


@fewer_collections()
@working("exporting")
def compose_step(
    log_density: Model,
    path: str | os.PathLike | None = None,
    *,
    gradient: Model | None = None,
    names: Mapping[str, str] | None = None,
    method: str = "nuts",
    metric: str = "diagonal",
    max_tree_depth: int = 10,
) -> ONNXProgram:
    """Compose one transition of a sampler with the file of any log-density.

    The file has the inputs and outputs of `export_step`, and every input of the log-density but its
    point. The log-density is a function of the file, ``pytensor.composed::LogDensity``.

    Parameters
    ----------
    log_density
        A model, or its file: of one vector, the point in an unconstrained space, and any data. It
        returns the log-density, a number, and its gradient, a vector. Its operators may be any that
        the runtime has.
    path
        File to write; none unless given.
    gradient
        A model of the gradient, if the log-density has none, with inputs of the same names.
    names
        Names in the models of ``"point"``, ``"logp"`` and ``"dlogp"`` that differ from these,
        which are those of `export_logp`.
    method, metric, max_tree_depth
        As in `export_step`.

    Returns
    -------
    ONNXProgram
        The model.

    Raises
    ------
    ArgumentError
        If a model lacks an input or output, or has one of another dtype, rank or name than a step
        takes, or an argument is not valid.

    Examples
    --------
    >>> from onnx import parser
    >>> density = parser.parse_model('''
    ...     <ir_version: 10, opset_import: ["" : 21]>
    ...     agraph (double[n] point, double[n] center) => (double logp, double[n] dlogp) {
    ...         dlogp = Sub(center, point)
    ...         squares = ReduceSumSquare <keepdims = 0> (dlogp)
    ...         factor = Constant <value = double {-0.5}> ()
    ...         logp = Mul(factor, squares)
    ...     }
    ... ''')
    >>> step = compose_step(density)
    >>> [x.name for x in step.inputs]
    ['point', 'state', 'scale', 'step_size', 'center']
    >>> point, state, center = np.zeros(2), np.array([1, 0]), np.array([3.0, -1.0])
    >>> draws = []
    >>> for _ in range(400):
    ...     point, state, *_ = step(point, state, np.ones(2), 0.7, center)
    ...     draws.append(point)
    >>> np.allclose(np.mean(draws, axis=0), center, atol=0.3)
    True
    """
    check_step(method, metric, max_tree_depth)
    wanted = {name: name for name in (POINT, "logp", "dlogp")} | dict(names or {})
    models = [_read(log_density), *([_read(gradient)] if gradient is not None else [])]
    opset = max(OLDEST, *(_opset(model) for model in models))
    models = [
        m if _opset(m) == opset else onnx.version_converter.convert_version(m, opset)
        for m in models
    ]
    density = _Density(models, wanted)
    point = density.inputs[wanted[POINT]]
    step = Step(method, max_tree_depth, metric == "low_rank", point.type.shape)
    further = [x for name, x in density.inputs.items() if name != wanted[POINT]]
    taken = {str(x.name) for x in step.inputs}
    for x in further:
        if x.name in taken:
            raise ArgumentError(f"the input {x.name!r} of the log-density is one of the step, too")
    op = LogDensity(point.type.dtype)

    def at(x: TensorVariable, *given: TensorVariable) -> list[TensorVariable]:
        value, slope = op(x.astype(point.type.dtype), *given)
        return [value.astype("float64"), slope.astype("float64")]

    outputs = step.outputs(at, further)
    options = ExportOptions.of(
        "compose_step",
        {"verify": False, "opset_version": opset, "output_names": list(outputs)},
    )
    program = export_graph([*step.inputs, *further], list(outputs.values()), options)
    own = {(f.domain, f.name): ir.to_proto(f) for f in program.model.functions.values()}
    for function in density.functions(own):
        made = ir.from_proto(function)
        program.model.functions[made.identifier()] = made
        for domain, version in made.opset_imports.items():
            program.model.opset_imports.setdefault(domain, version)
        program.model.opset_imports.setdefault(made.domain, 1)
    program.model.metadata_props["step"] = f"{method}, trees of depth {max_tree_depth}"
    if path is not None:
        program.save(path)
    return program


class LogDensity(Op):
    """The call of the function that a file of a log-density becomes."""

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, point: Any, *data: Any) -> Apply:
        """Return a node with two outputs, the log-density and its gradient."""
        inputs = [pt.as_tensor(x) for x in (point, *data)]
        slope = pt.tensor(dtype=self.dtype, shape=inputs[0].type.shape)
        return Apply(self, inputs, [pt.scalar(dtype=self.dtype), slope])

    def infer_shape(self, node: Apply, shapes: list[tuple]) -> list[tuple]:
        """Return no shape, and that of the point."""
        return [(), shapes[0]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Raise, since only a runtime of ONNX can compute the file."""
        raise NotImplementedError("the log-density of a file runs in the composed file only")


@onnx_funcify.register(LogDensity)
def _lower(op: LogDensity, node: Apply, build: Builder, *operands: ir.Value) -> list[ir.Value]:
    build.scope.uses_domain(DOMAIN, frozenset({1}))
    results = build.foreign(DOMAIN, FUNCTION, operands, {}, 2)
    for result, output in zip(results, node.outputs, strict=True):
        result.dtype = ir.DataType.from_numpy(np.dtype(output.type.dtype))
    results[0].shape = ir.Shape([])
    results[1].shape = operands[0].shape
    return results


class _Density:
    """The models of a log-density and its gradient, as a function with others that it calls."""

    def __init__(self, models: Sequence[ModelProto], names: Mapping[str, str]) -> None:
        self.models, self.names = models, names
        self.inputs: dict[str, TensorVariable] = {}
        for model in models:
            stored = {x.name for x in model.graph.initializer}
            for value in model.graph.input:
                if value.name not in stored:
                    self._add(value)
        if names[POINT] not in self.inputs:
            raise ArgumentError(f"the log-density has no input {names[POINT]!r}")
        point = self.inputs.pop(names[POINT])
        self.inputs = {names[POINT]: point, **self.inputs}
        if point.type.ndim != 1 or point.type.dtype not in ("float32", "float64"):
            raise ArgumentError("the point is a vector of float32 or float64")
        for name, rank in (("logp", 0), ("dlogp", 1)):
            value = self._output(name)[1]
            if self._type(value) != (point.type.dtype, rank):
                raise ArgumentError(
                    f"the output {value.name!r} is not {point.type.dtype} of rank {rank}"
                )

    def _add(self, value: onnx.ValueInfoProto) -> None:
        dtype, rank = self._type(value)
        dims = value.type.tensor_type.shape.dim
        shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in dims)
        made = pt.tensor(value.name, dtype=dtype, shape=shape)
        known = self.inputs.setdefault(value.name, made)
        if known.type.dtype != dtype or known.type.ndim != rank:
            raise ArgumentError(f"both models have an input {value.name!r}, of different types")

    @staticmethod
    def _type(value: onnx.ValueInfoProto) -> tuple[str, int]:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise ArgumentError(f"the rank of {value.name!r} is not known")
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        return dtype.name, len(tensor.shape.dim)

    def _output(self, name: str) -> tuple[int, onnx.ValueInfoProto]:
        """Return an output and the number of the model that it is of."""
        for i, model in enumerate(self.models):
            for value in model.graph.output:
                if value.name == self.names[name]:
                    return i, value
        raise ArgumentError(
            f"the log-density has no output {self.names[name]!r}: its names are given by names="
        )

    def functions(self, own: Mapping[tuple[str, str], FunctionProto]) -> list[FunctionProto]:
        """Return the function of the density, and those of its models.

        Functions of the step that have the same names and other bodies keep their names.
        """
        made: list[FunctionProto] = []
        nodes: list[onnx.NodeProto] = []
        domains = {"": _opset(self.models[0])}
        outputs = [self._output(name) for name in ("logp", "dlogp")]
        for i, model in enumerate(self.models):
            renamed: dict[tuple[str, str], str] = {}
            for function in model.functions:
                key = function.domain, function.name
                if key in own and not _is_equal(own[key], function):
                    renamed[key] = f"{function.name}_of_file_{i}"
            for function in model.functions:
                copy = FunctionProto()
                copy.CopyFrom(function)
                copy.name = renamed.get((function.domain, function.name), function.name)
                _rename_calls(copy.node, renamed)
                if (copy.domain, copy.name) not in own:
                    made.append(copy)
            domains |= {x.domain: x.version for x in model.opset_import if x.domain}
            prefix = f"m{i}_"
            body = onnx.compose.add_prefix_graph(
                _with_constants(model.graph), prefix, rename_inputs=False, rename_outputs=True
            )
            _rename_calls(body.node, renamed)
            nodes += body.node
        names = [f"m{i}_{value.name}" for i, value in outputs]
        imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        density = helper.make_function(DOMAIN, FUNCTION, list(self.inputs), names, nodes, imports)
        return [*made, density]


def _read(model: Model) -> ModelProto:
    if isinstance(model, ONNXProgram):
        return model.proto
    return model if isinstance(model, ModelProto) else onnx.load(os.fspath(model))


def _opset(model: ModelProto) -> int:
    return max(x.version for x in model.opset_import if x.domain in ("", "ai.onnx"))


def _with_constants(graph: GraphProto) -> GraphProto:
    """Return a graph whose stored values are operators, as a function has no others."""
    made = GraphProto()
    made.CopyFrom(graph)
    stored = {x.name for x in made.initializer}
    given = [x for x in made.input if x.name not in stored]
    nodes = []
    for tensor in made.initializer:
        nodes.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
    nodes += made.node
    for field in ("input", "node", "initializer"):
        made.ClearField(field)
    made.input.extend(given)
    made.node.extend(nodes)
    return made


def _is_equal(first: FunctionProto, second: FunctionProto) -> bool:
    """Return whether the bodies of functions are equal, without their provenance."""
    texts = []
    for function in (first, second):
        copy = FunctionProto()
        copy.CopyFrom(function)
        copy.ClearField("metadata_props")
        copy.ClearField("value_info")
        copy.ClearField("doc_string")
        for node in copy.node:
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
        texts.append(copy.SerializeToString(deterministic=True))
    return texts[0] == texts[1]


def _rename_calls(nodes: Sequence[onnx.NodeProto], renamed: Mapping[tuple[str, str], str]) -> None:
    for node in nodes:
        node.op_type = renamed.get((node.domain, node.op_type), node.op_type)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename_calls(attribute.g.node, renamed)
