"""Commands import PyTensor only where they have a graph."""

import json
import os
import subprocess
import sys

import pytensor.tensor as pt
import pytest

import pytensor_onnx
from pytensor_onnx import export_onnx

MODULES = (
    "pytensor",
    "pymc",
    "onnx",
    "onnx_ir",
    "onnxruntime",
    "rich.console",
    "pydantic",
    "sympy",
)
LOADED = f"""import atexit, json, sys
wanted = set({MODULES})
atexit.register(lambda: print(json.dumps(sorted(wanted & set(sys.modules))), file=sys.stderr))
"""


def run(code, *arguments):
    """Return output, and the modules of interest that a process has loaded at its end."""
    command = [sys.executable, "-c", LOADED + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.onnx"
    x = pt.fmatrix("x")
    export_onnx([x], pt.tanh(x), path, verify=False)
    return path


COMMAND = "from pytensor_onnx_command import main; main()"
TO_READ = {"onnx", "onnx_ir"}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--version"], set()),
        (["--help"], set()),
        (["ops", "softmax"], set()),
        (["inspect", "FILE"], {*TO_READ, "rich.console"}),
        (["verify", "FILE"], TO_READ),
        (["diff", "FILE", "FILE"], {*TO_READ, "onnxruntime"}),
        (["bench", "FILE", "--seconds", "0"], {*TO_READ, "onnxruntime", "rich.console"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_commands_on_files_load_no_pytensor(file, arguments, loaded):
    given = [str(file) if argument == "FILE" else argument for argument in arguments]
    assert run(COMMAND, *given)[1] == loaded


VERIFICATION = "pytensor_onnx.exporting.files.file_verification"


def modules_of(*arguments):
    """Return the output of a process, and all modules that it imports."""
    command = [sys.executable, "-X", "importtime", "-m", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout, {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_the_package_runs_as_a_module_without_pytensor():
    output, loaded = modules_of("pytensor_onnx", "--version")
    assert output == f"pytensor-onnx {pytensor_onnx.__version__}\n"
    assert "pytensor_onnx.cli.app" in loaded
    assert "pytensor" not in loaded


AT_EXIT = """
import os, sys
def leave(code, leave=os._exit):
    open({!r}, "w").write("\\n".join(sys.modules))
    leave(code)
os._exit = leave
"""


def test_the_process_that_verifies_a_file_loads_no_pytensor(file, tmp_path):
    # The process closes its standard error, and ends without the usual hooks.
    (tmp_path / "sitecustomize.py").write_text(AT_EXIT.format(str(tmp_path / "modules")))
    command = [sys.executable, "-m", VERIFICATION, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run(command, input=b"8589934592\n", env=environment, timeout=120, check=True)
    loaded = (tmp_path / "modules").read_text().split()
    assert "onnxruntime" in loaded
    assert "pytensor" not in loaded


def test_a_package_that_is_run_by_its_name_registers_the_mode(tmp_path):
    """It imports this one while `sys.argv` has -m in place of a name."""
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import pytensor_onnx, pytensor\nprint('ONNX' in pytensor.compile.mode.predefined_modes)\n"
    )
    (folder / "__main__.py").touch()
    command = [sys.executable, "-m", "user", "pytensor_onnx"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "True\n"


@pytest.mark.slow
def test_a_module_that_is_exported_may_use_the_mode(tmp_path):
    (tmp_path / "user.py").write_text(
        "import pytensor, pytensor.tensor as pt\n"
        "x = pt.dvector('x')\n"
        "f = pytensor.function([x], x + 1, mode='ONNX')\n"
    )
    command = [sys.executable, "-m", "pytensor_onnx", "export", "user:f"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.onnx").exists()
