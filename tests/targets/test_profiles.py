"""Targets by name, and the opsets and file formats that the installed runtime loads."""

import numpy as np
import pytest

from pytensor_onnx.conversion import IR_VERSION, MAX_OPSET
from pytensor_onnx.targets import get_profile
from tests.targets.conftest import repaired


def test_an_unknown_target_is_refused_with_the_known_names():
    with pytest.raises(
        ValueError,
        match=r"'abacus'.*'onnxruntime', 'web', 'webgpu', 'node', 'portable', 'openvino', 'tract'",
    ):
        get_profile("abacus")


def test_the_runtime_loads_the_newest_opset_and_file_format(run):
    run("Neg", np.ones(1), opset=MAX_OPSET, ir_version=IR_VERSION)


@repaired("1.32")
def test_the_runtime_refuses_opset_27(run):
    with pytest.raises(Exception, match="opset"):
        run("Neg", np.ones(1), opset=27)


def test_the_runtime_refuses_opsets_after_the_last(run):
    with pytest.raises(Exception, match="opset"):
        run("Neg", np.ones(1), opset=MAX_OPSET + 1)


@repaired("1.32")
def test_the_runtime_refuses_a_newer_file_format(run):
    newest = 13
    with pytest.raises(Exception, match="IR version"):
        run("Neg", np.ones(1), ir_version=newest + 1)
