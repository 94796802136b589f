"""The package of kernels alone, in a process that has neither PyTensor nor this package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import scipy.stats

from pytensor_onnx import native
from pytensor_onnx.catalogue.compile_entry import compile_entry
from pytensor_onnx.catalogue.library import entries, model_of

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
