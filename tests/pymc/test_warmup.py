"""The warm-up follows Stan's schedule, and its estimates are those of NumPy."""

import numpy as np
import pytensor.tensor as pt
import pytest

pytest.importorskip("pymc")

from pytensor_onnx import compile_onnx
from pytensor_onnx.pymc.chains import (
    adapt_scale,
    adapt_step_size,
    first_scale,
    first_step_size,
    schedule,
    window_scale,
)


def windows_of_stan(n: int) -> tuple[int, list[int]]:
    """Return the first step of the windows and their last ones, counted one by one."""
    if n < 20:
        return 0, []
    first, last, size = 75, 50, 25
    if first + last + size > n:
        first, last = int(0.15 * n), int(0.1 * n)
        size = n - first - last
    ends, next_end = [], first + size - 1
    for counter in range(n):
        if counter != next_end:
            continue
        ends.append(counter)
        if counter == n - last - 1:
            continue
        size *= 2
        next_end = counter + size
        if next_end != n - last - 1 and next_end + 2 * size >= n - last:
            next_end = n - last - 1
    return first, ends


def test_the_windows_are_those_of_stan():
    n_warmup, n_steps = pt.lscalar("n_warmup"), pt.lscalar("n_steps")
    plan = compile_onnx([n_warmup, n_steps], list(schedule(n_warmup, n_steps)))
    for n in [0, 1, 19, 20, 99, 149, 150, 151, 174, 175, 200, 249, 250, 300, 350, 500, 999, 1000]:
        warm, inside, ends, restarts, settled = plan(n, n + 7)
        first, expected = windows_of_stan(n)
        assert np.flatnonzero(ends).tolist() == expected, n
        assert np.flatnonzero(restarts).tolist() == expected[:1]
        last = expected[-1] + 1 if expected else 0
        assert np.flatnonzero(inside).tolist() == list(range(first if expected else 0, last))
        assert warm.sum() == n
        assert np.flatnonzero(settled).tolist() == ([n - 1] if n else [])


def test_the_first_scale_is_narrow_where_the_density_is_steep_and_at_most_one():
    gradient = pt.constant(np.array([-1e4, 4.0, 0.5, 0.0, np.nan]))
    found = first_scale(gradient).scale.eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(found, [0.01, 0.5, 1.0, 1.0, 1.0], rtol=1e-15)


def test_the_scale_of_a_window_is_the_shrunk_standard_deviation():
    draws = np.random.default_rng(1).normal(3.0, [0.1, 2.0], size=(6, 2))
    state = first_scale(pt.zeros(2))
    for row in draws:
        state = adapt_scale(state, pt.constant(row))
    found = window_scale(state).scale.eval(mode="FAST_COMPILE")
    variance = draws.var(axis=0, ddof=1)
    np.testing.assert_allclose(found, np.sqrt((6 * variance + 5e-3) / 11), rtol=1e-12)


def test_the_step_size_is_that_of_the_formula():
    """Hoffman and Gelman (2014), algorithm 5, with its sums written out."""
    target, mu = 0.8, np.log(10 * 0.3)
    state = first_step_size(pt.constant(np.log(0.3)))
    errors, mean = [], 0.0
    for t, acceptance in enumerate([0.1, 0.9, 1.0, 0.7], start=1):
        state = adapt_step_size(state, pt.constant(np.float64(acceptance)), target)
        errors.append(target - acceptance)
        error = 0.0
        for k, e in enumerate(errors, start=1):
            error = (1 - 1 / (k + 10)) * error + e / (k + 10)
        log_step = mu - np.sqrt(t) / 0.05 * error
        mean = t**-0.75 * log_step + (1 - t**-0.75) * mean
    found = [v.eval(mode="FAST_COMPILE") for v in (state.log_step, state.mean_log_step)]
    np.testing.assert_allclose(found, [log_step, mean], rtol=1e-12)
