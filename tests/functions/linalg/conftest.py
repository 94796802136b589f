"""Factorisations by the kernels of the native library, and by the functions of files."""

from functools import partial

import pytest

from pytensor_onnx import SessionOptions, compile_onnx


@pytest.fixture(scope="module", params=[True, False], ids=["kernels", "functions"])
def compiled(request):
    """Compile a graph as `compile_onnx` does, with and without kernels of functions."""
    options = SessionOptions(kernels=request.param)
    return partial(compile_onnx, verify=False, session_options=options)
