"""Recurrent layers that keep NaN, and that may have no steps or no sequences.

The operator is computed where its kernel is right. The other branch has the loop that defines the
layer, or empty results.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder, convert_fallback, has_fallback
from pytensor_onnx.graph.traversal import is_bare, mark_guarded, mark_rare
from pytensor_onnx.operators.dims import dims_of, is_positive
from pytensor_onnx.passes.matching import constant_of, required
from pytensor_onnx.passes.node_walk import emit_alike

LARGEST = 1e18
"""Bound for the sums of magnitudes of operands, whose products are then finite in float32."""

Branch = Callable[[Builder], list[ir.Value]]


def may_lose_nan(node: ir.Node) -> bool:
    """Return whether an operand of a layer may not be finite, which its loop can compute."""
    return is_bare(node) and has_fallback(node)


def may_be_empty(node: ir.Node) -> bool:
    """Return whether there may be no steps or no sequences."""
    dims = dims_of(node.inputs[0])
    return is_bare(node) and not (dims is not None and all(map(is_positive, dims[:2])))


def keep_non_finite(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Run the loop where an operand is large, infinite or NaN, or empty."""
    operands = [x for x in node.inputs if x is not None and not _is_small_constant(x)]
    tests = []
    if operands:
        totals = [build.ReduceL1(x, keepdims=0) for x in operands]
        total = totals[0] if len(totals) == 1 else build.Sum(*totals)
        tests.append(build.Less(total, LARGEST))
    if may_be_empty(node):
        tests.append(_has_elements(build, node))
    return _where(build, node, tests, lambda other: convert_fallback(other, node))


def keep_states(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the initial states where there are no steps or no sequences."""

    def initial_states(other: Builder) -> list[ir.Value]:
        x, state = required(node.inputs[0]), _zero_state(other, node)
        time = other.Shape(x, start=0, end=1)
        shape = other.Concat(time, other.Shape(state), axis=0)
        outputs = other.Expand(other.number_like(x, 0), shape)
        states = [value for value in node.inputs[5:] if value is not None]
        states = states or [state] * (len(node.outputs) - 1)
        # A node of an imported model may have fewer results than states.
        states = states[: len(node.outputs) - 1]
        results = [outputs, *(other.Identity(value) for value in states)]
        for result, old in zip(results, node.outputs, strict=True):
            result.shape = old.shape
        return results

    return _where(build, node, [_has_elements(build, node)], initial_states)


def lacks_product_with_state(node: ir.Node) -> bool:
    """Return whether the weights of an initial state of zeros may not be finite."""
    return not any(node.inputs[5:]) and not _is_small_constant(required(node.inputs[2]))


def give_state(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Give the initial state of zeros."""
    x, w, r, *bias = node.inputs[:4]
    operands = [x, w, r, *(bias or [None]), None, _zero_state(build, node)]
    return _operator(build, node, operands)


def _zero_state(build: Builder, node: ir.Node) -> ir.Value:
    x, r = required(node.inputs[0]), required(node.inputs[2])
    directions, hidden = build.Shape(r, end=1), build.Shape(r, start=2)
    batch = build.Shape(x, start=1, end=2)
    return build.Expand(build.number_like(x, 0), build.Concat(directions, batch, hidden, axis=0))


def _operator(build: Builder, node: ir.Node, operands: Sequence[ir.Value | None]) -> list[ir.Value]:
    """Emit the operator of a layer for other operands."""
    results = emit_alike(build, node, operands)
    for result, old in zip(results, node.outputs, strict=True):
        result.shape = old.shape
    return results


def _where(
    build: Builder, node: ir.Node, tests: Sequence[ir.Value], other: Branch
) -> list[ir.Value]:
    """Compute a layer by its operator where all tests hold, else by another branch."""

    def operator(inner: Builder) -> list[ir.Value]:
        results = _operator(inner, node, node.inputs)
        mark_guarded(results[0])
        return results

    if not tests:
        return operator(build)
    condition = tests[0] if len(tests) == 1 else build.And(*tests)
    results = build.cond(condition, operator, other)
    mark_rare(results[0])
    return results


def _has_elements(build: Builder, node: ir.Node) -> ir.Value:
    return build.Greater(build.Size(node.inputs[0]), 0)


def _is_small_constant(x: ir.Value) -> bool:
    """Return whether an operand is known to be within the bound."""
    array = constant_of(x)
    return array is not None and bool(np.abs(array).sum(dtype=np.float64) < LARGEST)
