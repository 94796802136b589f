"""The package of kernels alone, in a process that has neither PyTensor nor this package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.stats
from onnx import TensorProto, helper

from pytensor_onnx import native, prng
from pytensor_onnx.catalogue.compile_entry import compile_entry
from pytensor_onnx.catalogue.library import entries, model_of
from pytensor_onnx.functions.random.ciphers import uniform_numbers
from pytensor_onnx.importing.random import DRAFT_DOMAIN

PACKAGE = Path(__file__).parents[2] / "native" / "wheel" / "src" / "pytensor_onnx_kernels"
CODE = """
import json, sys
import onnxruntime as ort, pytensor_onnx_kernels
options = ort.SessionOptions()
pytensor_onnx_kernels.register(options, sys.argv[2].split(","))
session = ort.InferenceSession(sys.argv[1], options)
feed = {"value": [0.5, 2.0], "alpha": [1.5, 0.7], "beta": [2.0, 0.3]}
(found,) = session.run(None, feed)
print(json.dumps([found.tolist(), pytensor_onnx_kernels.library(), "pytensor" in sys.modules]))
"""

HOST = Path(__file__).parent / "host.c"


def _runtime() -> Path:
    """Return ONNX Runtime's library, which its wheels have on Linux."""
    folder = Path(onnxruntime.__file__).parent / "capi"
    found = sorted(folder.glob("libonnxruntime.so.*"))
    if not found:
        pytest.skip("the wheel of ONNX Runtime has no library to link with")
    return found[0]


@pytest.mark.parametrize("operator", ["ThreefryUniform_float32", "RandomUniform"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_programs_of_other_languages_run_kernels(
    language: str, operator: str, tmp_path: Path
) -> None:
    """The model has nodes without functions, which no session takes that lacks the kernels."""
    compiler = shutil.which({"c": "cc", "c++": "c++"}[language])
    library = native.library()
    if compiler is None or library is None:
        pytest.skip(f"there is no compiler of {language}, or the kernels are not built")
    runtime = tmp_path / "libonnxruntime.so.1"
    runtime.symlink_to(_runtime())
    host = tmp_path / "host"
    command = [compiler, "-x", language, HOST, "-x", "none", runtime, "-o", host]
    subprocess.run([*command, f"-Wl,-rpath,{tmp_path}"], check=True)
    names = {"state": [2], "n": []}
    if operator == "RandomUniform":
        domain = DRAFT_DOMAIN
        results = ["numbers", "after"]
        node = helper.make_node(operator, ["state"], results, domain=domain, shape=[1000])
        drawn = prng.random_uniform([0, 42], (1000,)).values
    else:
        domain = "pytensor.standard"
        node = helper.make_node(operator, list(names), ["numbers"], domain=domain)
        drawn = uniform_numbers("float32")(np.array([0, 42]), 1000)
    inputs = [helper.make_tensor_value_info(k, TensorProto.INT64, v) for k, v in names.items()]
    output = helper.make_tensor_value_info("numbers", TensorProto.FLOAT, [None])
    graph = helper.make_graph([node], "draws", inputs, [output])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=10), tmp_path / "m.onnx")
    run = subprocess.run(
        [host, library, tmp_path / "m.onnx", "1000"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found = np.array([int(line, 16) for line in run.stdout.split()], "uint32").view("float32")
    np.testing.assert_array_equal(found, drawn.eval(mode="FAST_COMPILE"))


def test_kernels_run_without_pytensor(tmp_path: Path) -> None:
    library = native.library()
    if library is None:
        pytest.skip("the kernels are not built")
    ours = shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=lambda *_: ["kernels-*"])
    shutil.copy(library, ours)
    (entry,) = entries(["GammaLogProb"])
    one = compile_entry(entry, "float64")
    onnx.save(model_of(one, [1, 1, 1]), tmp_path / "model.onnx")
    names = ",".join(f.name for f in one.called)
    command = [sys.executable, "-c", CODE, str(tmp_path / "model.onnx"), names]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    found, path, has_pytensor = json.loads(run.stdout)
    exact = scipy.stats.gamma.logpdf([0.5, 2.0], [1.5, 0.7], scale=1 / np.array([2.0, 0.3]))
    np.testing.assert_allclose(found, exact, 1e-12)
    assert Path(path).parent == ours
    assert not has_pytensor
