"""Repeat an Op over batch axes by a Loop, for ONNX forms without batch axes."""

from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.exceptions import ShapeError
from pytensor.tensor.type import lscalar

from pytensor_onnx.compat.pytensor import core_node_of
from pytensor_onnx.dispatch.registry.batch_axes import batch_sizes, expanded
from pytensor_onnx.dispatch.registry.graphs import GraphConverter, NestedProblems
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of


def loop_over_batch(
    op: Blockwise, node: Apply, build: Builder, inputs: tuple[ir.Value, ...]
) -> list[ir.Value]:
    """Lower the core Op once, in the body of a Loop over the flattened batch.

    Parameters
    ----------
    op, node
        Blockwise Op and its Apply node.
    build
        Builder that receives the Loop.
    inputs
        Values with the batch axes first; batch axes of size one broadcast.

    Returns
    -------
    list of onnx_ir.Value
        The outputs of the core Op, with the batch axes before their own.
    """
    n_batch = op.batch_ndim(node)
    core_ranks = [len(signature) for signature in op.inputs_sig]
    patterns = [variable.type.broadcastable[:n_batch] for variable in node.inputs]
    sizes = batch_sizes(build, inputs, patterns, core_ranks)
    batch = build.Concat(*sizes, axis=0) if len(sizes) > 1 else sizes[0]
    count = reduce(build.Mul, sizes)
    flat = [
        None if all(pattern) else _flattened(build, x, rank, sizes, count)
        for x, pattern, rank in zip(inputs, patterns, core_ranks, strict=True)
    ]

    def step(loop: Builder, i: ir.Value) -> list[ir.Value]:
        elements = [
            build.Squeeze(x, build.ints(range(n_batch)))
            if rows is None
            else loop.Gather(rows, i, axis=0)
            for x, rows in zip(inputs, flat, strict=True)
        ]
        return _core_results(op, node.inputs, loop, elements)

    stacked = build.loop(build.Squeeze(count, build.ints([0])), None, [], step)
    outputs = []
    for value, signature, variable, origins in zip(
        stacked, op.outputs_sig, node.outputs, _origins(op, node), strict=True
    ):
        rank = len(signature)
        value.shape = ir.Shape([None] * (rank + 1))
        core = [
            _core_size(build, size, origin, value, axis + 1, op, inputs)
            for axis, (size, origin) in enumerate(
                zip(variable.type.shape[n_batch:], origins, strict=True)
            )
        ]
        shape = build.Concat(batch, *core, axis=0) if rank else batch
        outputs.append(build.Reshape(value, shape, allowzero=1))
    return outputs


def _core_size(
    build: Builder,
    static: int | None,
    origin: tuple[int, int] | None,
    stacked: ir.Value,
    axis: int,
    op: Blockwise,
    inputs: tuple[ir.Value, ...],
) -> ir.Value:
    """Return the size of an axis of each result, which an empty stack of results does not have."""
    if static is not None:
        return build.ints([static])
    if origin is None:
        return build.Shape(stacked, start=axis, end=axis + 1)
    x, signature = inputs[origin[0]], op.inputs_sig[origin[0]]
    position = len(build.dims(x)) - len(signature) + origin[1]
    return build.sizes(x, position, position + 1)


def _origins(op: Blockwise, node: Apply) -> list[list[tuple[int, int] | None]]:
    """Return, for each core axis of the outputs, an input and a core axis with the same size."""
    symbols = [[lscalar() for _ in signature] for signature in op.inputs_sig]
    known = {s: (i, axis) for i, sizes in enumerate(symbols) for axis, s in enumerate(sizes)}
    names = {n: (i, a) for i, sig in enumerate(op.inputs_sig) for a, n in enumerate(sig)}
    core = core_node_of(op, node.inputs)
    try:
        shapes = core.op.infer_shape(core, [tuple(sizes) for sizes in symbols])
    except (AttributeError, NotImplementedError, ShapeError):
        return [[names.get(name) for name in signature] for signature in op.outputs_sig]
    return [[known.get(size) for size in shape] for shape in shapes]


def _flattened(
    build: Builder, x: ir.Value, core_rank: int, batch: list[ir.Value], count: ir.Value
) -> ir.Value:
    """Return an input with one batch axis, broadcast to the whole batch."""
    whole, rank = expanded(build, x, batch, core_rank), len(build.dims(x))
    if not core_rank:
        return build.Reshape(whole, count, allowzero=1)
    core = build.sizes(x, rank - core_rank, rank)
    flat = build.Reshape(whole, build.Concat(count, core, axis=0), allowzero=1)
    flat.shape = ir.Shape((None, *(dims_of(x) or ())[rank - core_rank :]))
    return flat


def _core_results(
    op: Blockwise, variables: list[Variable], loop: Builder, elements: list[ir.Value]
) -> list[ir.Value]:
    core = core_node_of(op, variables)
    converter = GraphConverter(loop)
    for variable, element in zip(core.inputs, elements, strict=True):
        converter.add_value(variable, element)
    converter.convert([core])
    if converter.problems:
        raise NestedProblems(converter.problems)
    return [converter.value_of(variable) for variable in core.outputs]
