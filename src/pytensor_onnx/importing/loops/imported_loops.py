"""Loops over steps and over the elements of arrays and sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
from pytensor.conditional import ifelse
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.loops import loop_bounds
from pytensor_onnx.importing.loops.loop_bounds import UNBOUNDED, Counters
from pytensor_onnx.importing.loops.loop_states import (
    Appended,
    Buffered,
    Kept,
    LoopState,
    Unchanged,
    before_loop,
    differ,
    fixed_sizes,
    is_kept,
    most_added,
    state_of_array,
    variable_of,
)
from pytensor_onnx.importing.registry.bodies import Body, BodyFailure
from pytensor_onnx.importing.registry.known_values import (
    Size,
    arguments_for,
    known,
    not_known,
    size,
)
from pytensor_onnx.importing.registry.narrow_types import marked_as
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import
from pytensor_onnx.importing.registry.sequences import (
    StackedList,
    VariableList,
    VariableSequence,
    flat,
    in_form,
)

_MOST_UNROLLED = 1000
"""Largest number of steps of a loop over sequences whose body is copied for each step."""
_FEW_NODES = 256
"""Nodes of all copies up to which a loop over sequences of one shape is copied, too."""
_IN_STEPS = "the number of steps of a loop over sequences must be known at import"


@onnx_import("Loop")
def loop(
    trip_count: TensorVariable | None = None,
    condition: TensorVariable | None = None,
    *states: Any,
    body: Body,
) -> list[Any]:
    """Repeat a graph while a condition holds, up to a number of steps."""
    limit, starts = loop_bounds.trip_count(trip_count), condition
    if condition is not None and (value := known(condition)) is not None:
        limit, starts = limit if value.item() else 0, None
    # A missing optional value at the end is left out as an operand.
    states = (*states, *[None] * (len(body.graph.inputs) - 2 - len(states)))
    is_known = isinstance(limit, int) and limit <= _MOST_UNROLLED and starts is None
    has_arrays = all(isinstance(v, TensorVariable) for v in states)
    try:
        traced = _traced(states, body, limit, is_quiet=is_known and not has_arrays)
    except (UnsupportedCase, BodyFailure) as problem:
        if has_arrays or is_known:
            raise
        if isinstance(problem, BodyFailure):
            problem = UnsupportedCase("its body needs the elements of its sequences one by one")
        bounds = [v for v in (trip_count, condition) if v is not None]
        call = f"{arguments_for(*bounds)}, so that the number of steps is known at import"
        hint = f"{problem.hint}, or {call}" if problem.hint else call
        raise UnsupportedCase(problem.reason, hint) from None
    if traced is not None and (has_arrays or not is_known):
        return _scanned_loop(traced, starts, body)
    n_nodes = len(list(body.graph.all_nodes()))
    assert isinstance(limit, int)
    if traced is None:
        return _unrolled(limit, states, body)
    if not traced.are_alike or limit * n_nodes <= _FEW_NODES:
        with suppress(UnsupportedCase):  # the condition of a step is not known
            return _unrolled(limit, states, body)
    return _scanned_loop(traced, starts, body)


type Step = Callable[[Sequence[Variable], Sequence[Any], Sequence[Variable]], tuple[Any, list[Any]]]
"""Function of elements, states and captured variables: the condition or None, and the results."""


@dataclass(frozen=True)
class _Traced:
    """A step of a loop for variables in place of its states.

    Attributes
    ----------
    states
        How a scan has each state.
    collected
        The values of the step that the loop collects.
    are_alike
        Whether the elements that are appended to sequences have one shape for sure.
    limit
        Largest number of steps.
    is_counted
        Whether the condition does nothing but to count them.
    """

    states: Sequence[LoopState]
    collected: Sequence[Any]
    are_alike: bool
    limit: Size
    is_counted: bool

    @property
    def needs_count(self) -> bool:
        """Return whether a scan needs the number of steps before the first one."""
        return bool(self.collected) or not all(map(is_kept, self.states))


def _traced(states: Sequence[Any], body: Body, limit: Size, *, is_quiet: bool) -> _Traced | None:
    """Return a step of a loop, None if it cannot be imported and the reason is not asked for."""
    index, on = pt.lscalar(), pt.constant(True)
    own = [
        variable_of(v)
        if isinstance(v, TensorVariable)
        else in_form([v], map(variable_of, flat([v])))[0]
        for v in states
    ]
    has_arrays = all(isinstance(v, TensorVariable) for v in states)
    results = body(index, on, *own) if has_arrays else body.attempt(index, on, *own)
    likes: dict[int, TensorVariable] = {}
    while not has_arrays:
        # A sequence that becomes an array may be handed on to another one.
        afters = [None] * len(states) if results is None else results[1 : 1 + len(states)]
        try:
            found = {
                i: _element(v, after, body.graph.inputs[2 + i])
                for i, (v, before, after) in enumerate(zip(states, own, afters, strict=True))
                if i not in likes
                and not isinstance(v, TensorVariable)
                and not _is_kept(before, after)
            }
        except UnsupportedCase:
            if is_quiet:
                return None
            raise
        for i, like in found.items():
            array = pt.tensor(dtype=like.type.dtype, shape=(None, *like.type.shape))
            own[i] = StackedList(array, pt.lscalar())
        if results is not None and not found:
            break
        likes.update(found)
        results = body.attempt(index, on, *own) if is_quiet else body(index, on, *own)
        if results is None:
            return None
    assert results is not None
    goes_on, afters = results[0], results[1 : 1 + len(states)]
    is_counted = (value := known(goes_on)) is not None
    if value is not None and not value.item():
        limit = min(limit, 1) if isinstance(limit, int) else pt.minimum(limit, 1)
    elif value is None and isinstance(limit, int) and limit == UNBOUNDED:
        bound = Counters.of_states(index, own, states, afters).bound(goes_on)
        limit, is_counted = bound or (limit, False)
    names = [str(v.name) for v in body.graph.inputs[2:]]
    step = _Step(names, states, own, results, index, limit)
    try:
        made = [step.state(i, likes.get(i)) for i in range(len(states))]
    except UnsupportedCase:
        if is_quiet:
            return None
        raise
    are_alike = not any(isinstance(v, Appended) and v.sizes is None for v in made)
    return _Traced(made, results[1 + len(states) :], are_alike, limit, is_counted)


def _is_kept(before: Any, after: Any) -> bool:
    """Return whether a sequence is handed on, or stays a list of as many arrays of one rank."""
    if type(before) is not type(after):
        return False
    pairs = list(zip(flat([before]), flat([after]), strict=False))
    has_all = len(flat([before])) == len(flat([after]))
    if isinstance(before, VariableList) and has_all and pairs:
        kinds = [(a.type.ndim, a.type.dtype) == (b.type.ndim, b.type.dtype) for a, b in pairs]
        return all(kinds)
    return has_all and all(a is b for a, b in pairs)


def _element(before: Any, after: Any, value: ir.Value) -> TensorVariable:
    """Return an element of a sequence, of its value before or after a step, or as declared."""
    for sequence in (before, after):
        if isinstance(sequence, VariableSequence) and sequence.variables:
            stacked = sequence.stacked()
            return stacked.last[0] if stacked.last else stacked.array[0]
    if before is None:
        raise UnsupportedCase(f"{_IN_STEPS}, as its state {value.name} has no value at first")
    declared = getattr(value.type, "elem_type", None)
    if isinstance(declared, ir.TensorType) and value.shape is not None:
        sizes = [n if isinstance(n, int) else None for n in value.shape]
        return pt.tensor(dtype=dtype_name(declared.dtype), shape=sizes)
    raise UnsupportedCase(
        f"the sequence {value.name} has no elements before the loop, and their rank is not known",
        "start with one element, or declare the shape of the elements in the file",
    )


@dataclass(frozen=True)
class _Step:
    """A step of a loop: its states before it, their variables in it, and its results."""

    names: Sequence[str]
    values: Sequence[Any]
    own: Sequence[Any]
    results: Sequence[Any]
    index: Variable
    count: Size

    def state(self, i: int, like: TensorVariable | None) -> LoopState:
        """Return how a scan has a state, whose elements are like one if it is a sequence."""
        value, own, after = self.values[i], self.own[i], self.results[1 + i]
        others = [v for j, v in enumerate(self.results) if j != 1 + i]
        if isinstance(value, TensorVariable):
            return state_of_array(self.names[i], value, own, after, others)
        if like is None:
            is_same = all(a is b for a, b in zip(flat([own]), flat([after]), strict=True))
            return Unchanged(value) if is_same else Kept(value)
        if not isinstance(after, VariableSequence):
            raise UnsupportedCase("a state of the loop is a sequence, and becomes none")
        added = after.last if isinstance(after, StackedList) else ()
        if any(differ(v, self.index) for v in added):
            raise UnsupportedCase(
                "the elements that its steps append have other sizes in each step, and a scan "
                "collects arrays of one shape"
            )
        stacked = after if isinstance(after, StackedList) else None
        if stacked and stacked.array is own.array and stacked.length is own.length:
            read = ancestors([*stacked.last, *flat(others)])
            if own.array not in read:
                return Appended(value, own, len(stacked.last), self._sizes(stacked.last))
        return self._buffer(value, own, after, like)

    def _sizes(self, items: Sequence[TensorVariable]) -> list[Size] | None:
        """Return the sizes of elements as they are before the loop, None if they may differ."""
        varying = [self.index, *flat(self.own)]
        sizes = [fixed_sizes(item, varying) for item in items[:1]]
        if not sizes or sizes[0] is None:
            return None
        values = {
            a: b
            for a, b in zip(self.own, self.values, strict=True)
            if isinstance(b, TensorVariable)
        }
        return before_loop(sizes[0], values)

    def _buffer(
        self, value: VariableSequence, own: StackedList, after: Any, like: TensorVariable
    ) -> Buffered:
        added = most_added(after.count, own.length, [self.index, *flat(self.own)])
        if added is None:
            raise UnsupportedCase(
                "the number of elements of a sequence that its steps read has no bound",
                "collect the elements in a sequence that the steps do not read",
            )
        is_grown = not isinstance(added, int) or added > 0
        if is_grown and isinstance(self.count, int) and self.count >= UNBOUNDED:
            raise UnsupportedCase(
                "the number of steps that insert elements in a sequence, which they read, has no "
                "bound",
                "give the loop a trip count",
            )
        sizes: Sequence[Size] | None
        if value.variables:
            rows = value.stacked().rows
            sizes = [size(rows, axis) for axis in range(1, rows.type.ndim)]
        else:
            sizes = self._sizes([like])
        if sizes is None:
            raise UnsupportedCase(
                "the sizes of the elements of a sequence that its steps read must be known before "
                "the loop",
                "start with one element",
            )
        most = value.count + added * self.count if is_grown else value.count
        return Buffered(value, like, sizes, most, is_grown)


def _scanned_loop(traced: _Traced, starts: TensorVariable | None, body: Body) -> list[Any]:
    """Repeat a graph by a scan, if a condition holds."""
    length, has_condition = traced.limit, not traced.is_counted
    is_unbounded = isinstance(length, int) and length == UNBOUNDED
    if is_unbounded and not has_condition:
        raise UnsupportedCase("the loop has no end", "give a trip count or a condition")

    def step(elements: Sequence[Variable], own: Sequence[Any], captured: Sequence[Variable]) -> Any:
        goes_on, *results = body(elements[0], pt.constant(True), *own, captured=captured)
        return goes_on if has_condition else None, results

    n_collected, n_states = len(traced.collected), len(traced.states)
    if is_unbounded:
        number, *results = _until_its_end(step, traced.states, starts, body)
        if not traced.needs_count:
            return results
        length, has_condition = number, False
    elif starts is not None:
        length = pt.switch(starts.reshape(()), length, 0)
    results = _scanned(step, [pt.arange(length)], traced.states, body.captured, n_collected, length)
    return [*results[:n_states], *marked_as(results[n_states:], traced.collected)]


def _until_its_end(
    step: Step, states: Sequence[LoopState], starts: TensorVariable | None, body: Body
) -> list[Any]:
    """Return the number of steps of a loop without a bound, and its last states.

    A scan would allocate an array with a row for each of 2³¹ steps.
    """

    def numbered(elements: Sequence[Variable], own: Sequence[Any], captured: Any) -> Any:
        goes_on, results = step(own[:1], own[1:], captured)
        return goes_on, [own[0] + 1, *results]

    states = [Kept(pt.constant(0, dtype="int64")), *states]
    if starts is None:
        return _scanned(numbered, [], states, body.captured, None, UNBOUNDED)
    starts = starts.reshape(())
    count = pt.switch(starts, UNBOUNDED, 0)
    found = _scanned(numbered, [], states, body.captured, None, count)
    firsts = [state.result(state.first, (), None) if is_kept(state) else None for state in states]
    # The last state is read by its position, as all others would be allocated.
    pairs = zip(flat(found), flat(firsts), strict=True)
    # PyTensor's gradient takes no choice of integers among floats.
    return in_form(found, [ifelse(starts, a, b) for a, b in pairs])


def _unrolled(count: int, states: Sequence[Any], body: Body) -> list[Any]:
    """Repeat a graph by copies of it, whose number must be known."""
    traces: list[list[Variable]] = [[] for _ in body.graph.outputs[1 + len(states) :]]
    step, goes_on = 0, True
    while goes_on and step < count:
        condition, *results = body(pt.constant(step, dtype="int64"), pt.constant(True), *states)
        states = results[: len(states)]
        for trace, value in zip(traces, results[len(states) :], strict=True):
            trace.append(value)
        is_on = known(condition)
        if is_on is None:
            raise not_known(_IN_STEPS, condition)
        step, goes_on = step + 1, bool(is_on.item())
    if step == 0 and traces:
        raise UnsupportedCase("a loop over sequences collects values, and has no steps")
    return [*states, *(pt.stack(trace) for trace in traces)]


def _scanned(
    step: Step,
    sequences: Sequence[TensorVariable],
    states: Sequence[LoopState],
    captured: Sequence[Variable],
    n_collected: int | None,
    length: Size,
) -> list[Any]:
    """Return the last states and the collected values of a scan.

    Parameters
    ----------
    step, sequences, states, captured, length
        The step, the arrays that it takes elements of, its states, further variables, and the
        number of steps.
    n_collected
        Number of the collected values; None if nothing is collected, also not by states.
    """
    firsts = [list(state.first) for state in states]
    outers = [list(state.outer) for state in states]
    flat_firsts = list(chain(*firsts))
    unique = list(dict.fromkeys([*chain(*outers), *captured]))
    has_end = False
    n_own = [state.n_collected for state in states if n_collected is not None]

    def taken(*rest: Variable) -> object:
        elements, rest = rest[: len(sequences)], rest[len(sequences) :]
        own = rest[: len(flat_firsts)]
        inner = dict(zip(unique, rest[len(flat_firsts) :], strict=True))
        outer = [inner[v] for v in chain(*outers)]
        index = elements[0] if elements else own[0]
        befores = [
            state.before(a, b, index)
            for state, a, b in zip(states, _split(own, firsts), _split(outer, outers), strict=True)
        ]
        nonlocal has_end
        outside = marked_as([inner[v] for v in captured], captured)
        goes_on, results = step(elements, befores, outside)
        has_end = goes_on is not None
        made = list(zip(states, befores, results, strict=False))
        after = [v for state, before, value in made for v in state.after(before, value)]
        if n_collected is not None:
            after += [v for state, before, value in made for v in state.collected(before, value)]
            after += results[len(states) :]
        return after if goes_on is None else (after, until(pt.invert(goes_on.reshape(()))))

    traces = pytensor.scan(
        taken,
        sequences=list(sequences),
        outputs_info=[*flat_firsts, *[None] * (sum(n_own) + (n_collected or 0))],
        non_sequences=unique,
        n_steps=length,
        return_list=True,
        return_updates=False,
    )
    last = []
    for first, trace in zip(flat_firsts, traces, strict=False):
        if n_collected is None or (isinstance(length, int) and length > 0):
            last.append(trace[-1])
        else:
            last.append(pt.concatenate([first[None], trace])[-1])
    lasts, collected = _split(last, firsts), traces[len(last) :]
    if n_collected is None:
        kept = zip(states, lasts, strict=True)
        return [state.result(a, (), None) if is_kept(state) else None for state, a in kept]
    own = _split(collected, [range(n) for n in n_own])
    count = None if has_end else length
    results = [state.result(a, b, count) for state, a, b in zip(states, lasts, own, strict=True)]
    return [*results, *collected[sum(n_own) :]]


def _split[T](values: Sequence[T], parts: Sequence[Sequence[Any]]) -> list[Sequence[T]]:
    """Return values in groups that are as long as some parts."""
    given = iter(values)
    return [[next(given) for _ in part] for part in parts]


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
    firsts, given = operands[:n_states], operands[n_states:]
    axes = scan_input_axes or (0,) * num_scan_inputs
    backwards = scan_input_directions or (0,) * num_scan_inputs
    sequences = [
        _leading(x, axis)[::-1] if back else _leading(x, axis)
        for x, axis, back in zip(given, axes, backwards, strict=True)
    ]
    before = list(map(variable_of, firsts))
    after = body(*before, *marked_as([x[0].type() for x in sequences], given))
    names = [str(v.name) for v in body.graph.inputs]
    states = [
        state_of_array(names[i], value, own, after[i], [*after[:i], *after[i + 1 :]])
        for i, (value, own) in enumerate(zip(firsts, before, strict=True))
    ]

    def step(elements: Sequence[Variable], own: Sequence[Any], captured: Sequence[Variable]) -> Any:
        return None, body(*own, *marked_as(elements, given), captured=captured)

    n_traced = len(body.graph.outputs) - n_states
    length = size(sequences[0], 0)
    results = _scanned(step, sequences, states, body.captured, n_traced, length)
    axes = scan_output_axes or (0,) * n_traced
    backwards = scan_output_directions or (0,) * n_traced
    traces = [
        pt.moveaxis(x[::-1] if back else x, 0, axis % x.type.ndim)
        for x, axis, back in zip(results[n_states:], axes, backwards, strict=True)
    ]
    return marked_as([*results[:n_states], *traces], after)


def _leading(x: TensorVariable, axis: int) -> TensorVariable:
    return x if axis % x.type.ndim == 0 else pt.moveaxis(x, axis, 0)


@onnx_import("SequenceMap")
def sequence_map(sequence: VariableSequence, *others: Any, body: Body) -> list[VariableSequence]:
    """Apply a graph to the elements of sequences, and to arrays as they are."""
    given = [sequence, *others]
    lists = [v for v in given if isinstance(v, VariableSequence)]
    if all(isinstance(v, VariableList) for v in lists):
        made = [
            body(*(v.items[i] if isinstance(v, VariableList) else v for v in given))
            for i in range(len(lists[0].variables))
        ]
        return [
            VariableList(tuple(row[position] for row in made))
            for position in range(len(body.graph.outputs))
        ]
    n, count = len(flat(given)), lists[0].count

    def results_of(index: Variable, variables: Sequence[Variable], captured: Any) -> list[Any]:
        values = in_form(given, variables)
        return body(
            *(v.element(index) if isinstance(v, VariableSequence) else v for v in values),
            captured=captured,
        )

    def step(elements: Sequence[Variable], own: Sequence[Any], outer: Sequence[Variable]) -> Any:
        results = results_of(elements[0], outer[:n], outer[n:])
        lists = [before.appended(v) for before, v in zip(own, results, strict=True)]
        return None, lists

    index = pt.lscalar()
    states = []
    for item in results_of(index, flat(given), body.captured):
        own = StackedList(pt.tensor(dtype=item.type.dtype, shape=(None, *item.type.shape)))
        sizes = fixed_sizes(item, [index])
        states.append(Appended(VariableList(()), own, 1, sizes and before_loop(sizes, {})))
    captured = [*flat(given), *body.captured]
    return _scanned(step, [pt.arange(count)], states, captured, 0, count)
