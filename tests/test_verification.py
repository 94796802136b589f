"""Verification compares with PyTensor and names the first node that diverges."""

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Op

from pytensor_onnx import VerificationError, compile_onnx, export_onnx, onnx_funcify
from pytensor_onnx.verification import disagreement


class Halve(Op):
    """An operation whose lowering is wrong."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] / 2


@onnx_funcify.register(Halve)
def lower_halve(op, node, onnx, x):
    return onnx.Mul(x, 0.4)


@pytest.fixture
def x():
    return pt.vector("x")


def test_verified_program_says_so(x):
    assert "equal to PyTensor on sampled inputs" in export_onnx([x], pt.exp(x)).verification
    given = export_onnx([x], pt.exp(x), example_inputs=[np.ones(3)])
    assert "equal to PyTensor on given inputs (x [3])" in given.verification


def test_unverified_program_says_so(x):
    assert export_onnx([x], pt.exp(x), verify=False).verification == "not verified"


def test_first_diverging_node_is_named(x):
    with pytest.raises(VerificationError) as raised:
        export_onnx([x], pt.tanh(Halve()(pt.exp(x))) + 1)
    message = str(raised.value)
    assert message.startswith("output 'output_0' differs from PyTensor: largest difference")
    assert "The first node that diverges is 'mul', which computes Halve" in message
    assert "test_verification.py" in message


def test_file_is_not_written_when_verification_fails(x, tmp_path):
    with pytest.raises(VerificationError):
        export_onnx([x], Halve()(x), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_verification_can_be_switched_off(x, tmp_path):
    export_onnx([x], Halve()(x), tmp_path / "model.onnx", verify=False)
    assert (tmp_path / "model.onnx").exists()


def test_verification_on_given_inputs(x):
    program = compile_onnx([x], Halve()(x), verify=False)
    program.verify([np.zeros(3)])
    with pytest.raises(VerificationError):
        program.verify([np.ones(3)])


def test_invalid_model_is_refused(x):
    program = compile_onnx([x], pt.exp(x), verify=False)
    next(iter(program.model.graph)).attributes["no_such_attribute"] = ir.AttrInt64("no_such", 1)
    with pytest.raises(VerificationError, match=r"(?i)attribute"):
        program.verify()


def test_inputs_that_pytensor_refuses_are_reported():
    x, shape = pt.vector("x"), pt.lvector("shape")
    y = x.reshape(shape, ndim=3)
    program = export_onnx([x, shape], y)
    assert "not compared" in program.verification
    assert "give example_inputs" in program.verification
    given = export_onnx([x, shape], y, verify=False).verify([np.ones(6), np.array([1, 2, 3])])
    assert "equal to PyTensor on given inputs" in given.verification
    with pytest.raises(VerificationError, match="PyTensor itself fails"):
        program.verify([np.ones(6), np.array([4, 4, 4])])


def test_sizes_that_must_agree_are_sampled_equal():
    x, w, b = pt.matrix("x"), pt.matrix("w"), pt.vector("b")
    assert "equal to PyTensor" in export_onnx([x, w, b], pt.tanh(x @ w + b)).verification


def test_state_is_verified():
    import pytensor

    x, w = pt.vector("x"), pytensor.shared(np.ones(3), name="w")
    assert "equal to PyTensor" in export_onnx([x], x * w, updates={w: w + x}).verification


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        (np.ones(2, "float32"), np.ones(2), "dtype float32 instead of float64"),
        (np.ones(2), np.ones(3), r"shape \(2,\) instead of \(3,\)"),
        (np.array([1, 2]), np.array([1, 3]), "found 2, expected 3 at \\[1\\]"),
        (np.array([np.nan]), np.array([1.0]), "found nan"),
        (np.array([1.0]), np.array([np.inf]), "expected inf"),
        (np.array([1.0, 1.0 + 1e-8]), np.array([1.0, 1.0]), "largest difference 1e-08"),
    ],
)
def test_disagreement_says_what_differs(found, expected, reason):
    import re

    assert re.search(reason, disagreement(found, expected))


@pytest.mark.parametrize(
    "values", [np.array([np.nan, np.inf, -np.inf, -0.0]), np.zeros((0, 3)), np.array(True)]
)
def test_equal_arrays_agree(values):
    assert disagreement(values, values.copy()) == ""


def test_verification_needs_no_compiler(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a compiler was called")

    monkeypatch.setattr("pytensor.link.c.cmodule.GCC_compiler.compile_str", refuse)
    x = pt.vector("x")
    shift = 0.1234567  # a graph that no cache of compiled modules knows
    op = OpFromGraph([x], [pt.exp(x) * shift + x])
    assert "equal to PyTensor" in export_onnx([x], op(x)).verification
