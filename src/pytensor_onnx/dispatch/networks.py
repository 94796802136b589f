"""Operations of networks: the operator that an Op emits, else its inner graph.

An inner graph does not go through `define`: every backend of PyTensor runs and differentiates it,
and it is converted in line, after all rewrites, so that passes fuse it with the nodes around it.
"""

from collections.abc import Sequence

import onnx_ir as ir
from pytensor.compile.mode import get_mode
from pytensor.compile.rewriting import functional_rewrite_ofg_inner_graph
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.compat.pytensor import set_compile_mode
from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder, Fallback, carry_fallback
from pytensor_onnx.graph.traversal import mark_imported
from pytensor_onnx.ops.networks.detection_ops import NonMaxSuppression
from pytensor_onnx.ops.networks.kept_operator import KeptOperator, is_imported
from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.recurrent_ops import RNN


@onnx_funcify.register(NetworkOp)
def lower_network_op(op: NetworkOp, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Emit ONNX's operator with the inner graph as fallback, or the inner graph alone."""
    op = op.simplified(build, *inputs)
    emitted = op.emit(build, *inputs)
    if emitted is None:
        return lower_by_inner_graph(op, build, inputs)
    values = [emitted] if isinstance(emitted, ir.Value) else list(emitted)
    if build.scope.as_imported and is_imported(node):
        mark_imported(values[0])
    carry_fallback(values[0].producer(), _inner_graph_as_fallback(op))
    return values


@onnx_funcify.register(RNN)
def lower_rnn(op: RNN, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Emit the operator for few sequences, and the loop for more."""
    batch = build.dims(inputs[0])[1]
    if isinstance(batch, int) and batch <= op.largest_batch:
        return lower_network_op(op, node, build, *inputs)

    if isinstance(batch, int) or not op.largest_batch:
        return lower_by_inner_graph(op, build, inputs)
    build.equate_operands("RNN", op.operands(inputs), {})
    return build.cond(
        build.LessOrEqual(build.size(inputs[0], 1), op.largest_batch),
        lambda then: lower_network_op(op, node, then, *inputs),
        lambda other: lower_by_inner_graph(op, other, inputs),
    )


def opset_of(fgraph: FunctionGraph, most: int) -> int:
    """Return the opset that the operators of imported models need, up to one.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> opset_of(FunctionGraph([x := pt.vector("x")], [x + 1], clone=False), 23)
    0
    """
    kept = (node.op.imported for node in fgraph.apply_nodes if isinstance(node.op, KeptOperator))
    return max((v.since for v in kept if not v.domain and v.since <= most), default=0)


def _inner_graph_as_fallback(op: NetworkOp) -> Fallback:
    def fallback(build: Builder, *operands: ir.Value) -> Sequence[ir.Value]:
        results = lower_by_inner_graph(op, build, op.inner_operands(operands))
        return op.results_of_node(results)

    return fallback


def lower_by_inner_graph(
    op: NetworkOp, build: Builder, inputs: Sequence[ir.Value]
) -> Sequence[ir.Value]:
    """Convert the inner graph, after the rewrites of mode ONNX, in line."""
    return convert_inner(_rewritten_inner_graph(op), build, inputs)


def _rewritten_inner_graph(op: NetworkOp) -> FunctionGraph:
    """Return the inner graph after the rewrites of mode ONNX."""
    mode = get_mode("ONNX")
    inner = op.fgraph.unfreeze()
    set_compile_mode(inner, mode)
    functional_rewrite_ofg_inner_graph(mode.linker, op, None, inner, mode=mode)
    return inner


@onnx_funcify.register(NonMaxSuppression)
def lower_non_max_suppression(
    op: NonMaxSuppression, node: Apply, build: Builder, *inputs: ir.Value
) -> ir.Value:
    """Emit the operator; how many it selects is known at run time."""
    selected = build.NonMaxSuppression(*inputs, center_point_box=int(op.center_point_box))
    selected.shape = ir.Shape([build.scope.dims.computed("selected"), 3])
    return selected
