"""Loops over steps and over the elements of sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.scan.utils import until
from pytensor.tensor.basic import Join
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.bodies import Body
from pytensor_onnx.importing.registry.known_values import Size, known, not_known, size
from pytensor_onnx.importing.registry.narrow_types import marked, marked_as, narrow_type
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.rewriting.engine.predicates import elementwise

_UNBOUNDED = 2**31 - 1
_MOST_UNROLLED = 1000
"""Largest number of steps of a loop over sequences; each step is a copy of the body."""


@onnx_import("Loop")
def loop(
    trip_count: TensorVariable | None = None,
    condition: TensorVariable | None = None,
    *states: Any,
    body: Body,
) -> list[Variable]:
    """Repeat a graph while a condition holds, up to a number of steps."""
    count = _trip_count(trip_count, condition)
    # A missing optional value at the end is left out as an operand.
    states = (*states, *[None] * (len(body.graph.inputs) - 2 - len(states)))
    if not all(isinstance(v, TensorVariable) for v in states):
        return _unrolled(count, [v for v in (trip_count, condition) if v is not None], states, body)
    before = list(map(_variable_of, states))
    goes_on, *traced = body(pt.lscalar(), pt.constant(True), *before)
    growth = _growth(before, [*traced, goes_on])
    _check_states(body.graph.inputs[2:], before, traced, growth)
    is_always = known(goes_on)
    n_states = len(states)
    if count == _UNBOUNDED and is_always is not None and is_always.item():
        raise UnsupportedCase("the loop has no end", "give a trip count or a condition")
    if count == _UNBOUNDED and (len(traced) > n_states or growth.axes):
        raise UnsupportedCase(
            "the number of steps whose values it collects has no bound",
            "give the loop a trip count",
        )
    length: Size = count
    if is_always is not None and not is_always.item():
        length = min(count, 1) if isinstance(count, int) else pt.minimum(count, 1)
    captured = body.captured

    def step(index: Variable, *rest: Variable) -> object:
        own = marked_as(growth.filled(before, rest[: growth.kept]), before)
        outer = marked_as(rest[growth.kept :], captured)
        condition, *results = body(index, pt.constant(True), *own, captured=outer)
        results = growth.step_results(own, results, states)
        if is_always is not None:
            return results
        return results, until(pt.invert(condition.reshape(())))

    steps = [pt.arange(length)]
    results = _scanned(step, steps, states, growth, captured, len(traced) - n_states, length)
    return marked_as(results, traced)


def _unrolled(
    count: Size, bounds: Sequence[Variable], states: Sequence[Any], body: Body
) -> list[Any]:
    """Repeat a graph with sequences as states: the number of steps must be known at import."""
    reason = "the number of steps of a loop over sequences must be known at import"
    if not isinstance(count, int):
        raise not_known(reason, *bounds)
    traces: list[list[Variable]] = [[] for _ in body.graph.outputs[1 + len(states) :]]
    step, goes_on = 0, True
    while goes_on and step < count:
        if step == _MOST_UNROLLED:
            raise UnsupportedCase(f"a loop over sequences has more than {step} steps")
        condition, *results = body(pt.constant(step, dtype="int64"), pt.constant(True), *states)
        states = results[: len(states)]
        for trace, value in zip(traces, results[len(states) :], strict=True):
            trace.append(value)
        is_on = known(condition)
        if is_on is None:
            raise not_known(reason, condition)
        step, goes_on = step + 1, bool(is_on.item())
    if step == 0 and traces:
        raise UnsupportedCase("a loop over sequences collects values, and has no steps")
    return [*states, *(pt.stack(trace) for trace in traces)]


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


def _variable_of(state: TensorVariable) -> TensorVariable:
    """Return a variable for a state in the body; empty axes may grow."""
    shape = [None if size == 0 else size for size in state.type.shape]
    return marked(pt.tensor(dtype=state.type.dtype, shape=shape), narrow_type(state))


@dataclass(frozen=True)
class _Growth:
    """States that only have values appended, and are no operands of anything else.

    A scan collects the appended values in their place, as the shape of its states does not change.

    Attributes
    ----------
    axes
        The axis along which each such state grows, by its number.
    count
        Number of all states.
    """

    axes: Mapping[int, int]
    count: int

    @property
    def kept(self) -> int:
        """Return the number of other states."""
        return self.count - len(self.axes)

    def others[T](self, states: Sequence[T]) -> list[T]:
        """Return the states whose shapes do not change."""
        return [state for i, state in enumerate(states[: self.count]) if i not in self.axes]

    def filled(self, all_states: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Return all states: the growing ones of these, and the given others in their places."""
        given = iter(others)
        return [x if i in self.axes else next(given) for i, x in enumerate(all_states)]

    def step_results(
        self, own: Sequence[Any], results: Sequence[Any], states: Sequence[Any]
    ) -> list[Any]:
        """Return the other states after a step, the appended values, and the collected results."""
        after = map(_as_before, self.others(results), self.others(states))
        values = [_appended(own[i], results[i])[1] for i in self.axes]
        return [*after, *values, *results[self.count :]]

    def grown(self, states: Sequence[Any], traces: Sequence[Any]) -> list[Any]:
        """Return the states with the values of all steps."""
        return [
            pt.concatenate([states[i], _joined_steps(trace, states[i], axis)], axis=axis)
            for (i, axis), trace in zip(self.axes.items(), traces, strict=True)
        ]


