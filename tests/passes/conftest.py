"""Bare models of single operators: made for a target, then run in the installed runtime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime

from pytensor_onnx.dispatch.registry.function import decompositions
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import DOMAINS
from pytensor_onnx.passes.legaliser.legalise import legalise
from pytensor_onnx.passes.model_pass import Passes, ScopedPass
from pytensor_onnx.targets import get_profile

Emit = Callable[..., ir.Value | Sequence[ir.Value]]


@dataclass
class Bare:
    """A model that no lowering made, with the means to legalise and run it."""

    model: ir.Model
    scope: ModelScope
    feeds: dict[str, np.ndarray]

    def legalise(self, target: str = "onnxruntime", *, assume_finite: bool = False) -> list[str]:
        profile, known = get_profile(target), decompositions()
        return self.apply(
            legalise.given(profile=profile, decompositions=known, assume_finite=assume_finite)
        )

    def apply(self, each: ScopedPass) -> list[str]:
        """Run a pass, and return the changes that it describes."""
        passes = Passes(self.model, self.scope)
        passes.run(each)
        return [str(change) for change in passes.changes]

    def run(self) -> list[np.ndarray]:
        return run_model(self.model, self.feeds)

    def operators(self) -> list[str]:
        return [node.op_type for node in self.model.graph.all_nodes()]

    def all_values(self) -> list[ir.Value]:
        graphs = [self.model.graph, *self.model.functions.values()]
        return [v for graph in graphs for node in graph.all_nodes() for v in node.outputs]


def run_model(model: ir.Model, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model."""
    proto = ir.to_proto(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def bare(
    emit: Emit, *operands: Any, opset: int = 21, shapes: Sequence[Sequence[int | str]] = ()
) -> Bare:
    """Return the model of what ``emit(build, *values)`` returns; sizes are named unless given."""
    scope = ModelScope(opset)
    onnx_ = Builder(scope)
    arrays = [np.asarray(operand) for operand in operands]
    inputs = []
    for i, array in enumerate(arrays):
        dims = shapes[i] if i < len(shapes) else [f"x{i}_dim{axis}" for axis in range(array.ndim)]
        name = scope.names.unique(f"x{i}")
        dtype = ir.DataType.from_numpy(array.dtype)
        inputs.append(ir.val(name, dtype=dtype, shape=dims))
    emitted = emit(onnx_, *inputs)
    outputs = [emitted] if isinstance(emitted, ir.Value) else list(emitted)
    nodes = onnx_.nodes
    name_values(nodes, scope.names)
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=nodes,
        initializers=[v for v in scope.initializers.values() if v.uses()],
        opset_imports={"": opset},
        name="bare",
    )
    functions = [local.function for local in scope.functions.values()]
    model = ir.Model(graph, ir_version=10, functions=functions)
    if functions:
        graph.opset_imports.update(DOMAINS)
    return Bare(model, scope, {str(v.name): a for v, a in zip(inputs, arrays, strict=True)})


def bare_op(
    op_type: str, *operands: Any, opset: int = 21, shapes=(), outputs=1, **attributes
) -> Bare:
    """Return the model of one operator."""
    return bare(
        lambda onnx_, *values: onnx_.op(op_type, *values, outputs=outputs, **attributes),
        *operands,
        opset=opset,
        shapes=shapes,
    )
