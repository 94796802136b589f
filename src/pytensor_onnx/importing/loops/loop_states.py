"""The states of loops, and how a scan has each of them from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, override

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor import function
from pytensor.compile.mode import Mode
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors, walk
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Join
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import IncSubtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import Size, filled, known, size
from pytensor_onnx.importing.registry.narrow_types import marked, narrow_type
from pytensor_onnx.importing.registry.sequences import (
    StackedList,
    VariableSequence,
    flat,
    in_form,
    like_elements,
)
from pytensor_onnx.rewriting.engine.predicates import elementwise

_ONE_SHAPE = CheckAndRaise(
    ValueError, "the elements that a loop appends to a sequence must have one shape"
)


_MANY = 1000
"""Elements along axes of open sizes, for which sizes of slices are compared."""


class LoopState:
    """A state of a loop.

    Attributes
    ----------
    first
        The states of the scan for it, before the first step.
    outer
        Variables of the surrounding graph that its value in a step is computed from.
    n_collected
        Number of the values that the scan collects of a step.
    """

    first: Sequence[TensorVariable] = ()
    outer: Sequence[Variable] = ()
    n_collected: int = 0

    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        """Return the value in a step, from the states of the scan and the number of the step."""
        raise NotImplementedError

    def after(self, before: Any, value: Any) -> list[Variable]:
        """Return the states of the scan after a step."""
        return []

    def collected(self, before: Any, value: Any) -> list[Variable]:
        """Return the values of a step that the scan collects."""
        return []

    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        """Return the value after all steps.

        Parameters
        ----------
        last, traces
            The last states of the scan, and the values that it collects.
        count
            Number of the steps, None if a condition ends them.
        """
        raise NotImplementedError


@dataclass
class Kept(LoopState):
    """An array, or a list of arrays, whose shapes do not change.

    Attributes
    ----------
    value
        Its value before the first step.
    """

    value: Any

    def __post_init__(self) -> None:
        self.first = flat([self.value])

    @override
    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        own = [marked(v, narrow_type(a)) for v, a in zip(states, self.first, strict=True)]
        return in_form([self.value], own)[0]

    @override
    def after(self, before: Any, value: Any) -> list[Variable]:
        return [_as_before(a, b) for a, b in zip(flat([value]), self.first, strict=True)]

    @override
    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        return in_form([self.value], last)[0]


@dataclass
class Unchanged(LoopState):
    """A value that the steps hand on.

    Attributes
    ----------
    value
        The value.
    """

    value: Any

    def __post_init__(self) -> None:
        self.outer = flat([self.value])

    @override
    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        return in_form([self.value], outer)[0]

    @override
    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        return self.value


@dataclass
class Grown(LoopState):
    """An array that only has values appended along an axis, and is no operand of anything else.

    A scan collects the appended values in its place, as the shape of its states does not change.

    Attributes
    ----------
    value, own
        The array before the first step, and a variable for it in a step.
    axis
        The axis.
    """

    value: TensorVariable
    own: TensorVariable
    axis: int
    n_collected = 1

    @override
    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        return self.own

    @override
    def collected(self, before: Any, value: Any) -> list[Variable]:
        return [joined_value(before, value)[1]]

    @override
    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        (trace,) = traces
        # The trace of no step has zeros for all sizes.
        shape = [self.value.shape[i] for i in range(self.value.type.ndim)]
        shape[self.axis] = trace.shape[0] * trace.shape[1 + self.axis]
        steps = pt.moveaxis(trace, 0, self.axis).reshape(shape, ndim=self.value.type.ndim)
        return pt.concatenate([self.value, steps], axis=self.axis)


@dataclass
class Appended(LoopState):
    """A sequence whose elements the steps do not read, with a number of new ones from each step.

    Attributes
    ----------
    value, own
        The sequence before the first step, and one for it in a step.
    added
        Number of the elements that a step appends.
    sizes
        The sizes of an element, None if they may differ from step to step.
    """

    value: VariableSequence
    own: StackedList
    added: int
    sizes: list[Size] | None = None

    def __post_init__(self) -> None:
        self.outer = [v for v in [self.value.count] if isinstance(v, Variable)]
        self.n_collected = 1 if self.sizes is not None else 2

    @override
    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        count = outer[0] if outer else self.value.count
        return StackedList(self.own.array, count + self.added * index)

    @override
    def collected(self, before: Any, value: Any) -> list[Variable]:
        items = [marked(v, None) for v in value.last]
        traced = items if self.added == 1 else [pt.stack(items)]
        return traced if self.sizes is not None else [*traced, items[0].shape]

    @override
    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        trace, *shapes = traces
        if self.added > 1:
            sizes = [size(trace, i) for i in range(2, trace.type.ndim)]
            trace = trace.reshape((trace.shape[0] * self.added, *sizes), ndim=trace.type.ndim - 1)
        if shapes:
            trace = _ONE_SHAPE(trace, pt.all(pt.eq(shapes[0][1:], shapes[0][:-1])))
        if self.value.variables:
            before = self.value.stacked().rows
            sizes = [size(before, i) for i in range(1, before.type.ndim)]
            length, trace = None, _of_rows(trace, sizes)
            if isinstance(self.value, StackedList) and self.value.length is not None:
                steps = trace.shape[0] if count is None else count * self.added
                length = self.value.count + pt.as_tensor(steps, dtype="int64")
            return StackedList(pt.concatenate([before, trace]), length)
        return StackedList(trace if self.sizes is None else _of_rows(trace, self.sizes))


def _of_rows(trace: TensorVariable, sizes: Sequence[Size]) -> TensorVariable:
    """Return the elements of all steps; the trace of no step has zeros for all sizes."""
    return trace.reshape((trace.shape[0], *sizes), ndim=trace.type.ndim)


@dataclass
class Buffered(LoopState):
    """A sequence whose elements the steps read or replace, in an array of the largest number.

    Attributes
    ----------
    value
        The sequence before the first step.
    like
        An element.
    sizes
        The sizes of an element.
    most
        Number of elements that it has at most.
    """

    value: VariableSequence
    like: TensorVariable
    sizes: Sequence[Size]
    most: Size
    is_grown: bool = field(default=True)

    def __post_init__(self) -> None:
        has_rows = bool(self.value.variables)
        array = filled(pt.zeros((), dtype=self.like.type.dtype), [self.most, *self.sizes])
        if has_rows:
            rows = self.value.stacked().rows
            array = pt.set_subtensor(array[: size(rows, 0)], rows) if self.is_grown else rows
        self.first = [array, pt.as_tensor(self.value.count, dtype="int64")]

    @override
    def before(self, states: Sequence[Variable], outer: Sequence[Variable], index: Variable) -> Any:
        return StackedList(*states)

    @override
    def after(self, before: Any, value: Any) -> list[Variable]:
        buffer = before.array
        new = value.stacked() if value.variables else StackedList(buffer, pt.constant(0))
        if _is_of_buffer(new.array, buffer) and new.length is not None:
            array, place = new.array, new.length
            for item in new.last:
                array = pt.set_subtensor(array[place], like_elements(item, buffer))
                place = place + 1
        else:
            rows, place = new.rows, pt.as_tensor(new.count, dtype="int64")
            sizes = [None, *(size(buffer, i) for i in range(1, buffer.type.ndim))]
            array = pt.set_subtensor(buffer[:place], pt.specify_shape(rows, sizes))
        return [_as_before(array, self.first[0]), place.astype("int64")]

    @override
    def result(
        self, last: Sequence[Variable], traces: Sequence[Variable], count: Size | None
    ) -> Any:
        return StackedList(*last)


def _is_of_buffer(array: Variable, buffer: Variable) -> bool:
    """Return whether an array is a buffer in which elements are replaced."""
    while array.owner is not None and isinstance(array.owner.op, IncSubtensor):
        array = array.owner.inputs[0]
    return array is buffer


def is_kept(state: LoopState) -> bool:
    """Return whether a scan needs no number of steps for a state."""
    return isinstance(state, Kept | Unchanged)


def variable_of(state: TensorVariable) -> TensorVariable:
    """Return a variable for a state in the body; empty axes may grow."""
    shape = [None if size == 0 else size for size in state.type.shape]
    return marked(pt.tensor(dtype=state.type.dtype, shape=shape), narrow_type(state))


def joined_value(before: Variable, after: Variable) -> tuple[int, Any]:
    """Return axis and value of a join of a state and a value; None for other results."""
    if after.owner is None or not isinstance(after.owner.op, Join):
        return 0, None
    axis, (first, *values) = after.owner.op.axis, after.owner.inputs
    if first is not before:
        return 0, None
    return axis, values[0] if len(values) == 1 else pt.concatenate(values, axis=axis)


def state_of_array(
    name: str, value: TensorVariable, own: TensorVariable, after: Variable, others: Sequence[Any]
) -> Kept | Grown:
    """Return how a scan has an array.

    Parameters
    ----------
    name
        Its name in the file.
    value, own, after
        The array before the first step, its variable in a step, and the one after the step.
    others
        The other results of a step.

    Raises
    ------
    UnsupportedCase
        If its shape changes from step to step.
    """
    axis, joined = joined_value(own, after)
    if joined is not None and own not in ancestors([joined, *flat(others)]):
        return Grown(value, own, axis)
    _check_shape(name, own, after)
    return Kept(value)


def _check_shape(name: str, before: TensorVariable, after: Any) -> None:
    """Refuse a state whose shape changes from step to step."""
    if isinstance(after, TensorVariable) and before.type.ndim == after.type.ndim:
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
    return total is not None and any(_is_size(v, state, axis) for v in total.inputs)


def _is_size(number: Variable, state: TensorVariable, axis: int) -> bool:
    owner = number.owner
    return owner is not None and owner.op == Shape_i(axis) and owner.inputs[0] is state


def _as_before(result: TensorVariable, state: TensorVariable) -> TensorVariable:
    """Return a state after a step in the shape before it, which PyTensor's buffers need."""
    if result.type.shape == state.type.shape:
        return result
    if None not in state.type.shape:
        return pt.specify_shape(result, state.type.shape)
    return result


