"""Kernels neither leave their arrays nor have undefined behaviour."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytensor_onnx import native

HERE = Path(__file__).parent
SOURCES = [
    HERE.parents[1] / "native" / name
    for name in (
        *("kernels.c", "ciphers.c", "draws.c", "elementwise.c", "linalg.c", "eigen.c", "schur.c"),
        "special.c",
    )
]
FLAGS = ["-std=c11", "-O1", "-g", "-ffp-contract=off", "-fno-sanitize-recover=all"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["undefined,float-cast-overflow", "address"])
def test_kernels_pass_a_sanitizer(sanitizer, tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    command = [*compiler.split(), *FLAGS, f"-fsanitize={sanitizer}", HERE / "run_kernels.c"]
    program = tmp_path / "run_kernels"
    made = subprocess.run(
        [*command, *SOURCES, "-o", program, "-lm"], capture_output=True, text=True, check=False
    )
    if "cannot find" in made.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    found = run(program)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout == f"{len(native.function_kernels())} kernels\n"
