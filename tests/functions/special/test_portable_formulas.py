import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.functions.special.exponential import power_of_exp
from tests.functions.special.accuracy import (
    DTYPES,
    cases,
    compile_as_written,
    compile_definition,
)

inf, nan = np.inf, np.nan


PORTABLE = [name for name in cases() if name.startswith("Portable")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PORTABLE)
def test_results_do_not_depend_on_the_place_in_an_array(name, dtype):
    run = compile_definition(name, dtype)
    for region in cases()[name].regions:
        if dtype in region.dtypes:
            [x] = region.points(60, dtype)
            whole = run(x)
            # One element is computed by the remainder of a vector loop, 60 mostly by its body.
            np.testing.assert_array_equal([run(x[i : i + 1])[0] for i in range(len(x))], whole)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_all_powers_of_two_are_accurate(dtype):
    exponents = np.arange(np.finfo(dtype).minexp, np.finfo(dtype).maxexp)
    found = compile_definition("PortableLog", dtype)(np.ldexp(np.ones(1, dtype), exponents))
    expected = (exponents * np.log(np.longdouble(2))).astype(dtype)
    np.testing.assert_array_max_ulp(found, expected, 1)


def test_exponentials_for_sums_have_small_errors_beside_one():
    x = pt.vector("x")
    points = -(np.random.default_rng(1).uniform(0, 1, 500) ** 3)
    run = compile_as_written([x], power_of_exp(x))
    found = run(points)
    exact = np.array([float(mp.exp(64 * mp.mpf(point))) for point in points])
    assert np.max(np.abs(found - exact) - 3e-15 * exact) < 2e-16
    np.testing.assert_array_equal(run(points[:1]), found[:1])


@pytest.mark.parametrize(
    "function",
    [pt.gamma, lambda x: pt.polygamma(3, x), lambda x: pt.owens_t(x, x)],
    ids=["gamma", "polygamma", "owens_t"],
)
def test_functions_take_no_powers_and_exponentials_of_the_runtime(function):
    x = pt.vector("x")
    program = export_onnx([x], function(x), verify=False, inline_functions=True)
    assert not {"Exp", "Pow"} & {node.op_type for node in program.model.graph.all_nodes()}
