"""Draws of all distributions are those recorded, in every bit and in every runtime."""

import os
import shutil

import pytest

from scripts.web_runtime import run_in_web
from tests.functions.random.known_draws import FLOATS, digests, draw_natively, drawing, known

NODE_MODULES = os.environ.get("ONNXRUNTIME_WEB_NODE_MODULES")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.few(1)
def test_draws_are_those_recorded(dtype):
    assert digests(draw_natively(dtype)) == known()[dtype]


@pytest.mark.skipif(not NODE_MODULES, reason="ONNXRUNTIME_WEB_NODE_MODULES names no directory")
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize("dtype", FLOATS)
def test_draws_in_webassembly_are_those_recorded(dtype):
    program, inputs = drawing(dtype)
    _, [draws] = run_in_web(str(NODE_MODULES), [(program.proto.SerializeToString(), inputs)])
    assert digests(draws) == known()[dtype]
