"""Generators that are split in a graph share no numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.ops.random.draw_reference import bits, threefry, uniform
from pytensor_onnx.ops.random.draws import spawn
from pytensor_onnx.random import state_of
from tests.conftest import PY


def test_new_generators_have_blocks_of_streams_of_one_as_keys():
    rng = pt.random.rng("rng")
    following, children = spawn(rng, 3)
    draws = [generator.uniform(size=4)[1] for generator in (following, *children)]
    program = export_onnx([rng], draws, verify=False)
    state = state_of(1)
    counters = state[2] + np.arange(3, dtype="uint64")
    keys = zip(*threefry(*state[:2], counters, np.ones(1, "uint64")), strict=True)
    states = [bits(state, 3)[0], *([*key, 0] for key in keys)]
    for found, own in zip(program(state), states, strict=True):
        np.testing.assert_array_equal(found, uniform(np.array(own, "uint64"), 4, "float64")[1])


def test_children_are_drawn_from_in_loops_and_by_numpy():
    generator = pt.random.shared_rng(seed=1)
    following, [child] = spawn(generator, 1)
    walk, _ = pytensor.scan(
        lambda x, rng: [x + (drawn := rng.normal())[1], drawn[0]],
        outputs_info=[pt.zeros(()), child],
        n_steps=5,
        return_updates=False,
    )
    for mode in ("ONNX", PY):
        f = pytensor.function([], walk, updates={generator: following}, mode=mode)
        first, second = f(), f()
        assert len({*first, *second}) == 10


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="takes a random generator"):
        spawn(pt.vector("x"), 2)
    with pytest.raises(ValueError, match="0 or more, not -1"):
        spawn(pt.random.rng("rng"), -1)
