"""The report describes the model and the changes made to it."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import SessionOptions, compile_onnx, export_onnx


def test_report_describes_the_model():
    x, w = pt.matrix("x"), pytensor.shared(np.ones((3, 4)), name="w")
    n = pytensor.shared(0, name="n")
    y = pt.erf(x @ w)
    y.name = "y"
    report = export_onnx([x], y, updates={n: n + 1}, dynamic_axes={"x": {0: "batch"}}).report()
    for line in [
        "# ONNX model",
        "opset 21, IR version 10, target onnxruntime",
        "- x: float64[batch, 3]",
        "- y: float64[batch, 4]",
        "- n -> n_next",
        "- MatMul: 1",
        "- pytensor.standard::Erf_float64: 1",
        "- Erf of float64 computed by",
        "- checked, loaded and equal to PyTensor",
    ]:
        assert line in report, report
    assert f"PyTensor {pytensor.__version__}" in report


def test_report_leaves_out_empty_sections():
    x = pt.vector("x")
    report = export_onnx([x], x + 1, verify=False).report()
    assert "## Functions" not in report
    assert "## State" not in report
    assert "## Changes" not in report
    assert "- not verified" in report


def test_report_names_the_regions_of_the_session():
    x = pt.matrix("x", dtype="float64")
    y = [pt.linalg.cholesky(x), (pt.exp(x) * x).sum()]
    fused, plain = (
        compile_onnx([x], y, session_options=SessionOptions(kernels=kernels)).report()
        for kernels in (True, False)
    )
    assert "- region_1: 4 nodes (1 Exp, 1 Mul, 1 ReduceSum, 1 Cholesky_lower_float64)" in fused
    assert "kernels" not in plain


def test_a_report_opens_no_session():
    x = pt.vector("x", dtype="float64")
    program = export_onnx([x], (pt.exp(x) * x).sum(), verify=False)
    report = program.report()
    assert "session" not in vars(program)
    assert "- region_1: 3 nodes" in report
    program(np.zeros(2))
    assert program.report() == report
