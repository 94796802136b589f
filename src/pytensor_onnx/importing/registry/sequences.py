"""Sequences of ONNX: lists of variables, and arrays that have their elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, override

import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import Size, known, size
from pytensor_onnx.importing.registry.narrow_types import narrow_type

type Position = int | TensorVariable

_OF_ONE_SIZE = (
    "its elements have other {}, and PyTensor joins the elements of a sequence, whose number is "
    "not known at import, to one array"
)


class VariableSequence:
    """A sequence of ONNX, whose elements are computed from variables."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return the variables that have the elements."""
        raise NotImplementedError

    def with_variables(self, variables: Sequence[Variable]) -> Self:
        """Return a sequence of this form with other variables."""
        raise NotImplementedError

    @property
    def count(self) -> Size:
        """Return the number of elements."""
        raise NotImplementedError

    def element(self, position: Position) -> Variable:
        """Return an element; negative positions count from the end."""
        raise NotImplementedError

    def stacked(self) -> StackedList:
        """Return the elements as one array.

        Raises
        ------
        UnsupportedCase
            If they have other ranks, dtypes or known sizes, or there are none.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class VariableList(VariableSequence):
    """A sequence whose elements are variables, and their number is known at import.

    Attributes
    ----------
    items
        The elements.
    """

    items: tuple[Variable, ...]

    @property
    @override
    def variables(self) -> tuple[Variable, ...]:
        return self.items

    @override
    def with_variables(self, variables: Sequence[Variable]) -> VariableList:
        return VariableList(tuple(variables))

    @property
    @override
    def count(self) -> int:
        return len(self.items)

    @override
    def element(self, position: Position) -> Variable:
        number = _as_int(position)
        if number is None:
            return self.stacked().element(position)
        if not -self.count <= number < self.count:
            raise UnsupportedCase(
                f"its position is {number}, and the sequence has {self.count} elements"
            )
        return self.items[number]

    @override
    def stacked(self) -> StackedList:
        if not self.items:
            raise UnsupportedCase("its sequence has no elements, so that their shape is not known")
        return StackedList(pt.stack(_alike(self.items)))


@dataclass(frozen=True, eq=False)
class StackedList(VariableSequence):
    """A sequence whose elements have one shape, and are the rows of an array.

    Attributes
    ----------
    array
        Array with one element in each row.
    length
        Number of the rows that are elements, None for all.
    last
        Elements behind those of the array.
    erased
        The sequence and the position from which this one comes by removing one element.
    """

    array: TensorVariable
    length: TensorVariable | None = None
    last: tuple[Variable, ...] = ()
    erased: tuple[StackedList, Position] | None = field(default=None, repr=False)

    @property
    @override
    def variables(self) -> tuple[Variable, ...]:
        return (self.array, *[v for v in [self.length] if v is not None], *self.last)

    @override
    def with_variables(self, variables: Sequence[Variable]) -> StackedList:
        array, *rest = variables
        length = None if self.length is None else rest.pop(0)
        return StackedList(array, length, tuple(rest))

    @property
    @override
    def count(self) -> Size:
        number = size(self.array, 0) if self.length is None else self.length
        return number + len(self.last) if self.last else number

    @property
    def rows(self) -> TensorVariable:
        """Return the array of all elements."""
        rows = self.array if self.length is None else self.array[: self.length]
        if not self.last:
            return rows
        return pt.concatenate([rows, pt.stack(_alike([self.array[0], *self.last])[1:])])

    @override
    def element(self, position: Position) -> Variable:
        number = _as_int(position)
        if number is not None and -len(self.last) <= number < 0:
            return self.last[number]
        if number is not None and number < 0:
            position, rows = number + len(self.last), self.with_variables(self._before_last()).rows
            return rows[position]
        return self.rows[position]

    def _before_last(self) -> tuple[Variable, ...]:
        return self.variables[: len(self.variables) - len(self.last)]

    @override
    def stacked(self) -> StackedList:
        return self

    def appended(self, item: Variable) -> StackedList:
        """Return the sequence with one more element at the end."""
        _alike([self.array[0], item])
        return StackedList(self.array, self.length, (*self.last, item))

    def inserted(self, item: Variable, position: Position) -> StackedList:
        """Return the sequence with an element before a position."""
        if _is_same(position, self.count):
            return self.appended(item)
        if self.erased is not None and _is_same(position, self.erased[1]):
            before, _ = self.erased
            item = like_elements(item, before.array)
            return StackedList(pt.set_subtensor(before.array[position], item), before.length)
        _alike([self.array[0], item])
        rows, place = self.rows, self._place(position, 1)
        rows = pt.concatenate([rows[:place], item[None], rows[place:]])
        return StackedList(rows, self._length(1))

    def without(self, position: Position) -> StackedList:
        """Return the sequence without the element at a position."""
        number = _as_int(position)
        if number == -1 and self.last:
            return StackedList(self.array, self.length, self.last[:-1])
        base = StackedList(self.rows, self._length(0)) if self.last else self
        if number == -1:
            count = pt.as_tensor(base.count)
            return StackedList(base.array, _IN_RANGE(count - 1, count > 0), erased=(base, position))
        place = base._place(position, 0)
        rows = pt.concatenate([base.rows[:place], base.rows[place + 1 :]])
        return StackedList(rows, base._length(-1), erased=(base, position))

    def _length(self, more: int) -> TensorVariable | None:
        """Return the number of elements and some more, where it is a number of its own."""
        return None if self.length is None else self.length + len(self.last) + more

    def _place(self, position: Position, more: int) -> TensorVariable:
        """Return a position counted from the start, checked at run time."""
        number, count = pt.as_tensor(position).astype("int64").reshape(()), pt.as_tensor(self.count)
        place = pt.switch(number < 0, number + count, number)
        return _IN_RANGE(place, place >= 0, place < count + more)


@dataclass(frozen=True, eq=False)
class DividedList(VariableSequence):
    """A sequence whose elements are the parts of an array along an axis.

    Attributes
    ----------
    array, ends, axis
        The array, the ends of the parts, and the axis.
    """

    array: TensorVariable
    ends: TensorVariable
    axis: int

    @property
    @override
    def variables(self) -> tuple[Variable, ...]:
        return self.array, self.ends

    @override
    def with_variables(self, variables: Sequence[Variable]) -> DividedList:
        array, ends = variables
        return DividedList(array, ends, self.axis)

    @property
    @override
    def count(self) -> Size:
        return size(self.ends, 0)

    def is_along(self, axis: int) -> bool:
        """Return whether the array is divided along an axis."""
        return axis % self.array.type.ndim == self.axis

    @override
    def element(self, position: Position) -> Variable:
        starts = pt.concatenate([[0], self.ends])
        place = slice(starts[:-1][position], self.ends[position])
        return self.array[(*[slice(None)] * self.axis, place)]

    @override
    def stacked(self) -> StackedList:
        lengths = self.ends - pt.concatenate([[0], self.ends[:-1]])
        array, count = self.array, self.count
        ends = _OF_ONE_LENGTH(self.ends, pt.all(pt.eq(lengths[1:], lengths[:-1])))
        shape = [size(array, i) for i in range(array.type.ndim)]
        shape[self.axis : self.axis + 1] = [ends.shape[0], -1]
        parts = array.reshape(shape, ndim=array.type.ndim + 1)
        rows = pt.moveaxis(parts, self.axis, 0)
        if isinstance(count, int):
            rows = pt.specify_shape(rows, (count, *rows.type.shape[1:]))
        return StackedList(rows)


_IN_RANGE = CheckAndRaise(IndexError, "the position in a sequence is out of range")
_OF_ONE_LENGTH = CheckAndRaise(ValueError, "the elements of a sequence must have one size")


def flat(values: Iterable[Any]) -> list[Variable]:
    """Return the variables of values: those of sequences in their place, none for absent values."""
    lists = [
        v.variables if isinstance(v, VariableSequence) else (v,) for v in values if v is not None
    ]
    return [v for variables in lists for v in variables]


def in_form(values: Iterable[Any], variables: Iterable[Variable]) -> list[Any]:
    """Return variables as values of the form of others, from which `flat` takes them.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, y = pt.vectors("x", "y")
    >>> form = [x, None, VariableList((x, y))]
    >>> in_form(form, flat(form)) == form
    True
    """
    given = iter(variables)
    return [
        v.with_variables([next(given) for _ in v.variables])
        if isinstance(v, VariableSequence)
        else None
        if v is None
        else next(given)
        for v in values
    ]


def _as_int(position: Position) -> int | None:
    if isinstance(position, int):
        return position
    value = known(position)
    return None if value is None else int(value.item())


def _is_same(a: Size, b: Size) -> bool:
    """Return whether two numbers are computed alike."""
    if isinstance(a, int) or isinstance(b, int):
        return _as_int(a) is not None and _as_int(a) == _as_int(b)
    return equal_computations([a], [b])


def check_rows(arrays: Sequence[TensorVariable]) -> None:
    """Refuse arrays whose rows cannot be rows of one array."""
    _alike([array[0] for array in arrays])


def _alike(items: Sequence[Variable]) -> list[Variable]:
    """Return items, which must be able to be rows of one array."""
    if any(narrow_type(v) for v in items):
        raise UnsupportedCase(
            "its elements have a type of few bits, and PyTensor has no arrays of such types"
        )
    kinds = {"ranks": [v.type.ndim for v in items], "dtypes": [v.type.dtype for v in items]}
    for kind, found in kinds.items():
        if len(set(found)) > 1:
            raise UnsupportedCase(_OF_ONE_SIZE.format(kind))
    for sizes in zip(*(v.type.shape for v in items), strict=True):
        if len({n for n in sizes if n is not None}) > 1:
            raise UnsupportedCase(_OF_ONE_SIZE.format("sizes"))
    return list(items)


def like_elements(item: TensorVariable, array: TensorVariable) -> TensorVariable:
    """Return an element, which is checked to have the sizes of the rows of an array."""
    _alike([array[0], item])
    sizes = [size(array, axis) for axis in range(1, array.type.ndim)]
    if all(isinstance(n, int) for n in sizes):
        return item if item.type.shape == tuple(sizes) else pt.specify_shape(item, sizes)
    return pt.specify_shape(item, sizes)
