"""Every special function, as users get it: its definition serves wherever a runtime falls short."""

from itertools import product
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import ScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import compile_onnx
from pytensor_onnx.dispatch.registry.definition_instance import OPERATORS
from pytensor_onnx.functions.registry import DEFINITIONS
from tests.conftest import sweep_rest
from tests.functions.special.accuracy import (
    DTYPES,
    assert_accurate,
    assert_ends,
    cases,
    compile_definition,
)

TELLING = [
    (name, dtype)
    for name, dtype in product(cases(), DTYPES)
    if dtype == "float64" or cases()[name].op_type in OPERATORS
]
"""Float64 of all, and float32 where an operator of the runtime serves."""
ACCURACY = Path(__file__).parents[3] / "docs" / "reference" / "accuracy.md"


def called(name: str, dtype: str) -> tuple[list, pt.TensorVariable]:
    """Return vectors and the function of them."""
    case = cases()[name]
    arguments = [pt.vector(f"x{i}", dtype=dtype) for i in range(case.arguments)]
    return arguments, Elemwise(case.op_type(upgrade_to_float, name=name.lower()))(*arguments)


def test_every_definition_of_a_scalar_op_has_a_case():
    own = {
        op_type.__name__
        for op_type, definition in DEFINITIONS.items()
        if issubclass(op_type, ScalarOp)
        and definition.expression.__module__.startswith("pytensor_onnx.functions.special.")
    }
    assert own == {*cases()}


def test_every_case_is_in_the_table_of_accuracy():
    rows = {line.split("|")[1].strip() for line in ACCURACY.read_text().splitlines() if "|" in line}
    assert {*cases()} <= rows, "run scripts/measure_accuracy.py"


@pytest.mark.parametrize(("name", "dtype"), sweep_rest(product(cases(), DTYPES), TELLING))
@pytest.mark.few(15)
def test_errors_of_definitions_and_functions_are_within_their_bounds(name, dtype):
    # The operators of the runtime serve in float32, some with larger errors.
    if dtype == "float32" and cases()[name].op_type in OPERATORS:
        assert_accurate(name, dtype)
    else:
        arguments, result = called(name, dtype)
        assert_accurate(name, dtype, compile_onnx(arguments, result, verify=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", cases())
def test_values_at_the_ends_of_the_domain(name, dtype):
    assert_ends(name, dtype)


@pytest.mark.parametrize(("dtype", "last"), [("float64", 710.4758), ("float32", 89.4159)])
@pytest.mark.parametrize("name", ["Sinh", "Cosh"])
def test_overflow_comes_no_earlier_than_the_largest_number(name, dtype, last):
    run = compile_definition(name, dtype)
    assert np.isfinite(run(np.array([last], dtype)))
    assert np.isinf(run(np.array([last + 1e-3], dtype)))


def test_arctan2_broadcasts_and_computes_in_the_common_dtype():
    y, x = pt.col("y", dtype="float32"), pt.vector("x", dtype="float64")
    run = compile_onnx([y, x], pt.arctan2(y, x), verify=False)
    a, b = np.array([[0.5], [-2.0]], "float32"), np.array([1.0, -3.0, 0.0])
    np.testing.assert_array_max_ulp(run(a, b), np.arctan2(a, b), 2)
