"""Lower ScalarLoop, the loop of a scalar function, to one Loop for all elements."""

from __future__ import annotations

from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import get_scalar_type, upcast
from pytensor.scalar.loop import ScalarLoop

from pytensor_onnx.dispatch.control_flow.raise_op import check_that
from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder


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
