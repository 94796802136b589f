"""Lowerings of branches and checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import onnx_ir as ir
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply
from pytensor.raise_op import CheckAndRaise

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.graph.builder import Builder, index_of, name_failure
from pytensor_onnx.operators.dims import CHECKED, constant_ints, dims_of, same_sizes


@onnx_funcify.register(LazyIfElse)
def lower_lazy_if_else(
    op: LazyIfElse, node: Apply, build: Builder, condition: ir.Value, *inputs: ir.Value
) -> list[ir.Value]:
    """Convert each branch to a subgraph that refers to outer values directly.

    A constant condition leaves one branch.
    """
    condition = build.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        chosen = op.true_branch if known[0] else op.false_branch
        return convert_inner(chosen.fgraph, build, inputs)
    return build.cond(
        condition,
        lambda then: convert_inner(op.true_branch.fgraph, then, inputs),
        lambda otherwise: convert_inner(op.false_branch.fgraph, otherwise, inputs),
    )


@onnx_funcify.register(IfElse)
def lower_if_else(
    op: IfElse, node: Apply, build: Builder, condition: ir.Value, *values: ir.Value
) -> list[ir.Value]:
    """Choose between computed values."""
    n = op.n_outs
    condition = build.cast(condition, "bool")
    known = constant_ints(condition)
    if known is not None:
        return list(values[:n] if known[0] else values[n:])
    return build.cond(condition, lambda then: values[:n], lambda otherwise: values[n:])


@onnx_funcify.register(CheckAndRaise)
def lower_check_and_raise(
    op: CheckAndRaise, node: Apply, build: Builder, x: ir.Value, *conditions: ir.Value
) -> ir.Value:
    """Return the value if all conditions hold, else fail in a node that carries the message."""
    return check_that(build, conditions, x, op.exc_type(op.msg))


def check_that(
    build: Builder, conditions: Sequence[ir.Value], x: ir.Value, error: Exception
) -> ir.Value:
    """Return a value if all conditions hold, else fail in a node that carries a message.

    ONNX has no operator that raises. The branch for a failed check gathers past the end of an
    array, which every runtime refuses; the node's metadata name the failed check. Conditions
    that are known to hold leave no node, and files without checks have none.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    conditions
        Values of dtype bool and rank 0.
    x
        Value to return if the conditions hold.
    error
        Error to raise if one does not hold, where this package runs the model.
    """
    open_conditions = [condition for condition in conditions if not _is_known_to_hold(condition)]
    if not open_conditions or build.scope.is_portable:
        return x
    valid = reduce(build.And, open_conditions)

    def fail(failed: Builder) -> ir.Value:
        past_end = failed.Add(_zero(failed, valid, x), index_of(error))
        failure = failed.Gather(failed.Unsqueeze(x, [0]), past_end, axis=0)
        name_failure(failed, failure, error)
        return failure

    (checked,) = build.cond(valid, lambda kept: x, fail)
    checked.meta[CHECKED] = x
    return checked


def _zero(build: Builder, valid: ir.Value, x: ir.Value) -> ir.Value:
    """Return the integer zero, computed at run time.

    ONNX Runtime warns of a failure that it constant-folds, in a branch that it drops afterwards.
    It may know a size, and whether a check of sizes holds, but folds no ``Size`` of an input.
    """
    measured = _measured_by(x)
    if measured is None:
        return build.cast(valid, "int64")
    return build.Mul(build.Size(measured), 0)


def _measured_by(size: ir.Value) -> ir.Value | None:
    """Return the array from whose shape a size is computed by first operands, or None."""
    if dims_of(size) != ():
        return None
    node = size.producer()
    while node is not None and node.op_type != "Shape":
        first = node.inputs[0] if node.inputs else None
        node = first.producer() if first is not None else None
    return node.inputs[0] if node is not None else None


def _is_known_to_hold(condition: ir.Value) -> bool:
    if condition.const_value is not None:
        return bool(condition.const_value.numpy())
    node = condition.producer()
    if node is None or node.domain or len(node.inputs) != 2:
        return False
    operands = [value for value in node.inputs if value is not None]
    if node.op_type == "Or":
        return any(map(_is_known_to_hold, operands))
    return node.op_type == "Equal" and same_sizes(*operands)
