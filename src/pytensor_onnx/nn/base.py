"""Operations of networks: a PyTensor expression that defines each, and the operator that it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from pytensor.compile.builders import SymbolicOp
from pytensor.gradient import pullback
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, convert_inner, onnx_funcify
from pytensor_onnx.linker import rewritten_inner_graph
from pytensor_onnx.passes.definitions import Definition, carry_definition


class NetworkOp(SymbolicOp):
    """An operation with an inner graph, which every backend of PyTensor runs.

    A subclass says in `build_inner_graph` what it computes and in `emit` which operators of ONNX it
    is. Where a target lacks the operator in the dtype, the inner graph is converted in its place.
    """

    emit: Callable[..., Lowered | None]
    """Receives a builder and the inputs, which are the first operands given to what it emits.

    It returns the results, or None where no operator computes this case.
    """

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate the definition in the open, where it shares what it needs with others.

        One input may be computed from another: each is differentiated by on its own.
        """
        own = [variable.type() for variable in inputs]
        results = self.build_inner_graph(*own)
        gradients = pullback(results, own, list(output_grads), disconnected_inputs="ignore")
        return clone_replace(gradients, dict(zip(own, inputs, strict=True)))


class KeepsShape(NetworkOp):
    """An operation whose result has the shape of the first input."""

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[Sequence[Variable]]:
        """Return the sizes without computing the result."""
        return [input_shapes[0]]


@onnx_funcify.register(NetworkOp)
def lower_network_op(op: NetworkOp, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Emit the operator, which carries its definition, or else the definition."""
    emitted = op.emit(onnx, *inputs)
    if emitted is None:
        return convert_inner(rewritten_inner_graph(op), onnx, inputs)
    values = [emitted] if isinstance(emitted, ir.Value) else list(emitted)
    carry_definition(values[0].producer(), _definition(op))
    return values


def _definition(op: NetworkOp) -> Definition:
    count = len(op.fgraph.inputs)

    def define(onnx: Builder, *operands: ir.Value) -> Sequence[ir.Value]:
        given = [operand for operand in operands if operand is not None]
        return convert_inner(rewritten_inner_graph(op), onnx, given[:count])

    return define
