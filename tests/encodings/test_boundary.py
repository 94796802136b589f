"""Scalar types are 0-d tensors inside, and NumPy scalars outside."""

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, export_function_onnx, export_onnx
from tests.conftest import PY


@pytest.mark.parametrize(
    ("dtype", "how"),
    [
        ("float64", "direct"),
        ("float32", "updates"),
        ("int64", "generator"),
        ("bool", "profile"),
        ("int8", "function"),
    ],
)
def test_outputs_of_a_scalar_type_are_scalars(dtype, how):
    v = pt.vector("v", dtype=dtype)
    scalar = pt.scalar_from_tensor(v.max())
    updates, options = {}, {}
    if how == "updates":
        total = pytensor.shared(0)
        updates = {total: total + 1}
    elif how == "generator":
        rng = pt.random.shared_rng(seed=1)
        following, _ = rng.uniform()
        updates = {rng: following}
    elif how == "profile":
        options = {"profile": True}
    elif how == "function":
        inner = v.type()
        scalar = OpFromGraph([inner], [pt.scalar_from_tensor(inner.max())])(v)
    value = np.array([0, 1], dtype)
    f = pytensor.function([v], [scalar, v], updates=updates, mode="ONNX", **options)
    expected = pytensor.function([v], scalar, mode=PY)(value)
    program = export_onnx([v], [scalar, v], verify=False)
    for found, whole in (f(value), f.copy()(value), program(value)):
        assert isinstance(found, np.generic)
        assert (found, found.dtype) == (expected, dtype)
        assert isinstance(whole, np.ndarray)


@pytest.mark.parametrize("mode", ["ONNX", Mode(ONNXLinker(freeze=True), None)])
def test_inputs_and_outputs_of_a_scalar_type(mode):
    x, v = ps.float64("x"), pt.vector("v")
    f = pytensor.function([x, v], [x, x * 2, v * pt.tensor_from_scalar(x)], mode=mode)
    program = export_function_onnx(f)
    for run in (f, program):
        one, two, vector = run(3.0, [1.0, 2.0])
        assert (type(one), type(two)) == (np.float64, np.float64)
        assert (one, two) == (3.0, 6.0)
        np.testing.assert_array_equal(vector, [3.0, 6.0])
