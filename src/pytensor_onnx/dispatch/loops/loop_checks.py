"""Lower checks of the number of steps and the sequences of a loop to nodes that fail."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.failures import name_failure
from pytensor_onnx.ops.loops.loop_check_ops import FirstRows, StepCount, StepIndex


@onnx_funcify.register(StepCount)
def lower_step_count(op: StepCount, node: Apply, build: Builder, n_steps: ir.Value) -> ir.Value:
    """Return the number of steps; the node fails if it is negative."""
    return checked_count(build, build.cast(n_steps, "int64"), op.failure)


@onnx_funcify.register(FirstRows)
def lower_first_rows(
    op: FirstRows, node: Apply, build: Builder, rows: ir.Value, count: ir.Value
) -> ir.Value:
    """Return the first rows, as many as the count."""
    return first_rows(build, rows, build.cast(count, "int64"), op.failure)


@onnx_funcify.register(StepIndex)
def lower_step_index(op: StepIndex, node: Apply, build: Builder, index: ir.Value) -> ir.Value:
    """Return the index; a later pass marks the nodes that use it."""
    return index


def checked_count(build: Builder, n_steps: ir.Value, failure: Exception) -> ir.Value:
    """Check the number of steps by a node that fails if it is negative.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    n_steps
        The number, an int64 of rank 0.
    failure
        Exception for a negative number when this package runs the model.
    """
    if build.scope.is_portable:
        return n_steps
    is_negative = build.cast(build.Less(n_steps, 0), "int64")
    checked = build.Gather(build.Unsqueeze(n_steps, [0]), is_negative, axis=0)
    name_failure(build, checked, failure)
    if not build.in_function:
        build.name_size(checked, "steps")
    return checked


def first_rows(
    build: Builder, sequence: ir.Value, count: ir.Value, failure: Exception, start: int = 0
) -> ir.Value:
    """Slice rows by a node that fails if there are too few.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    sequence
        The sequence.
    count
        Number of rows, a nonnegative int64 of rank 0.
    failure
        Exception for a shorter sequence when this package runs the model.
    start
        Position of the first row.
    """
    dims = build.dims(sequence)
    n_rows = build.Unsqueeze(count, [0])
    cut = build.Slice(sequence, [start], build.Add(n_rows, start) if start else n_rows, [0])
    row = build.sizes(sequence, 1, len(dims))
    shape = build.Concat(n_rows, row, axis=0) if len(dims) > 1 else n_rows
    exact = build.Reshape(cut, shape, allowzero=1)
    exact.shape = ir.Shape((*build.dims(exact)[:1], *dims[1:]))
    name_failure(build, exact, failure)
    return exact
