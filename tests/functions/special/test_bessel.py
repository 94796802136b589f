import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx, export_onnx
from pytensor_onnx.functions.special.trigonometric import quarter_turns
from tests.functions.special.accuracy import (
    DTYPES,
    cases,
    compile_as_written,
    compile_definition,
    errors_of,
)
from tests.operations.bessel import next_to_roots

inf, nan = np.inf, np.nan


@pytest.mark.slow
@pytest.mark.parametrize("function", [pt.j0, pt.j1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_has_the_value_of_an_array_of_it(function, dtype):
    x, xs = pt.scalar("x", dtype=dtype), pt.vector("xs", dtype=dtype)
    single = compile_onnx([x], function(x), verify=False)
    several = compile_onnx([xs], function(xs), verify=False)
    points = [0.0, -0.0, 1e-300, 0.7, -1.9, 2.4, 4.5, -30.0, 1e3, 1e7, 1e11, 1e15, 1e30, inf, nan]
    points = np.array(points, dtype)
    found = np.array([single(point) for point in points])
    np.testing.assert_array_equal(found, several(points))
    assert found.dtype == dtype


def test_quarter_turns_of_large_angles_are_exact():
    x = pt.vector("x")
    exponents = np.random.default_rng(1).uniform(20, 1024, 300)
    points = np.append(2.0**exponents, [2.0**39, 2.0**55, 2.0**79, np.finfo("f8").max])
    coarse, fine = (compile_as_written([x], part)(points) for part in quarter_turns(x))
    with mp.workprec(1400):
        for point, first, second in zip(points, coarse, fine, strict=True):
            difference = (2 / mp.pi * mp.mpf(point) - mp.mpf(first) - mp.mpf(second)) / 4
            assert abs(difference - mp.nint(difference)) < mp.mpf(2) ** -77


@pytest.mark.parametrize("function", [pt.j0, pt.j1])
def test_no_arguments_take_the_operators_of_the_runtime_for_sine_and_cosine(function):
    x = pt.vector("x")
    program = export_onnx([x], function(x), verify=False)
    nodes = [node for f in program.model.functions.values() for node in f.all_nodes()]
    assert not {"Sin", "Cos"} & {node.op_type for node in nodes}


@pytest.mark.parametrize("order", [0, 1])
def test_errors_next_to_roots_are_smaller_than_those_of_scipy(order):
    name = f"J{order}"
    case = cases()[name]
    for region in (next_to_roots(order, 1, 1), next_to_roots(order, 2, 300)):
        own = errors_of(name, region, 100, "float64", compile_definition(name, "float64"))
        assert own.max() < errors_of(name, region, 100, "float64", case.scipy).max() / 10
