"""Batches of an Op whose lowering takes one."""

from collections.abc import Sequence
from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.exceptions import ShapeError
from pytensor.tensor.type import lscalar

from pytensor_onnx.compat.pytensor import core_node_of
from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import GraphConverter, NestedProblems
from pytensor_onnx.functions.registry import defined_in_batches, needs_no_loop
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import dims_of


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


Pattern = tuple[bool, ...]
"""For each batch axis of an operand, whether its size is one."""


def batch_sizes(
    build: Builder, inputs: Sequence[ir.Value], patterns: Sequence[Pattern], cores: Sequence[int]
) -> list[ir.Value]:
    """Return the sizes of the batch axes, each as a vector of one element.

    Parameters
    ----------
    build
        Builder that reads them.
    inputs, patterns
        Operands, and which of their batch axes broadcast.
    cores
        Numbers of core axes of the operands.
    """
    return [_size(build, inputs, patterns, cores, axis) for axis in range(len(patterns[0]))]


def _size(
    build: Builder,
    inputs: Sequence[ir.Value],
    patterns: Sequence[Pattern],
    cores: Sequence[int],
    axis: int,
) -> ir.Value:
    """Return the size of a batch axis, shared by all operands that do not broadcast along it."""
    for x, pattern, core in zip(inputs, patterns, cores, strict=True):
        if not pattern[axis]:
            position = len(build.dims(x)) - core - len(pattern) + axis
            return build.sizes(x, position, position + 1)
    return build.ints([1])


def expanded(build: Builder, x: ir.Value, batch: Sequence[ir.Value], core: int) -> ir.Value:
    """Return an operand broadcast to the sizes of all batch axes.

    Parameters
    ----------
    build
        Builder that receives the Expand.
    x
        Operand with that many core axes, its last ones.
    batch
        Sizes, as `batch_sizes` returns them.
    core
        Number of core axes.
    """
    rank = len(build.dims(x))
    sizes = [*batch, *([build.sizes(x, rank - core, rank)] if core else [])]
    return build.Expand(x, sizes[0] if len(sizes) == 1 else build.Concat(*sizes, axis=0))


def with_equal_batches(
    build: Builder, inputs: Sequence[ir.Value], patterns: Sequence[Pattern], cores: Sequence[int]
) -> list[ir.Value]:
    """Broadcast operands whose batch axes differ from the axes of the whole batch.

    The parameters are those of `batch_sizes`.
    """
    if len(set(patterns)) <= 1:
        return list(inputs)
    batch = batch_sizes(build, inputs, patterns, cores)
    whole = tuple(map(all, zip(*patterns, strict=True)))
    return [
        x if pattern == whole else expanded(build, x, batch, core)
        for x, pattern, core in zip(inputs, patterns, cores, strict=True)
    ]


@onnx_funcify.register(Blockwise)
def lower_blockwise(op: Blockwise, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the core Op on all axes where its ONNX form batches by itself, else loop over them."""
    if not needs_no_loop(op.core_op):
        return loop_over_batch(op, node, build, inputs)
    if defined_in_batches(op.core_op):
        n_batch = op.batch_ndim(node)
        patterns = [variable.type.broadcastable[:n_batch] for variable in node.inputs]
        cores = [variable.type.ndim - n_batch for variable in node.inputs]
        inputs = tuple(with_equal_batches(build, inputs, patterns, cores))
    return onnx_funcify(op.core_op, node, build, *inputs)
