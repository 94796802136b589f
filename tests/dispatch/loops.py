"""Shared helpers of the tests of loops."""

from typing import Any

import pytensor

from pytensor_onnx import ONNXProgram


def scan(*args: Any, **kwargs: Any) -> Any:
    """Return the outputs of a loop that updates nothing."""
    return pytensor.scan(*args, return_updates=False, **kwargs)


def loops(program: ONNXProgram) -> list[str]:
    """Return the loop operators of a model, those inside branches too."""
    return [n.op_type for n in program.model.graph.all_nodes() if n.op_type in ("Loop", "Scan")]