def fixed_sizes(item: TensorVariable, varying: Sequence[Variable]) -> list[Variable] | None:
    """Return the sizes of an array, None if they may differ from step to step.

    Parameters
    ----------
    item
        The array.
    varying
        Variables whose values differ, and whose shapes do not.
    """
    sizes = ShapeFeature().shape_tuple(item)
    is_fixed = True

    def operands(variable: Variable) -> Sequence[Variable] | None:
        nonlocal is_fixed
        node = variable.owner
        if node is None:
            is_fixed = is_fixed and variable not in varying
            return None
        if isinstance(node.op, Shape | Shape_i):
            is_fixed = is_fixed and node.inputs[0].owner is None
            return None
        return node.inputs

    for _ in walk(sizes, operands):
        pass
    return list(sizes) if is_fixed else None


def differ(item: TensorVariable, index: Variable) -> bool:
    """Return whether the sizes of an array differ from step to step for sure.

    They are computed for the first two steps, with many elements along all axes of other arrays.

    Examples
    --------
    >>> x, i = pt.vector("x"), pt.lscalar("i")
    >>> differ(x[i:], i), differ(x[i : i + 3], i)
    (True, False)
    """
    sizes = ShapeFeature().shape_tuple(item)
    between = set(ancestors(sizes))
    of_arrays = {
        v: pt.constant(_MANY, dtype="int64")
        for v in between
        if v.owner is not None and isinstance(v.owner.op, Shape_i) and v.owner.inputs[0] is not item
    }
    if index not in between:
        return False
    own = graph_replace(sizes, of_arrays, strict=False) if of_arrays else sizes
    if any(v.owner is None and v is not index and known(v) is None for v in ancestors(own)):
        return False
    steps = [pt.constant(step, dtype="int64") for step in (0, 1)]
    made = [graph_replace(list(own), {index: step}, strict=False) for step in steps]
    mode = Mode(linker="py", optimizer=None)
    first, second = (function([], values, mode=mode)() for values in made)
    return any(a != b for a, b in zip(first, second, strict=True))


