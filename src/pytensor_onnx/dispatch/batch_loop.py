"""Repetition of an Op over batch axes in a Loop, where its ONNX form does not batch by itself."""

from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import dims_of
from pytensor_onnx.dispatch.basic import GraphConverter, NestedProblems


def loop_over_batch(
    op: Blockwise, node: Apply, onnx: Builder, inputs: tuple[ir.Value, ...]
) -> list[ir.Value]:
    """Lower the core Op once, in the body of a Loop over the flattened batch.

    Parameters
    ----------
    op, node
        Blockwise Op and its Apply node.
    onnx
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
    sizes = [_batch_size(axis, node, onnx, inputs) for axis in range(n_batch)]
    batch = onnx.Concat(*sizes, axis=0) if len(sizes) > 1 else sizes[0]
    count = reduce(onnx.Mul, sizes)
    flat = [
        None
        if all(variable.type.broadcastable[:n_batch])
        else _flattened(onnx, x, rank, batch, count)
        for x, variable, rank in zip(inputs, node.inputs, core_ranks, strict=True)
    ]
    loop = onnx.subgraph()
    step = ir.Value(name="step", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(()))
    going = ir.Value(name="going", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(()))
    elements = [
        onnx.Squeeze(x, onnx.ints(range(n_batch)))
        if rows is None
        else loop.Gather(rows, step, axis=0)
        for x, rows in zip(inputs, flat, strict=True)
    ]
    results = _core_results(op, node.inputs, loop, elements)
    body = loop.graph([step, going], [loop.Identity(going), *results])
    stacked = onnx.loop(onnx.Squeeze(count, onnx.ints([0])), None, [], body)
    outputs = []
    for value, signature, variable in zip(stacked, op.outputs_sig, node.outputs, strict=True):
        rank = len(signature)
        value.shape = ir.Shape([None] * (rank + 1))
        core = variable.type.shape[n_batch:]
        if all(size is not None for size in core):
            core_shape = onnx.ints(core)
        else:
            core_shape = onnx.Shape(value, start=1, end=rank + 1)
        shape = onnx.Concat(batch, core_shape, axis=0) if rank else batch
        outputs.append(onnx.Reshape(value, shape, allowzero=1))
    return outputs


def _batch_size(axis: int, node: Apply, onnx: Builder, inputs: tuple[ir.Value, ...]) -> ir.Value:
    """Return the size of a batch axis, which inputs that are not broadcast along it share."""
    for variable, value in zip(node.inputs, inputs, strict=True):
        if not variable.type.broadcastable[axis]:
            return onnx.sizes(value, axis, axis + 1)
    return onnx.ints([1])


def _flattened(
    onnx: Builder, x: ir.Value, core_rank: int, batch: ir.Value, count: ir.Value
) -> ir.Value:
    """Return an input with one batch axis, broadcast to the whole batch."""
    rank = len(onnx.dims(x))
    if not core_rank:
        return onnx.Reshape(onnx.Expand(x, batch), count, allowzero=1)
    core = onnx.sizes(x, rank - core_rank, rank)
    whole = onnx.Expand(x, onnx.Concat(batch, core, axis=0))
    flat = onnx.Reshape(whole, onnx.Concat(count, core, axis=0), allowzero=1)
    flat.shape = ir.Shape((None, *(dims_of(x) or ())[rank - core_rank :]))
    return flat


def _core_results(
    op: Blockwise, variables: list[Variable], loop: Builder, elements: list[ir.Value]
) -> list[ir.Value]:
    core = op._create_dummy_core_node(variables)
    converter = GraphConverter(loop)
    for variable, element in zip(core.inputs, elements, strict=True):
        converter.add_value(variable, element)
    converter.convert([core])
    if converter.problems:
        raise NestedProblems(converter.problems)
    return [converter.value_of(variable) for variable in core.outputs]
