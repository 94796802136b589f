"""Bare calls of single operators in the installed runtime."""

import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from pytensor_onnx.passes.defects import DEFECTS

Run = Callable[..., Any]

on_x86 = pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="only x86 processors do so"
)


def is_repaired(version: str) -> bool:
    """Return whether the installed ONNX Runtime is of a version or newer."""
    installed, first = (v.split(".")[:2] for v in (onnxruntime.__version__, version))
    return tuple(map(int, installed)) >= tuple(map(int, first))


def repaired(version: str) -> pytest.MarkDecorator:
    """Mark a test of a defect that ONNX Runtime no longer has from a version on."""
    reason = f"repaired in ONNX Runtime {version}"
    return pytest.mark.xfail(is_repaired(version), reason=reason, strict=True)


def operators(name: str) -> tuple[str, ...]:
    """Return the operators of a record of the table of defects."""
    return next(defect.operators for defect in DEFECTS if defect.name == name)


def status_without_traceback(script: str, *arguments: str) -> int:
    """Return how a process ends, which it must not do by an exception of Python."""
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in result.stderr
    return result.returncode


def typed(name: str, array: np.ndarray, shape: tuple[str | int, ...] | None = None):
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, dtype, array.shape if shape is None else shape)


def run_nodes(nodes, inputs, outputs, *, opset=21, ir_version=10, types=None):
    types = types or [typed(name, array) for name, array in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    model = helper.make_model(
        helper.make_graph(nodes, "bare", types, results),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(outputs, inputs)


@pytest.fixture
def run() -> Run:
    """Run one operator on arrays, as nobody but the runtime computes it."""

    def run_one(op_type, *operands, outputs=1, opset=21, ir_version=10, **attributes):
        inputs = {f"x{index}": np.asarray(operand) for index, operand in enumerate(operands)}
        names = [f"y{index}" for index in range(outputs)]
        node = helper.make_node(op_type, list(inputs), names, **attributes)
        results = run_nodes([node], inputs, names, opset=opset, ir_version=ir_version)
        return results[0] if outputs == 1 else results

    return run_one


@pytest.fixture
def run_graph() -> Run:
    """Run several nodes, where one operator on arrays is not enough."""
    return run_nodes