def _growth(before: Sequence[TensorVariable], results: Sequence[Variable]) -> _Growth:
    """Find the states that grow: the first results of a body are the states after a step."""
    axes = {}
    for i, state in enumerate(before):
        axis, value = _appended(state, results[i])
        if value is not None:
            rest = [value, *results[:i], *results[i + 1 :]]
            if state not in ancestors(rest):
                axes[i] = axis
    return _Growth(axes, len(before))


def _appended(before: Variable, after: Variable) -> tuple[int, Any]:
    """Return axis and value of a join of a state and a value; None for other results."""
    if after.owner is None or not isinstance(after.owner.op, Join):
        return 0, None
    axis, (first, *values) = after.owner.op.axis, after.owner.inputs
    if first is not before:
        return 0, None
    return axis, values[0] if len(values) == 1 else pt.concatenate(values, axis=axis)


def _joined_steps(trace: TensorVariable, state: TensorVariable, axis: int) -> TensorVariable:
    """Return the values of steps, which are along the first axis, one after the other."""
    # The trace of no step has zeros for all sizes.
    shape = [state.shape[i] for i in range(state.type.ndim)]
    shape[axis] = trace.shape[0] * trace.shape[1 + axis]
    return pt.moveaxis(trace, 0, axis).reshape(shape, ndim=state.type.ndim)


def _check_states(
    values: Sequence[Any],
    before: Sequence[TensorVariable],
    after: Sequence[TensorVariable],
    growth: _Growth,
) -> None:
    for i, (value, old) in enumerate(zip(values, before, strict=False)):
        if i not in growth.axes:
            _check_shape(str(value.name), old, after[i])


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
        "collect the values of the steps as a scan output, append them to a state that the steps "
        "do not read, or start with an array of the full size",
    )


def _is_larger(number: Variable, state: TensorVariable, axis: int) -> bool:
    """Return whether a size is the sum of that of a state and another one."""
    total = elementwise(number, ps.Add)
    if total is None:
        return False
    own = Shape_i(axis)(state)
    return any(equal_computations([v], [own]) for v in total.inputs)


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
    growth: _Growth,
    captured: Sequence[Variable],
    n_traced: int,
    length: Size,
) -> list[Variable]:
    """Return the last states and the traces of a scan; without steps the states are the first."""
    others = growth.others(states)
    traces = pytensor.scan(
        step,
        sequences=list(sequences),
        outputs_info=[*others, *[None] * (len(growth.axes) + n_traced)],
        non_sequences=list(captured),
        n_steps=length,
        return_list=True,
        return_updates=False,
    )
    last = []
    for first, trace in zip(others, traces, strict=False):
        if isinstance(length, int) and length > 0:
            last.append(trace[-1])
        else:
            last.append(pt.concatenate([first[None], trace])[-1])
    collected = traces[len(others) :]
    ends = iter(growth.grown(states, collected[: len(growth.axes)]))
    all_states = [next(ends) if i in growth.axes else None for i in range(growth.count)]
    return [*growth.filled(all_states, last), *collected[len(growth.axes) :]]


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
    before = list(map(_variable_of, states))
    after = body(*before, *marked_as([x[0].type() for x in sequences], given))
    growth = _growth(before, after)
    _check_states(body.graph.inputs, before, after, growth)

    def step(*rest: Variable) -> list[Variable]:
        n = num_scan_inputs
        elements, others, outer = rest[:n], rest[n : n + growth.kept], rest[n + growth.kept :]
        own = marked_as(growth.filled(before, others), before)
        results = body(*own, *marked_as(elements, given), captured=marked_as(outer, captured))
        return growth.step_results(own, results, states)

    n_traced = len(body.graph.outputs) - n_states
    results = _scanned(step, sequences, states, growth, captured, n_traced, size(sequences[0], 0))
    axes = scan_output_axes or (0,) * n_traced
    backwards = scan_output_directions or (0,) * n_traced
    traces = [
        pt.moveaxis(x[::-1] if back else x, 0, axis % x.type.ndim)
        for x, axis, back in zip(results[n_states:], axes, backwards, strict=True)
    ]
    return marked_as([*results[:n_states], *traces], after)


def _leading(x: TensorVariable, axis: int) -> TensorVariable:
    return x if axis % x.type.ndim == 0 else pt.moveaxis(x, axis, 0)
