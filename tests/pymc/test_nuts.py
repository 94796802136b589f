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

from pytensor_onnx import compile_onnx
from pytensor_onnx.pymc.nuts import (
    Correction,
    Doubling,
    Dynamics,
    End,
    Leaves,
    Randomness,
    Scaling,
    State,
    _growth,
    draw,
    grow,
    leaf_tables,
)

MAX_DEPTH = 6
SCALE = np.array([0.5, 2.0, 1.0])
ROOT = np.diag(SCALE)


def density(x: TensorVariable) -> list[TensorVariable]:
    """A skewed and correlated density, whose energy errors are large at times.

    Of a point, or of a row for each chain.
    """
    a, b, c = (x[..., i] for i in range(3))
    value = 2 * a - pt.exp(a) - 0.5 * (b - a) ** 2 / 9 - c**4 / 4 - c * b / 5
    return [value, grad(value.sum(), x)]


def numpy_density(x: np.ndarray) -> tuple[float, np.ndarray]:
    a, b, c = x
    value = 2 * a - np.exp(a) - 0.5 * (b - a) ** 2 / 9 - c**4 / 4 - c * b / 5
    return value, np.array([2 - np.exp(a) + (b - a) / 9, -(b - a) / 9 - c / 5, -(c**3) - b / 5])


class Leaf(NamedTuple):
    x: np.ndarray
    momentum: np.ndarray
    energy: float


def step(leaf: Leaf, epsilon: float, root: np.ndarray = ROOT) -> Leaf:
    """Take a leapfrog step in the coordinates of the model; ``root root'`` is the inverse mass."""
    half = leaf.momentum + epsilon / 2 * numpy_density(leaf.x)[1]
    x = leaf.x + epsilon * (root @ (root.T @ half))
    value, gradient = numpy_density(x)
    momentum = half + epsilon / 2 * gradient
    return Leaf(x, momentum, ((root.T @ momentum) ** 2).sum() / 2 - value)


def turns(first: Leaf, last: Leaf) -> bool:
    distance = last.x - first.x
    return bool(min(distance @ first.momentum, distance @ last.momentum) <= 0)


def trajectory(
    x: np.ndarray,
    epsilon: float,
    momentum: np.ndarray,
    forwards: np.ndarray,
    root: np.ndarray = ROOT,
    *,
    with_halves: bool = True,
) -> tuple[int, int, bool]:
    """Return the depth, the number of steps and whether it diverges."""
    value, _ = numpy_density(x)
    start = Leaf(x, np.linalg.solve(root.T, momentum), (momentum**2).sum() / 2 - value)
    leaves, n_steps = [start], 0
    for depth in range(MAX_DEPTH):
        sign = 1 if forwards[depth] else -1
        new: list[Leaf] = []
        for i in range(2**depth):
            edge = (leaves[-1] if sign > 0 else leaves[0]) if not new else new[-1]
            new.append(step(edge, sign * epsilon, root))
            n_steps += 1
            if not new[-1].energy - start.energy < 1000:
                return depth + 1, n_steps, True
            for level in range(1, depth + 1):
                if (i + 1) % 2**level == 0:
                    ends = new[i + 1 - 2**level], new[i]
                    if turns(*ends[::sign]):
                        return depth + 1, n_steps, False
                # The first points of the halves of a sub-tree, or the last ones.
                half = 2 ** (level - 1)
                if with_halves and level > 1 and (i % 2**level in (half, 2**level - 1)):
                    ends = new[i - half], new[i]
                    if turns(*ends[::sign]):
                        return depth + 1, n_steps, False
        if with_halves:
            near, far = (leaves[-1], leaves[0])[::sign]
            if turns(*(near, new[-1])[::sign]) or turns(*(far, new[0])[::sign]):
                return depth + 1, n_steps, False
        leaves = leaves + new if sign > 0 else new[::-1] + leaves
        if turns(leaves[0], leaves[-1]):
            return depth + 1, n_steps, False
    return MAX_DEPTH, n_steps, False


