"""Trajectories are those of a recursive description of NUTS, their points drawn by weight."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

pytest.importorskip("pymc")

from pytensor.gradient import grad
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.pymc.nuts import State, draw
from pytensor_onnx.pymc.trees import Dynamics, End, grow, leaf_tables

MAX_DEPTH = 6
SCALE = np.array([0.5, 2.0, 1.0])


def density(x: TensorVariable) -> list[TensorVariable]:
    """A skewed and correlated density, whose energy errors are large at times."""
    value = 2 * x[0] - pt.exp(x[0]) - 0.5 * (x[1] - x[0]) ** 2 / 9 - x[2] ** 4 / 4 - x[2] * x[1] / 5
    return [value, grad(value, x)]


def numpy_density(x: np.ndarray) -> tuple[float, np.ndarray]:
    a, b, c = x
    value = 2 * a - np.exp(a) - 0.5 * (b - a) ** 2 / 9 - c**4 / 4 - c * b / 5
    return value, np.array([2 - np.exp(a) + (b - a) / 9, -(b - a) / 9 - c / 5, -(c**3) - b / 5])


class Leaf(NamedTuple):
    x: np.ndarray
    momentum: np.ndarray
    energy: float


def step(leaf: Leaf, epsilon: float) -> Leaf:
    """Take a leapfrog step in the coordinates of the model, whose mass matrix is diagonal."""
    half = leaf.momentum + epsilon / 2 * numpy_density(leaf.x)[1]
    x = leaf.x + epsilon * SCALE**2 * half
    value, gradient = numpy_density(x)
    momentum = half + epsilon / 2 * gradient
    return Leaf(x, momentum, ((SCALE * momentum) ** 2).sum() / 2 - value)


def turns(first: Leaf, last: Leaf) -> bool:
    distance = last.x - first.x
    return bool(min(distance @ first.momentum, distance @ last.momentum) <= 0)


def trajectory(
    x: np.ndarray, epsilon: float, momentum: np.ndarray, forwards: np.ndarray
) -> tuple[int, int, bool]:
    """Return the depth, the number of steps and whether it diverges."""
    value, _ = numpy_density(x)
    start = Leaf(x, momentum / SCALE, (momentum**2).sum() / 2 - value)
    leaves, n_steps = [start], 0
    for depth in range(MAX_DEPTH):
        sign = 1 if forwards[depth] else -1
        new: list[Leaf] = []
        for i in range(2**depth):
            edge = (leaves[-1] if sign > 0 else leaves[0]) if not new else new[-1]
            new.append(step(edge, sign * epsilon))
            n_steps += 1
            if not new[-1].energy - start.energy < 1000:
                return depth + 1, n_steps, True
            for level in range(1, depth + 1):
                if (i + 1) % 2**level == 0:
                    ends = new[i + 1 - 2**level], new[i]
                    if turns(*ends[::sign]):
                        return depth + 1, n_steps, False
        leaves = leaves + new if sign > 0 else new[::-1] + leaves
        if turns(leaves[0], leaves[-1]):
            return depth + 1, n_steps, False
    return MAX_DEPTH, n_steps, False


@pytest.fixture(scope="module")
def drawn() -> Callable:
    x, momentum = pt.dvector("x"), pt.dvector("momentum")
    epsilon, uniforms = pt.dscalar("epsilon"), pt.dmatrix("uniforms")
    x, momentum = (pt.specify_shape(v, (3,)) for v in (x, momentum))
    state, statistics = draw(
        density,
        [],
        State(x, *density(x)),
        scale=pt.constant(SCALE),
        step_size=epsilon,
        momentum=momentum,
        uniforms=pt.specify_shape(uniforms, (MAX_DEPTH, 3)),
        max_depth=MAX_DEPTH,
    )
    inputs = [x.owner.inputs[0], epsilon, momentum.owner.inputs[0], uniforms]
    return pytensor.function(inputs, [*state, *statistics], mode="ONNX")


def test_trajectories_end_where_the_tree_says(drawn):
    rng = np.random.default_rng(3)
    seen, diverged = set(), 0
    for epsilon in [0.05, 0.2, 0.5, 0.9, 2.5]:
        for _ in range(20):
            x, momentum = rng.normal(size=3), rng.normal(size=3)
            uniforms = rng.uniform(size=(MAX_DEPTH, 3))
            *state, _, depth, n_steps, acceptance, diverging = drawn(x, epsilon, momentum, uniforms)
            expected = trajectory(x, epsilon, momentum, uniforms[:, 0] < 0.5)
            assert (depth, n_steps, diverging) == expected
            assert 0 <= acceptance <= 1
            value, gradient = numpy_density(state[0])
            np.testing.assert_allclose(state[1], value, rtol=1e-12)
            np.testing.assert_allclose(state[2], gradient, rtol=1e-10, atol=1e-12)
            seen.add((int(depth), int(n_steps)))
            diverged += bool(diverging)
    assert {depth for depth, _ in seen} == set(range(1, MAX_DEPTH + 1))
    assert len(seen) >= 10
    assert diverged >= 5


def test_points_are_drawn_by_their_weights():
    """One number selects the point: each has an interval of the length of its probability."""
    start, n_steps, n = np.array([0.3, -0.2, 0.4]), 8, 1001
    momentum, energy = np.array([1.0, 0.5, -1.2]), 2.0
    epsilon = 0.4
    _, gradient = numpy_density(start)
    constants = [np.float64(epsilon), 0.5 * epsilon * SCALE, np.float64(energy)]
    dynamics = Dynamics(*map(pt.constant, [start, SCALE, *constants]))
    kick = 0.5 * epsilon * SCALE * gradient
    end = End(*map(pt.constant, [np.zeros(3), momentum, kick]))
    u = pt.dscalar("u")
    growth = grow(
        density, [], dynamics, end, n_steps=pt.constant(n_steps), uniform=u, max_depth=MAX_DEPTH
    )
    select = pytensor.function(
        [u], [growth.sample.energy, growth.weight, growth.steps], mode="ONNX"
    )
    results = [select(number) for number in (np.arange(n) + 0.5) / n]
    leaf, energies = Leaf(start, momentum / SCALE, 0.0), []
    for _ in range(n_steps):
        leaf = step(leaf, epsilon)
        energies.append(leaf.energy)
    weights = np.exp(energy - np.array(energies))
    assert all(steps == n_steps for *_, steps in results)
    np.testing.assert_allclose(results[0][1], weights.sum(), rtol=1e-12)
    found = np.array([result[0] for result in results])
    nearest = np.abs(found[:, None] - energies).argmin(axis=1)
    np.testing.assert_allclose(found, np.array(energies)[nearest], rtol=1e-12)
    frequencies = np.bincount(nearest, minlength=n_steps) / n
    np.testing.assert_allclose(frequencies, weights / weights.sum(), atol=2 * n_steps / n)


@pytest.mark.parametrize("max_depth", [1, 2, 5, 8])
def test_every_sub_tree_is_compared_with_its_first_leaf(max_depth):
    rows, bounds = leaf_tables(max_depth)
    held: dict[int, int] = {}
    for leaf, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        held[row] = leaf
        found = {held[row] for row in np.flatnonzero(bound == 0)}
        levels = range(1, max_depth)
        assert found == {leaf + 1 - 2**k for k in levels if (leaf + 1) % 2**k == 0}
