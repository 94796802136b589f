"""Loops of scalars, and checks of lengths."""

from __future__ import annotations

from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import get_scalar_type, upcast
from pytensor.scalar.loop import ScalarLoop

from pytensor_onnx.dispatch.control_flow import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder, name_failure
from pytensor_onnx.ops.loops import FirstRows, StepCount, StepIndex


@onnx_funcify.register(ScalarLoop)
def lower_scalar_loop(
    op: ScalarLoop, node: Apply, build: Builder, n_steps: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Step all elements together until the last ends; elements that ended keep their values."""
    op = _for_operands(op, node)
    wide = [variable.type.dtype for variable in op.fgraph.inputs]
    inputs = tuple(build.cast(x, dtype) for x, dtype in zip(inputs, wide, strict=True))
    n_states = len(op.outputs) - op.is_while
    steps = build.cast(n_steps, "int64")
    if not op.is_while:
        steps = _checked(build, steps)
    initial = _broadcast(build, steps, inputs)
    going = build.Less(initial[0], initial[1])
    states = [*initial[2 : 2 + n_states], going]
    if op.is_while:
        states.append(build.Not(build.Equal(going, going)))

    def step(body: Builder, i: ir.Value, *before: ir.Value) -> list[ir.Value]:
        is_going = before[n_states]
        arguments = [*before[:n_states], *initial[2 + n_states :]]
        results = convert_inner(op.fgraph, body, arguments, typed=False)
        after = [
            body.Where(is_going, new, old)
            for new, old in zip(results[:n_states], before, strict=False)
        ]
        follows = body.And(is_going, body.Less(body.Add(i, 1), initial[1]))
        if not op.is_while:
            return [_any(body, follows), *after, follows]
        follows = body.And(follows, body.Not(results[-1]))
        done = body.Where(is_going, results[-1], before[-1])
        return [_any(body, follows), *after, follows, done]

    values = build.loop(None, _any(build, going), states, step)
    for value, state in zip(values, states, strict=True):
        value.shape = state.shape
    results = zip([*values[:n_states], *values[n_states + 1 :]], node.outputs, strict=True)
    return [build.cast(value, output.type.dtype) for value, output in results]


def _for_operands(op: ScalarLoop, node: Apply) -> ScalarLoop:
    """Return the loop in dtypes that hold both its operands and its declared dtypes.

    The loop of an Elemwise keeps the dtypes that it was written in. PyTensor's Python code
    computes narrower operands in these, and rounds the results to the dtypes of the operands.
    """
    given = [variable.type.dtype for variable in node.inputs]
    own = [given[0], *(variable.type.dtype for variable in op.fgraph.inputs)]
    wide = [get_scalar_type(upcast(*dtypes))() for dtypes in zip(given, own, strict=True)]
    typed: ScalarLoop = op.make_node(*wide).op
    return typed


def _checked(build: Builder, steps: ir.Value) -> ir.Value:
    """Return the number of steps, with a node that fails if it is negative."""
    if steps.const_value is not None and (steps.const_value.numpy() >= 0).all():
        return steps
    is_right = build.Not(_any(build, build.Less(steps, 0)))
    error = ValueError("ScalarLoop does not have a termination condition.")
    return check_that(build, [is_right], steps, error)


def _broadcast(build: Builder, steps: ir.Value, inputs: tuple[ir.Value, ...]) -> list[ir.Value]:
    """Broadcast zeros, the number of steps and the operands to one shape."""
    shape = build.Shape(reduce(build.Or, [build.Equal(x, x) for x in (steps, *inputs)]))
    zero = build.Sub(steps, steps)
    return [build.Expand(x, shape) for x in (zero, steps, *inputs)]


def _any(build: Builder, condition: ir.Value) -> ir.Value:
    """Return whether any element of a condition is true, false for an empty array."""
    return build.Greater(build.ReduceSum(build.cast(condition, "float32"), keepdims=0), 0)


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
