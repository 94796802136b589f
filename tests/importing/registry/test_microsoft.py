"""Operators of ONNX Runtime that tools for PyTorch write equal its results."""

import numpy as np
import pytest
from onnx import helper

from pytensor_onnx import from_onnx
from tests.importing.models import by_runtime, evaluated, model_of

RNG = np.random.default_rng(0)
X, Y, V = (RNG.normal(size=s).astype("float32") for s in ((2, 3, 4), (2, 3, 4), (4,)))
CASES = {
    "FusedMatMul": ({"alpha": 0.5, "transB": 1}, [X, Y]),
    "Gelu": ({}, [X]),
    "FastGelu": ({}, [X, V]),
    "BiasGelu": ({}, [X, V]),
    "QuickGelu": ({"alpha": 1.5}, [X]),
    "SkipLayerNormalization": ({"epsilon": 1e-3}, [X, Y, V, 2 * V, V - 1]),
}


@pytest.mark.parametrize("operator", CASES)
def test_an_operator_of_the_runtime(operator):
    attributes, arrays = CASES[operator]
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    model = model_of(
        [node],
        inputs={name: array.shape for name, array in zip(names, arrays, strict=True)},
        outputs={"y": (2, 3, None)},
    )
    (found,), (expected,) = evaluated(from_onnx(model), *arrays), by_runtime(model, *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)
