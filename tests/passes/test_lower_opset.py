"""Models in opsets below 18, the lowest opset that lowerings emit."""

import numpy as np
import onnx
import pytensor.tensor as pt
import pytest

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.conftest import compare_onnx_and_py
from tests.targets.test_opsets import assert_follows_schemas

VALUE = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, -1.0]], "float32")


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
@pytest.mark.parametrize("opset", [13, 15, 17])
def test_an_old_opset_has_the_same_results(opset, target):
    x = pt.matrix("x", dtype="float32")
    left, right = pt.split(pt.concatenate([x, 2 * x], 1), [3, 3], n_splits=2, axis=1)
    outputs = [
        x.max(axis=1),
        x.min(),
        pt.prod(x, axis=0),
        pt.exp(x).sum(axis=0),
        pt.logsumexp(x, axis=1),
        x.reshape((3, 2)),
        x.T.reshape((-1,)),
        left - right,
        pt.sort(x, axis=1),
        x.shape[1] * x,
    ]
    options = {"opset_version": opset, "target": target}
    program = compare_onnx_and_py([x], outputs, [VALUE], atol=1e-6, **options)
    assert program.proto.opset_import[0].version == opset
    assert program.proto.ir_version == 8
    onnx.checker.check_model(program.proto)
    assert_follows_schemas(program)


def test_all_missing_operators_are_named_with_the_first_opset_that_has_them():
    x, i = pt.matrix("x", dtype="float32"), pt.lvector("i")
    outputs = [pt.inc_subtensor(x[i], 1.0), i ^ 3]
    with pytest.raises(UnsupportedOpError) as raised:
        export_onnx([x, i], outputs, opset_version=13)
    lines = str(raised.value).splitlines()
    assert lines[0] == "opset 13 cannot express this graph:"
    assert "- opset 13 has no BitwiseXor: choose opset_version=18" in lines
    assert any("has no attribute 'reduction': choose opset_version=16" in line for line in lines)


def test_reshapes_that_may_be_empty_need_opset_14():
    x = pt.matrix("x", dtype="float32")
    empty = pt.zeros((0, 3), dtype="float32")
    y = pt.concatenate([x, empty]).reshape((x.shape[1], x.shape[0]))
    with pytest.raises(
        UnsupportedOpError, match="no attribute 'allowzero': choose opset_version=14"
    ):
        export_onnx([x], y, opset_version=13)
    export_onnx([x], y, opset_version=14)