def drawn(n_chains: int | None) -> Callable:
    """Return a function that draws, for one chain alone or for some in lockstep."""
    chains = () if n_chains is None else (n_chains,)
    x, momentum = (pt.tensor(name, shape=(*chains, 3), dtype="float64") for name in "xm")
    epsilon = pt.tensor("epsilon", shape=chains, dtype="float64")
    uniforms = pt.tensor("uniforms", shape=(MAX_DEPTH, 3, *chains), dtype="float64")
    state, statistics = draw(
        density,
        [],
        State(x, *density(x)),
        Randomness(momentum, uniforms),
        scaling=Scaling(pt.constant(np.broadcast_to(SCALE, (*chains, 3)))),
        step_size=epsilon,
        max_depth=MAX_DEPTH,
    )
    inputs = [x, epsilon, momentum, uniforms]
    return pytensor.function(inputs, [*state, *statistics], mode="ONNX")


@pytest.mark.slow
def test_trajectories_end_where_the_tree_says():
    """Of all chains in lockstep, and of some alone, which draw the same."""
    rng = np.random.default_rng(3)
    epsilon = np.repeat([0.05, 0.2, 0.5, 0.9, 2.5], 20)
    x, momentum = rng.normal(size=(2, len(epsilon), 3))
    uniforms = rng.uniform(size=(len(epsilon), MAX_DEPTH, 3))
    results = drawn(len(epsilon))(x, epsilon, momentum, np.moveaxis(uniforms, 0, -1))
    point, values, gradients, _, *statistics = results
    depths, n_steps, acceptance, diverging = statistics
    for i, expected in enumerate(zip(depths, n_steps, diverging, strict=True)):
        forwards = uniforms[i, :, 0] < 0.5
        assert trajectory(x[i], epsilon[i], momentum[i], forwards) == expected
        value, gradient = numpy_density(point[i])
        np.testing.assert_allclose(values[i], value, rtol=1e-12)
        np.testing.assert_allclose(gradients[i], gradient, rtol=1e-10, atol=1e-12)
    assert ((acceptance >= 0) & (acceptance <= 1)).all()
    assert set(depths) == set(range(1, MAX_DEPTH + 1))
    assert len({*zip(depths, n_steps, strict=True)}) >= 10
    assert diverging.sum() >= 5
    alone = drawn(None)
    for i in range(0, len(epsilon), 3):
        for one, row in zip(
            alone(x[i], epsilon[i], momentum[i], uniforms[i]), results, strict=True
        ):
            np.testing.assert_allclose(one, row[i], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_trajectories_with_a_correction_are_those_of_a_dense_mass_matrix():
    rng = np.random.default_rng(4)
    vectors = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    stretches = np.array([1.5, -0.6])
    root = np.diag(SCALE) @ (np.eye(3) + (vectors * stretches) @ vectors.T)
    x, momentum = (pt.vector(name, shape=(3,)) for name in "xm")
    epsilon, uniforms = pt.scalar("e"), pt.matrix("u", shape=(MAX_DEPTH, 3))
    given = pt.matrix("v", shape=(3, 2)), pt.vector("s", shape=(2,))
    _, statistics = draw(
        density,
        [],
        State(x, *density(x)),
        Randomness(momentum, uniforms),
        scaling=Scaling(pt.constant(SCALE), Correction(*given)),
        step_size=epsilon,
        max_depth=MAX_DEPTH,
    )
    call = compile_onnx([x, momentum, epsilon, uniforms, *given], list(statistics))
    turned = 0
    for size in np.repeat([0.05, 0.2, 0.5, 0.9, 2.5], 16):
        numbers = rng.normal(size=(2, 3)), rng.uniform(size=(MAX_DEPTH, 3))
        (start, momenta), uniform = numbers
        found = call(start, momenta, size, uniform, vectors, stretches)
        forwards = uniform[:, 0] < 0.5
        expected = trajectory(start, size, momenta, forwards, root)
        assert (found[1], found[2], found[4]) == expected
        turned += trajectory(start, size, momenta, forwards, root, with_halves=False) != expected
    assert turned >= 5


def test_points_are_drawn_by_their_weights():
    """One number selects the point: each has an interval of the length of its probability."""
    start, n_steps, n = np.array([0.3, -0.2, 0.4]), 8, 1001
    momentum, energy = np.array([1.0, 0.5, -1.2]), 2.0
    epsilon = 0.4
    _, gradient = numpy_density(start)
    kick = 0.5 * epsilon * SCALE * gradient
    names = [*Dynamics._fields[:-1], *End._fields]
    dynamics = [start, SCALE, [epsilon], 0.5 * epsilon * SCALE, energy, -1000 - energy]
    arrays = [*dynamics, np.zeros(3), momentum, kick]
    # Inputs, as constants would be folded.
    of_chains = [np.repeat([array], n, axis=0) for array in arrays]
    given = [
        pt.tensor(name, dtype="float64", shape=x.shape)
        for name, x in zip(names, of_chains, strict=True)
    ]
    n_dynamics = len(dynamics)
    u = pt.tensor("u", shape=(n,), dtype="float64")
    growth, _ = grow(
        density,
        [],
        Dynamics(*given[:n_dynamics]),
        End(*given[n_dynamics:]),
        pt.ones_like(u),
        Doubling(pt.constant(3), pt.constant(n_steps), pt.stack([u, u, u])),
        max_depth=MAX_DEPTH,
    )
    outputs = [growth.sample.energy, growth.weight, growth.steps]
    select = pytensor.function([u, *given], outputs, mode="ONNX")
    found, weight, steps = select((np.arange(n) + 0.5) / n, *of_chains)
    leaf, energies = Leaf(start, momentum / SCALE, 0.0), []
    for _ in range(n_steps):
        leaf = step(leaf, epsilon)
        energies.append(leaf.energy)
    weights = np.exp(energy - np.array(energies))
    assert (steps == n_steps).all()
    np.testing.assert_allclose(weight, weights.sum(), rtol=1e-12)
    nearest = np.abs(found[:, None] - energies).argmin(axis=1)
    np.testing.assert_allclose(found, np.array(energies)[nearest], rtol=1e-12)
    frequencies = np.bincount(nearest, minlength=n_steps) / n
    np.testing.assert_allclose(frequencies, weights / weights.sum(), atol=2 * n_steps / n)


def test_acceptance_below_rounding_counts_as_none():
    rows = pt.zeros((3, 1, 2))
    surplus = pt.as_tensor([[-1.0], [-40.0], [-300.0]])
    leaves = Leaves(rows, rows, surplus, surplus, pt.ones_like(surplus))
    end = End(rows[0], rows[0], rows[0])
    dynamics = Dynamics(*[rows[0]] * 4, energy=pt.zeros(1), least=pt.full(1, -1000.0))
    growth = _growth(leaves, end, pt.ones(1), dynamics, pt.full((1,), 0.5))
    weight, acceptance = pytensor.function([], [growth.weight, growth.acceptance])()
    assert acceptance == np.exp(-1)
    assert weight >= acceptance


@pytest.mark.parametrize("max_depth", [1, 2, 3, 5, 8])
def test_sub_trees_and_their_halves_are_compared_alike_in_both_directions_of_time(max_depth):
    n = 2 ** (max_depth - 1)
    held: dict[int, int] = {}
    found = set()
    for leaf, (kept, compared) in enumerate(zip(*leaf_tables(max_depth), strict=True)):
        held.update(dict.fromkeys(np.flatnonzero(kept), leaf))
        found |= {(held[row], leaf) for row in np.flatnonzero(compared)}
    assert found == {(n - 1 - last, n - 1 - first) for first, last in found}
    expected = set()
    for level in range(1, max_depth):
        size, half = 2**level, 2 ** (level - 1)
        for first in range(0, n, size):
            last = first + size - 1
            expected |= {(first, last), (first, first + half), (first + half - 1, last)}
    assert found == expected


@pytest.mark.parametrize("max_depth", [2, 3, 5, 8])
def test_a_tree_of_each_depth_uses_the_first_rows(max_depth):
    is_kept, is_compared = leaf_tables(max_depth)
    for depth in range(1, max_depth):
        assert not is_compared[: 2**depth, 2 * depth - 1 :].any()
        assert not is_kept[: 2**depth - 1, 2 * depth - 1 :].any()
