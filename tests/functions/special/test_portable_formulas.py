import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.functions.special.exponential import power_of_exp
from pytensor_onnx.ops.special import portable
from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    compile_as_written,
    compile_definition,
)
from tests.operations.regions import FLOAT32, FLOAT64, Accuracy, linear, logarithmic, tiny

inf, nan = np.inf, np.nan


def cot_pi(x):
    return mp.cospi(x) / mp.sinpi(x)


CASES = [
    Accuracy(
        portable.PortableLog,
        mp.log,
        [linear(0.5, 2), logarithmic(1e-16, 1), logarithmic(0), linear(0.99, 1.01)],
    ),
    Accuracy(
        portable.PortableLog1p,
        mp.log1p,
        [linear(-0.999, -0.5), linear(-0.5, 0.5), logarithmic(1), tiny()],
    ),
    Accuracy(
        portable.PortableExp,
        mp.exp,
        [
            linear(-1, 1),
            linear(-745, 709.7, FLOAT64),
            linear(-103, 88.7, FLOAT32),
            tiny(),
        ],
    ),
    Accuracy(portable.PortableExpm1, mp.expm1, [linear(-1, 1), linear(-40, 88.7), tiny()]),
    Accuracy(portable.PortableCotPi, cot_pi, [linear(1e-3, 0.249), logarithmic(1e-16, 1)]),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("PortableLog", dtype, {0.0: -inf, 1.0: 0.0, inf: inf, -1.0: nan, nan: nan})
    assert_values("PortableLog1p", dtype, {-1.0: -inf, -1.5: nan, inf: inf, nan: nan, -0.0: -0.0})
    overflow = {"float64": 709.79, "float32": 88.73}[dtype]
    beyond = {overflow: inf, inf: inf, nan: nan}
    assert_values("PortableExp", dtype, beyond | {0.0: 1.0, -800.0: 0.0, -inf: 0.0})
    assert_values("PortableExpm1", dtype, beyond | {-800.0: -1.0, -inf: -1.0, -0.0: -0.0})
    assert_values("PortableCotPi", dtype, {0.0: inf, 0.25: 1.0, 0.5: 0.0, 0.75: -1.0, 1.0: -inf})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op_type.__name__)
def test_results_do_not_depend_on_the_place_in_an_array(case, dtype):
    run = compile_definition(case.op_type.__name__, dtype)
    for region in case.regions:
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
