"""Samplers give a number the same value wherever it stands, and PyTensor computes them too."""

import subprocess
import sys

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx, export_onnx
from pytensor_onnx.functions.random.streams import counter_uniforms, keys, uniforms
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.ops.random.draws import (
    LogGamma,
    StandardBinomial,
    StandardGamma,
    StandardHypergeometric,
    StandardPoisson,
    StandardTruncatedNormal,
    StandardVonMises,
    state_variable,
)
from tests.conftest import compare_onnx_and_py, op_types

# Samplers compute in Python by their definitions.
import_modules("pytensor_onnx.functions.random")

STATE = np.array([5, 7, 2**64 - 3], "uint64")
CASES = {
    StandardGamma: ([0.01, 0.7, 1.0, 3.0, 1e5, 0.0, np.inf, np.nan],),
    LogGamma: ([0.01, 0.7, 1.0, 3.0, 1e5],),
    StandardPoisson: ([0.0, 0.1, 7.0, 12.0, 1e4, 1e12, np.nan],),
    StandardVonMises: ([0.0, 0.1, 5.0, 1e8, np.nan],),
    StandardTruncatedNormal: (
        [-np.inf, -1.0, 0.1, 5.0, -9.0, 2.0],
        [0.0, 3.0, 0.2, 6.0, -8.0, np.inf],
    ),
    StandardHypergeometric: ([3, 0, 50, 1e6, 7], [4, 2, 90, 1e5, 2], [5, 1, 60, 3e5, 9]),
    StandardBinomial: ([0, 9, 9, 100, 1e9, 5], [0.5, 0.2, 0.9, 0.4, 0.7, np.nan]),
}


FAST = {StandardGamma}


@pytest.mark.parametrize(
    "op_type", [op if op in FAST else pytest.param(op, marks=pytest.mark.slow) for op in CASES]
)
def test_numbers_do_not_depend_on_their_place_or_on_others(op_type):
    columns = [np.tile(np.array(x, float), 20) for x in CASES[op_type]]
    count = len(columns[0])
    state = state_variable("state")
    parameters = [pt.dvector(f"x{i}") for i in range(len(columns))]
    program = compare_onnx_and_py(
        [state, *parameters], op_type()(state, *parameters), [STATE, *columns], rtol=1e-13
    )
    assert op_types(program) == [f"{op_type.__name__}_float64"]
    after, drawn = program(STATE, *columns)
    assert int(after[2]) == (int(STATE[2]) + count) % 2**64
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(columns).any(axis=0))
    middle, first = program(STATE, *(x[:50] for x in columns))
    end, second = program(middle, *(x[50:] for x in columns))
    np.testing.assert_array_equal(np.append(first, second), drawn)
    np.testing.assert_array_equal(end, after)
    changed = [np.where(np.arange(count) < 60, x, 0.5) for x in columns]
    np.testing.assert_array_equal(program(STATE, *changed)[1][:60], drawn[:60])
    after, drawn = program(STATE, *(x[:0] for x in columns))
    assert drawn.shape == (0,)
    np.testing.assert_array_equal(after, STATE)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_attempts_take_the_numbers_of_blocks_of_their_own(count):
    state, k = state_variable("state"), pt.lscalar("k")
    after, key, counters = keys(state, pt.constant(np.int64(3)))
    outputs = [after, *uniforms(k, key, counters, count)]
    if count > 1 and count % 2:
        at_first = counter_uniforms(state, pt.constant(np.int64(3)))
        outputs += uniforms(k, key, counters, count, at_first)
    program = export_onnx([state, k], outputs, verify=False)
    expected_after, _ = reference.bits(STATE, 3)
    counted = STATE[2] + np.arange(3, dtype="uint64")
    for attempt in (0, 1, 7):
        expected = []
        for i in range((count + 1) // 2):
            number = np.array([1 + attempt * ((count + 1) // 2) + i], "uint64")
            words = reference.threefry(STATE[0], STATE[1], counted, number)
            expected += [reference.open_uniform_of(x, 3, "float64") for x in words]
        after, *found = program(STATE, attempt)
        np.testing.assert_array_equal(after, expected_after)
        np.testing.assert_array_equal(found[:count], expected[:count])
        if len(found) > count:
            if attempt == 0:
                expected[count - 1] = reference.open_uniform(STATE, 3, "float64")[1]
            np.testing.assert_array_equal(found[count:], expected[:count])


def test_logarithms_are_those_of_the_same_numbers():
    state, shape = state_variable("state"), pt.dvector("shape")
    outputs = [op(state, shape)[1] for op in (StandardGamma(), LogGamma())]
    x, log_x = export_onnx([state, shape], outputs, verify=False)(
        STATE, np.array([1e-5, 0.01, 0.3, 1.0, 2.0, 1e6] * 50)
    )
    assert (np.isfinite(log_x)).all()
    np.testing.assert_allclose(x, np.exp(log_x), rtol=1e-10)


@pytest.mark.slow
def test_draws_at_counters_find_the_definition_of_their_sampler() -> None:
    """A process that has not drawn before has imported no definition of a sampler."""
    code = """
import pytensor.tensor as pt
from pytensor_onnx.functions.random.streams import keyed
from pytensor_onnx.ops.random.draws import StandardPoisson
key, counters, mean = pt.vector(dtype="uint64"), pt.vector(dtype="uint64"), pt.vector()
print(keyed(key, counters, mean, sampler=StandardPoisson()).type.ndim)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"


@pytest.mark.parametrize(
    "op_type", [op if op in FAST else pytest.param(op, marks=pytest.mark.slow) for op in CASES]
)
def test_numbers_drawn_in_whole_arrays_are_the_same(op_type):
    columns = [np.tile(np.array(x, float), 20) for x in CASES[op_type]]
    state = state_variable("state")
    parameters = [pt.dvector(f"x{i}") for i in range(len(columns))]
    drawn = op_type()(state, *parameters)
    program = export_onnx([state, *parameters], drawn, target="web", precision="float64")
    assert "NonZero" not in {node.op_type for node in nodes_of_model(program.model)}
    found = [program(STATE, *x) for x in (columns, [c[:0] for c in columns])]
    native = compile_onnx([state, *parameters], drawn)
    for numbers, x in zip(found, (columns, [c[:0] for c in columns]), strict=True):
        for result, expected in zip(numbers, native(STATE, *x), strict=True):
            np.testing.assert_array_equal(result, expected)
