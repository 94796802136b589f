"""ScalarLoop, the loop of a scalar function, which runs for all elements at once."""

from __future__ import annotations

from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.scalar.loop import ScalarLoop

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import dims_of
from pytensor_onnx.dispatch.basic import check_that, convert_inner, onnx_funcify
from pytensor_onnx.inference import dtype_of


@onnx_funcify.register(ScalarLoop)
def lower_scalar_loop(
    op: ScalarLoop, node: Apply, onnx: Builder, n_steps: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Step all elements together until the last is done; those done before keep their values."""
    # The operands of an Elemwise may have other dtypes than the inputs of the loop.
    wanted = [variable.type.dtype for variable in op.fgraph.inputs]
    inputs = tuple(onnx.cast(x, dtype) for x, dtype in zip(inputs, wanted, strict=True))
    n_states = len(op.outputs) - op.is_while
    steps = onnx.cast(n_steps, "int64")
    if not op.is_while:
        steps = _checked(onnx, steps)
    initial = _broadcast(onnx, steps, inputs)
    going = onnx.Less(initial[0], initial[1])
    states = [*initial[2 : 2 + n_states], going]
    if op.is_while:
        states.append(onnx.Not(onnx.Equal(going, going)))

    body = onnx.subgraph()
    step = _argument("step", ir.DataType.INT64, ())
    any_going = _argument("any_going", ir.DataType.BOOL, ())
    before = [_argument("state", dtype_of(x), dims_of(x)) for x in states]
    is_going = before[n_states]
    results = convert_inner(
        op.fgraph, body, [*before[:n_states], *initial[2 + n_states :]], typed=False
    )
    after = [
        body.Where(is_going, new, old) for new, old in zip(results[:n_states], before, strict=False)
    ]
    follows = body.And(is_going, body.Less(body.Add(step, 1), initial[1]))
    if op.is_while:
        done = results[-1]
        follows = body.And(follows, body.Not(done))
        after = [*after, follows, body.Where(is_going, done, before[-1])]
    else:
        after.append(follows)
    graph = body.graph([step, any_going, *before], [_any(body, follows), *after])
    values = onnx.loop(None, _any(onnx, going), states, graph)
    for value, state in zip(values, states, strict=True):
        value.shape = state.shape
    return [*values[:n_states], *values[n_states + 1 :]]


def _checked(onnx: Builder, steps: ir.Value) -> ir.Value:
    """Return a number of steps, which fails where it is negative."""
    if steps.const_value is not None and (steps.const_value.numpy() >= 0).all():
        return steps
    is_right = onnx.Not(_any(onnx, onnx.Less(steps, 0)))
    error = ValueError("ScalarLoop does not have a termination condition.")
    return check_that(onnx, [is_right], steps, error)


def _broadcast(onnx: Builder, steps: ir.Value, inputs: tuple[ir.Value, ...]) -> list[ir.Value]:
    """Return zeros, the number of steps and the operands, all of one shape."""
    shape = onnx.Shape(reduce(onnx.Or, [onnx.Equal(x, x) for x in (steps, *inputs)]))
    zero = onnx.Sub(steps, steps)
    return [onnx.Expand(x, shape) for x in (zero, steps, *inputs)]


def _any(onnx: Builder, condition: ir.Value) -> ir.Value:
    """Return whether a condition holds anywhere, which it does not in an empty array."""
    return onnx.Greater(onnx.ReduceSum(onnx.cast(condition, "float32"), keepdims=0), 0)


def _argument(name: str, dtype: ir.DataType, dims: tuple | None) -> ir.Value:
    shape = None if dims is None else ir.Shape(d if isinstance(d, int) else None for d in dims)
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)
