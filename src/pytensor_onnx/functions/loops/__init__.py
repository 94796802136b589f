"""Loops that return the last values of their states, and no trace of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.scan.op import Scan, ScanInfo
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable


def iterate(
    step: Callable[..., Sequence],
    start: Sequence[Any],
    constants: Sequence[Any] = (),
    *,
    n_steps: int | TensorVariable,
    sequences: Sequence[Any] = (),
) -> list[Any]:
    """Repeat a step and return the last values of its states.

    Sequences, states and constants are variables, or named tuples of these, nested at will: the
    step receives and returns them in the same form.

    `pytensor.scan` infers the shape of each state to allocate the trace, from all that the state is
    computed of, and the trace is then removed from the graph. This loop never has one: a definition
    takes a fraction of the time to convert.

    Parameters
    ----------
    step
        Receives an element of each sequence, the states and the constants. Returns the next states,
        or these and an `until`. Further results are stacked, with a row for each step.
    start
        First values of the states.
    constants
        Values that are the same in every step; the step uses no other ones from outside.
    n_steps
        Number of steps, at most where ``step`` returns an `until`. Without a step, the results are
        the first values.
    sequences
        Arrays with one row for each step.

    Examples
    --------
    >>> x = pt.vector("x")
    >>> [power] = iterate(lambda y, x: [y * x], [pt.ones_like(x)], [x], n_steps=3)
    >>> power.eval({x: [2.0, 3.0]}, mode="FAST_COMPILE")
    array([ 8., 27.])
    >>> last, all_ = iterate(lambda y, x: [y * x, y * x], [pt.ones(())], [x[0]], n_steps=3)
    >>> all_.eval({x: [2.0]}, mode="FAST_COMPILE")
    array([2., 4., 8.])
    """
    rows = [sequence[0].type() for sequence in leaves(sequences)]
    first, outside = leaves(start), leaves(constants)
    states, fixed = [x.type() for x in first], [x.type() for x in outside]
    variables = iter([*rows, *states, *fixed])
    returned = step(
        *(mapped(lambda _: next(variables), part) for part in (*sequences, *start, *constants))
    )
    results, conditions = _parted(returned)
    info = ScanInfo(
        n_seqs=len(rows),
        mit_mot_in_slices=(),
        mit_mot_out_slices=(),
        mit_sot_in_slices=(),
        sit_sot_in_slices=(),
        n_nit_sot=len(results) - len(states),
        n_untraced_sit_sot=len(states),
        n_non_seqs=len(fixed),
        as_while=bool(conditions),
    )
    after, stacked = results[: len(states)], results[len(states) :]
    loop = Scan([*rows, *states, *fixed], [*stacked, *after, *conditions], info, strict=True)
    count = pt.as_tensor(n_steps, dtype="int64")
    counts = [count] * len(stacked)
    found = loop(count, *leaves(sequences), *first, *counts, *outside, return_list=True)
    last = iter(found[len(stacked) :])
    return [*(mapped(lambda _: next(last), part) for part in start), *found[: len(stacked)]]


def leaves(parts: Iterable[Any]) -> list[TensorVariable]:
    """Return the variables in named tuples and beside them, in their order."""
    return [v for part in parts for v in (leaves(part) if isinstance(part, tuple) else [part])]


def mapped(function: Callable[[TensorVariable], TensorVariable], part: Any) -> Any:
    """Apply a function to a variable, or to each of a named tuple, which is kept."""
    if not isinstance(part, tuple):
        return function(part)
    return type(part)(*(mapped(function, inner) for inner in part))


def _parted(returned: Sequence) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Split the values that a step returns into states and condition."""
    if isinstance(returned[-1], until):
        states, condition = returned
        return leaves(states), [pt.as_tensor(condition.condition)]
    return leaves(returned), []
