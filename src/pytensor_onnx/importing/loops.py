"""Loops over steps and over the elements of sequences."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.scan.utils import until
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.bodies import Body
from pytensor_onnx.importing.registry.known_values import Size, known, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import

_UNBOUNDED = 2**31 - 1


@onnx_import("Loop")
def loop(
    trip_count: TensorVariable | None = None,
    condition: TensorVariable | None = None,
    *states: TensorVariable,
    body: Body,
) -> list[Variable]:
    """Repeat a graph while a condition holds, up to a number of steps."""
    count = _trip_count(trip_count, condition)
    before = [state.type() for state in states]
    goes_on, *traced = body(pt.lscalar(), pt.constant(True), *before)
    for value, old, new in zip(body.graph.inputs[2:], before, traced, strict=False):
        _check_shape(str(value.name), old, new)
    is_always = known(goes_on)
    n_states = len(states)
    if count == _UNBOUNDED and is_always is not None and is_always.item():
        raise UnsupportedCase("the loop has no end", "give a trip count or a condition")
    if count == _UNBOUNDED and len(traced) > n_states:
        raise UnsupportedCase(
            "the number of steps whose values it collects has no bound",
            "give the loop a trip count",
        )
    length: Size = count
    if is_always is not None and not is_always.item():
        length = min(count, 1) if isinstance(count, int) else pt.minimum(count, 1)
    captured = body.captured

    def step(index: Variable, *rest: Variable) -> object:
        own, outer = rest[:n_states], rest[n_states:]
        condition, *results = body(index, pt.constant(True), *own, captured=outer)
        results[:n_states] = map(_as_before, results, states)
        if is_always is not None:
            return results
        return results, until(pt.invert(condition.reshape(())))

    return _scanned(step, [pt.arange(length)], states, captured, len(traced) - n_states, length)


def _trip_count(trip_count: TensorVariable | None, condition: TensorVariable | None) -> Size:
    """Return the largest number of steps: none if the condition is false from the start."""
    count: Size = _UNBOUNDED
    if trip_count is not None:
        value = known(trip_count)
        count = trip_count.reshape(()) if value is None else min(int(value.item()), _UNBOUNDED)
        count = max(count, 0) if isinstance(count, int) else pt.maximum(count, 0)
    if condition is None:
        return count
    value = known(condition)
    if value is not None:
        return count if value.item() else 0
    return pt.switch(condition.reshape(()), count, 0)


def _check_shape(name: str, before: TensorVariable, after: TensorVariable) -> None:
    """Refuse a state whose shape changes from step to step."""
    if before.type.ndim == after.type.ndim:
        pairs = zip(before.type.shape, after.type.shape, strict=True)
        is_other = any(None not in pair and pair[0] != pair[1] for pair in pairs)
        sizes = ShapeFeature().shape_tuple(after)
        if not is_other and not any(_is_larger(n, before, a) for a, n in enumerate(sizes)):
            return
    raise UnsupportedCase(
        f"the shape of its state {name} changes from step to step, and a scan's does not",
        "collect the values of the steps as a scan output, or start with an array of the full size",
    )


def _is_larger(number: Variable, state: TensorVariable, axis: int) -> bool:
    """Return whether a size is the sum of that of a state and another one."""
    owner = number.owner
    if owner is None or not isinstance(getattr(owner.op, "scalar_op", None), ps.Add):
        return False
    own = Shape_i(axis)(state)
    return any(equal_computations([v], [own]) for v in owner.inputs)


def _as_before(result: TensorVariable, state: TensorVariable) -> TensorVariable:
    """Return a state after a step in the shape before it, which PyTensor's buffers need."""
    if result.type.shape == state.type.shape:
        return result
    if None not in state.type.shape:
        return pt.specify_shape(result, state.type.shape)
    return result


def _scanned(
    step: object,
    sequences: Sequence[Variable],
    states: Sequence[TensorVariable],
    captured: Sequence[Variable],
    n_traced: int,
    length: Size,
) -> list[Variable]:
    """Return the last states and the traces of a scan; without steps the states are the first."""
    traces = pytensor.scan(
        step,
        sequences=list(sequences),
        outputs_info=[*states, *[None] * n_traced],
        non_sequences=list(captured),
        n_steps=length,
        return_list=True,
        return_updates=False,
    )
    last = []
    for first, trace in zip(states, traces, strict=False):
        if isinstance(length, int) and length > 0:
            last.append(trace[-1])
        else:
            last.append(pt.concatenate([first[None], trace])[-1])
    return [*last, *traces[len(states) :]]


@onnx_import("Scan", since=9)
def scan(
    *operands: TensorVariable,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None = None,
    scan_input_directions: tuple[int, ...] | None = None,
    scan_output_axes: tuple[int, ...] | None = None,
    scan_output_directions: tuple[int, ...] | None = None,
) -> list[Variable]:
    """Apply a graph to the elements of sequences, with states from step to step."""
    n_states = len(operands) - num_scan_inputs
    states, given = operands[:n_states], operands[n_states:]
    axes = scan_input_axes or (0,) * num_scan_inputs
    backwards = scan_input_directions or (0,) * num_scan_inputs
    sequences = [
        _leading(x, axis)[::-1] if back else _leading(x, axis)
        for x, axis, back in zip(given, axes, backwards, strict=True)
    ]
    captured = body.captured
    before = [v.type() for v in states]
    after = body(*before, *(x[0].type() for x in sequences))
    for value, old, new in zip(body.graph.inputs, before, after, strict=False):
        _check_shape(str(value.name), old, new)

    def step(*rest: Variable) -> list[Variable]:
        n = num_scan_inputs
        elements, own, outer = rest[:n], rest[n : n + n_states], rest[n + n_states :]
        results = body(*own, *elements, captured=outer)
        results[:n_states] = map(_as_before, results, states)
        return results

    n_traced = len(body.graph.outputs) - n_states
    results = _scanned(step, sequences, states, captured, n_traced, size(sequences[0], 0))
    axes = scan_output_axes or (0,) * n_traced
    backwards = scan_output_directions or (0,) * n_traced
    traces = [
        pt.moveaxis(x[::-1] if back else x, 0, axis % x.type.ndim)
        for x, axis, back in zip(results[n_states:], axes, backwards, strict=True)
    ]
    return [*results[:n_states], *traces]


def _leading(x: TensorVariable, axis: int) -> TensorVariable:
    return x if axis % x.type.ndim == 0 else pt.moveaxis(x, axis, 0)
