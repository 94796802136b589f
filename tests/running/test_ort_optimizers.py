"""Optimizers that cannot change a model are disabled, and no others."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.passes.defects import switched_off_optimizers
from pytensor_onnx.running.ort_optimizers import OPERATORS, needless_optimizers
from pytensor_onnx.running.session import Session, SessionOptions
from tests.targets.conftest import is_repaired

ENDS = {
    "elementwise": lambda y, w: y,
    "product and rectifier": lambda y, w: pt.maximum(y[None] @ w + 1, 0),
    "transposed": lambda y, w: pt.exp(pt.exp(w.T + y).T),
    "reshaped": lambda y, w: y.reshape((-1, 2)).reshape((-1,)),
}


def model_of(end):
    x, w = pt.vector("x"), pt.matrix("w")
    y = x
    for _ in range(20):
        y = pt.exp(y) - x
    return export_onnx([x, w], end(y, w), verify=False).model


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_models_are_optimized_as_before(end, tmp_path, monkeypatch):
    model = model_of(end)
    assert len(needless_optimizers(model)) > 20
    optimized = []
    for name in ("some", "all"):
        path = tmp_path / f"{name}.onnx"
        Session(model, options=SessionOptions(optimized_model_path=path))
        optimized.append([node.op_type for node in onnx.load(path).graph.node])
        monkeypatch.setattr("pytensor_onnx.running.session.needless_optimizers", lambda _: [])
    assert optimized[0] == optimized[1]


def test_operators_of_functions_count():
    x = pt.vector("x")
    twice = OpFromGraph([x], [x.reshape((-1, 2)).sum(axis=0)])
    model = export_onnx([x], twice(x), verify=False).model
    assert "ReshapeFusion" not in needless_optimizers(model)


def in_function(body, x):
    return OpFromGraph([x], [body(x)])(x)


def convolution(x):
    filters, biases = np.ones((2, 2, 3, 3), "float32"), np.ones(2, "float32")
    return pt.maximum(nn.conv2d(x, filters, padding=1) + biases[None, :, None, None], 0)


def optimized(model, path, session):
    session(model, SessionOptions(threads=1, optimized_model_path=path))
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def default_session(model, options):
    source = ir.to_proto(model).SerializeToString()
    return onnxruntime.InferenceSession(
        source, options.to_runtime(), disabled_optimizers=switched_off_optimizers("onnxruntime")
    )


def own_session(model, options):
    return Session(model, options=replace(options, kernels=False))


@pytest.mark.parametrize(
    ("body", "x"),
    [
        (convolution, pt.ftensor4("x")),
        (lambda x: pt.exp(x.T @ x).T, pt.fmatrix("x")),
        (pt.gammaln, pt.vector("x")),
        (pt.linalg.cholesky, pt.matrix("x")),
    ],
    ids=["convolution", "transposed product", "special function", "nested functions"],
)
def test_functions_are_optimized_as_before(body, x, tmp_path):
    model = export_onnx([x], in_function(body, x), verify=False).model
    ways = (default_session, own_session)
    early, late = (optimized(model, tmp_path / f"{way.__name__}.onnx", way) for way in ways)
    assert early == late


@pytest.mark.parametrize("optimization", ["none", "basic", "extended", "all"])
@pytest.mark.slow
def test_results_of_functions_keep_their_bits(optimization):
    x = pt.matrix("x")
    results = [*pt.linalg.svd(x), pt.betaincinv(x, x, x), pt.linalg.cholesky(x @ x.T)]
    model = export_onnx([x], results, verify=False).model
    options = SessionOptions(threads=1, optimization=optimization, kernels=False)
    feed = {"x": np.random.default_rng(0).uniform(0.1, 0.9, (5, 5))}
    expected = default_session(model, options).run(None, feed)
    session = own_session(model, options)
    for found, array in zip(session.run(feed), expected, strict=True):
        assert found.tobytes() == array.tobytes()


def applied_optimizers(capfd, disabled=()):
    """Return the names of the optimizers that a session applies."""
    options = SessionOptions(config={"session.disable_quant_qdq": "0"}).to_runtime()
    options.log_severity_level = 0
    options.log_verbosity_level = 1
    model = export_onnx([x := pt.vector("x")], x + 1, verify=False).proto
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, disabled_optimizers=list(disabled)
    )
    return set(re.findall(r"Applying graph transformer (\w+) on", capfd.readouterr().err))


def test_names_are_those_of_the_runtime(capfd):
    later = set() if is_repaired("1.32") else {"SwiGluFusion"}
    assert set(OPERATORS) - applied_optimizers(capfd) == later


@pytest.mark.slow
def test_unknown_names_disable_nothing(capfd):
    assert applied_optimizers(capfd, ["NoSuchFusion"]) == applied_optimizers(capfd)
    missing = applied_optimizers(capfd) - applied_optimizers(
        capfd, ["NoSuchFusion", "GeluFusionL1"]
    )
    assert missing == {"GeluFusionL1"}
