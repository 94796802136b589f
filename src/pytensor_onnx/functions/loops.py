"""Loops that return the last values of their states, and no trace of them."""

from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from pytensor.scan.op import Scan, ScanInfo
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable


def iterate(
    step: Callable[..., Sequence],
    start: Sequence[TensorVariable],
    constants: Sequence[TensorVariable] = (),
    *,
    n_steps: int | TensorVariable,
    sequences: Sequence[TensorVariable] = (),
) -> list[TensorVariable]:
    """Repeat a step and return the last values of its states.

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
    rows = [row.type() for row in (sequence[0] for sequence in sequences)]
    states, fixed = [x.type() for x in start], [x.type() for x in constants]
    returned = step(*rows, *states, *fixed)
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
    found = loop(count, *sequences, *start, *counts, *constants, return_list=True)
    return [*found[len(stacked) :], *found[: len(stacked)]]


def _parted(returned: Sequence) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Return the states and the condition of what a step returns."""
    if isinstance(returned[-1], until):
        states, condition = returned
        return list(states), [pt.as_tensor(condition.condition)]
    return list(returned), []
