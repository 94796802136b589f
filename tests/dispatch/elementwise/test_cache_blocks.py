"""Special functions go through long arrays in blocks, and give the same numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import compile_onnx, export_onnx
from pytensor_onnx.dispatch.registry.function import BLOCK, LONGEST_WHOLE
from tests.conftest import op_types

SIZES = (0, 1, BLOCK, LONGEST_WHOLE, LONGEST_WHOLE + 1, 4 * BLOCK - 1, 4 * BLOCK, 100_003)


def operators(program, name):
    """Return the operators of a function of a program, and of the bodies in it."""
    functions = {f.name: f for f in program.model.functions.values()}
    return {node.op_type for node in functions[name].all_nodes()}


def in_short_calls(function, *values):
    """Return a function's values, computed for arrays of known size that are not long."""
    inputs = [pt.tensor(f"x{i}", shape=(1000,)) for i in range(len(values))]
    short = compile_onnx(inputs, function(*inputs), verify=False)
    parts = [np.resize(x, -(-x.size // 1000) * 1000).reshape(-1, 1000) for x in values]
    rows = [short(*rows) for rows in zip(*parts, strict=True)]
    return np.concatenate(rows)[: values[0].size] if rows else np.zeros(0)


@pytest.mark.few(1)
@pytest.mark.parametrize("function", [pt.erfcx, pt.gammaln, pt.j0, pt.gammainc])
def test_blocks_give_the_numbers_of_short_arrays(function):
    rng, count = np.random.default_rng(3), 2 if function is pt.gammainc else 1
    inputs = [pt.vector(f"x{i}") for i in range(count)]
    long = compile_onnx(inputs, function(*inputs), verify=False)
    values = [rng.uniform(2.5, 60.0, max(SIZES)) for _ in inputs]
    wanted = in_short_calls(function, *values)
    # SciPy 1.16 has errors of 4e-16 next to the roots of j0, where ours is within 4e-14 of itself.
    np.testing.assert_allclose(
        wanted, getattr(scipy.special, str(function.scalar_op))(*values), rtol=1e-11, atol=1e-15
    )
    for size in SIZES:
        found = long(*(x[:size] for x in values))
        # A loop takes as many steps as some element of a block needs.
        np.testing.assert_allclose(found, wanted[:size], rtol=1e-14)


def test_nan_and_infinities_are_kept_in_their_places():
    x = pt.vector("x")
    values = np.random.default_rng(4).uniform(2.5, 60.0, 3 * BLOCK + 7)
    values[[0, BLOCK, -1]] = np.nan, np.inf, -np.inf
    found = compile_onnx([x], pt.gammaln(x), verify=False)(values)
    np.testing.assert_allclose(found, scipy.special.gammaln(values), rtol=1e-12)


@pytest.mark.parametrize("shape", [(300, 0), (0, 300), (5, 1, 2), (301, 3, 101)])
@pytest.mark.parametrize("function", [pt.erfcx, pt.gammaln])
def test_arrays_keep_their_shapes(function, shape):
    x = pt.tensor("x", shape=(None,) * len(shape))
    value = np.random.default_rng(5).uniform(2.5, 60.0, shape)
    found = compile_onnx([x], function(x), verify=False)(value)
    wanted = getattr(scipy.special, str(function.scalar_op))(value)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.slow
def test_operands_broadcast_before_they_are_cut():
    a, x = pt.vector("a"), pt.vector("x")
    values = np.linspace(0.1, 20.0, 400), np.linspace(0.0, 30.0, 301)
    compiled = compile_onnx([a, x], pt.gammainc(a[:, None], x), verify=False)
    wanted = scipy.special.gammainc(values[0][:, None], values[1])
    np.testing.assert_allclose(compiled(*values), wanted, rtol=1e-11)


def test_float16_goes_through_blocks_of_float32():
    x = pt.vector("x", dtype="float16")
    value = np.random.default_rng(6).uniform(0.1, 9.0, 3 * BLOCK).astype("float16")
    found = compile_onnx([x], pt.gammaln(x), verify=False)(value)
    np.testing.assert_allclose(found, scipy.special.gammaln(value), rtol=1e-3, atol=1e-3)


def test_arrays_that_are_known_to_be_short_have_no_blocks():
    x = pt.tensor("x", shape=(10, 7))
    assert op_types(export_onnx([x], pt.gammaln(x), verify=False)) == ["GammaLn_float64_batch2"]


def test_one_function_goes_through_arrays_of_all_ranks():
    x, y = pt.vector("x"), pt.matrix("y")
    program = export_onnx([x, y], [pt.gammaln(x), pt.gammaln(y)], verify=False)
    assert op_types(program) == ["GammaLn_float64_in_blocks"] * 2


@pytest.mark.slow
def test_short_arrays_skip_the_loop_where_the_function_is_small():
    x = pt.vector("x")
    program = export_onnx([x], [pt.gammaln(x), pt.owens_t(x, x)], verify=False)
    assert {"If", "Scan"} <= operators(program, "GammaLn_float64_in_blocks")
    assert "If" not in operators(program, "Owens_t_float64_in_blocks")


def test_small_functions_and_those_within_functions_have_no_blocks():
    x, y = pt.vector("x"), pt.vector("y")
    own = OpFromGraph([y], [pt.gammaln(y)], name="Own")
    program = export_onnx([x], [pt.expm1(x), own(x)], verify=False)
    names = {function.name for function in program.model.functions.values()}
    assert not [name for name in names if name.endswith("_in_blocks")]


@pytest.mark.slow
def test_files_without_functions_have_the_blocks_too():
    a, x = pt.vector("a"), pt.vector("x")
    outputs = [pt.gammaln(x), pt.gammainc(a, x)]
    program = export_onnx([a, x], outputs, verify=False, inline_functions=True)
    values = np.random.default_rng(8).uniform(2.5, 60.0, (2, LONGEST_WHOLE + 5))
    found = program(*values)
    np.testing.assert_allclose(found[0], scipy.special.gammaln(values[1]), rtol=1e-12)
    np.testing.assert_allclose(found[1], scipy.special.gammainc(*values), rtol=1e-11)


def test_blocks_work_in_the_steps_of_a_loop():
    x = pt.matrix("x")
    rows = pytensor.scan(pt.gammaln, sequences=[x], return_updates=False)
    value = np.random.default_rng(7).uniform(2.5, 60.0, (2, LONGEST_WHOLE + 5))
    found = compile_onnx([x], rows, verify=False)(value)
    np.testing.assert_allclose(found, scipy.special.gammaln(value), rtol=1e-12)
