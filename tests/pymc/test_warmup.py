"""The warm-up has the windows and the estimates of nutpie, written out in NumPy."""

import numpy as np
import pytensor.tensor as pt
import pytest

pytest.importorskip("pymc")

from pytensor_onnx import compile_onnx
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc.warmup import (
    Schedule,
    adapt_scale,
    adapt_step_size,
    first_scale,
    first_step_size,
    schedule,
)

LENGTHS = [0, 1, 2, 5, 20, 33, 34, 67, 100, 150, 199, 250, 300, 400, 500, 999, 1000, 3000]


def ends_of_windows(n: int) -> list[int]:
    """Return the steps before which windows end, counted one by one."""
    early, last = n * 30 // 100, n - n * 15 // 100
    ends, begin, size = [], 0, 80
    for end in range(1, last):
        if end <= early:
            if end - begin == 10:
                ends.append(end)
                begin = end
        elif end - begin == size and end + round(size * 1.5) <= last:
            ends.append(end)
            begin, size = end, round(size * 1.5)
    return ends


def scales(draws, gradients, first, n):
    """Return the scales after each draw; the start of a chain is the first draw."""
    ends, scale, found = ends_of_windows(n), first, []
    for step in range(n):
        begins = [0, 0, *(end for end in ends if end <= step + 1)]
        # The start belongs to the first window.
        begin = begins[-2] + 1 if begins[-2] else 0
        rows = slice(begin, step + 2)
        if 0 < step < n - n * 15 // 100:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = draws[rows].var(axis=0) / gradients[rows].var(axis=0)
            scale = np.where(np.isfinite(ratio) & (ratio > 0), ratio**0.25, scale)
        found.append(scale)
    return np.array(found)


@pytest.fixture(scope="module")
def plan_of():
    numbers = n_warmup, n_steps, begin = pt.lscalars("n_warmup", "n_steps", "begin")
    call = compile_onnx(list(numbers), list(schedule(n_warmup, n_steps, begin)[:-1]))
    return lambda *given: Schedule(*call(*given))


def test_the_windows_are_those_of_nutpie(plan_of):
    for n in LENGTHS:
        plan = plan_of(n, n + 7, 0)
        assert (np.flatnonzero(plan.ends_window) + 1).tolist() == ends_of_windows(n), n
        assert plan.is_warmup.sum() == n
        assert np.flatnonzero(plan.ends_warmup).tolist() == ([n - 1] if n else [])


def test_a_schedule_of_later_steps_is_a_part_of_the_schedule(plan_of):
    whole, part = plan_of(400, 450, 0), plan_of(400, 250, 150)
    for a, b in zip(whole[:-1], part[:-1], strict=True):
        np.testing.assert_array_equal(a[150:400], b)


@pytest.mark.parametrize("n_chains", [None, 3])
def test_the_scales_are_ratios_of_the_deviations_of_draws_and_gradients(n_chains):
    draws, gradients = (pt.tensor(shape=(None,) * (2 if n_chains is None else 3)) for _ in "xg")
    n_warmup = pt.lscalar("n_warmup")

    def step(x, gradient, plan, now):
        after = adapt_scale(now, x, gradient, plan)
        return [after, after.scale]

    first = first_scale(draws[0], gradients[0])
    plan = schedule(n_warmup, n_warmup)
    _, trace = iterate(step, [first], n_steps=n_warmup, sequences=[draws[1:], gradients[1:], plan])
    call = compile_onnx([draws, gradients, n_warmup], [first.scale, trace])
    rng = np.random.default_rng(1)
    for n in [1, 5, 20, 100, 250]:
        shape = (n + 1, 4) if n_chains is None else (n + 1, n_chains, 4)
        x = rng.normal(3.0, [0.1, 1.0, 10.0, 1.0], size=shape)
        g = rng.normal(0.0, [10.0, 1.0, 1.0, 1e3], size=shape)
        x[..., 1] = 5.0  # a coordinate that does not move keeps its scale
        initial, found = call(x, g, n)
        np.testing.assert_allclose(found, scales(x, g, initial, n), rtol=1e-9)


def test_the_first_scale_is_narrow_where_the_density_is_steep_and_at_most_one():
    gradient = pt.constant(np.array([-1e4, 4.0, 0.5, 0.0, np.nan]))
    found = first_scale(gradient, gradient).scale.eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(found, [0.01, 0.5, 1.0, 1.0, 1.0], rtol=1e-15)


def test_the_step_size_is_that_of_the_formula(plan_of):
    """Hoffman and Gelman (2014), algorithm 5, with its sums written out."""
    target, mu = 0.8, np.log(10 * 0.3)
    state = first_step_size(pt.constant(np.log(0.3)))
    errors, mean, plan = [], 0.0, plan_of(10, 4, 0)
    for t, acceptance in enumerate([0.1, 0.9, 1.0, 0.7], start=1):
        row = Schedule(*(pt.constant(column[t - 1]) for column in plan[:-1]))
        state = adapt_step_size(state, pt.constant(np.float64(acceptance)), row, target)
        errors.append(target - acceptance)
        error = 0.0
        for k, e in enumerate(errors, start=1):
            error = (1 - 1 / (k + 10)) * error + e / (k + 10)
        log_step = mu - np.sqrt(t) / 0.05 * error
        mean = t**-0.75 * log_step + (1 - t**-0.75) * mean
    found = [v.eval(mode="FAST_COMPILE") for v in (state.log_step, state.mean_log_step)]
    np.testing.assert_allclose(found, [log_step, mean], rtol=1e-12)
