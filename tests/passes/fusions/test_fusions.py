"""Fusions by a runtime with its own default options stay exact in float64.

The fused layer normalisations hold epsilon in float32, which near zero is off by 1e-8.
"""

import numpy as np
import onnxruntime
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx

SQUARES = {
    "square": lambda d: d**2,
    "float_power": lambda d: d**2.0,
    "product": lambda d: d * d,
    "sqr": pt.sqr,
    "power_of_constant": lambda d: pt.power(d, pt.constant(np.array([[2.0]]))),
}
ROOTS = {
    "sqrt": lambda d, v: d / pt.sqrt(v),
    "power": lambda d, v: d * v**-0.5,
}


@pytest.mark.each_value
@pytest.mark.parametrize("centred", [True, False], ids=["layer_norm", "rms_norm"])
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("square", SQUARES)
def test_normalisation_keeps_epsilon_in_float64(square, root, centred):
    x, scale, bias = pt.matrix("x", shape=(None, 16)), pt.vector("scale"), pt.vector("bias")
    d = x - x.mean(axis=-1, keepdims=True) if centred else x
    variance = SQUARES[square](d).mean(axis=-1, keepdims=True)
    y = ROOTS[root](d, variance + 1e-5) * scale + bias
    program = export_onnx([x, scale, bias], y, verify=False)

    rng = np.random.default_rng(0)
    a, s, b = 1e-3 * rng.normal(size=(20, 16)), rng.normal(size=16), rng.normal(size=16)
    c = a - a.mean(axis=-1, keepdims=True) if centred else a
    expected = c / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5) * s + b
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    (found,) = session.run(None, {"x": a, "scale": s, "bias": b})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