def before_loop(sizes: Sequence[Variable], values: Mapping[Variable, Variable]) -> list[Size]:
    """Return sizes that are computed in a step as those before the loop, from values of states."""
    used = set(ancestors(sizes))
    pairs = {a: b for a, b in values.items() if a in used}
    found = graph_replace(list(sizes), pairs, strict=False) if pairs else sizes
    return [_as_size(v) for v in found]


def most_added(number: Size, before: Variable, varying: Sequence[Variable]) -> Size | None:
    """Return how much larger than a number another one is at most, None if it is not known.

    Parameters
    ----------
    number, before
        The numbers.
    varying
        Variables whose values differ from step to step.

    Examples
    --------
    >>> n, k = pt.lscalars("n", "k")
    >>> most_added(n + 1, n, [n]), most_added(pt.switch(k > 3, n + 2, n), n, [n])
    (1, 2)
    >>> most_added(n + k, n, [n]), most_added(n + k, n, [n, k])
    (k, None)
    """
    if number is before:
        return 0
    if isinstance(number, int):
        return number  # the number before is not negative
    if (value := known(number)) is not None:
        return int(value)
    node = number.owner
    if node is None:
        return None
    if isinstance(node.op, IfElse):
        place, count = node.outputs.index(number), len(node.outputs)
        branches = [node.inputs[1 + place], node.inputs[1 + count + place]]
        return _largest([most_added(v, before, varying) for v in branches])
    if elementwise(number, ps.Switch):
        return _largest([most_added(v, before, varying) for v in node.inputs[1:]])
    if isinstance(node.op, CheckAndRaise) or elementwise(number, ps.Cast):
        return most_added(node.inputs[0], before, varying)
    if elementwise(number, ps.Sub):
        whole, less = node.inputs
        added, taken = most_added(whole, before, varying), known(less)
        return None if added is None or taken is None else added - int(taken)
    if elementwise(number, ps.Add):
        of_number = [v for v in node.inputs if before in ancestors([v])]
        rest = [v for v in node.inputs if before not in ancestors([v])]
        if len(of_number) != 1 or set(varying) & set(ancestors(rest)):
            return None
        added = most_added(of_number[0], before, varying)
        if added is None:
            return None
        more = [_as_size(v) for v in rest]
        return (
            more[0]
            if isinstance(added, int) and added == 0 and len(more) == 1
            else sum(more, added)
        )
    return None


def _as_size(variable: Variable) -> Size:
    return variable if (value := known(variable)) is None else int(value)


def _largest(numbers: Sequence[Size | None]) -> Size | None:
    found = [n for n in numbers if n is not None]
    if len(found) < len(numbers):
        return None
    if all(isinstance(n, int) for n in found):
        return max(found)
    return reduce(pt.maximum, found)
