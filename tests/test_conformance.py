"""The runner of the folder of conformance, with a right command and wrong ones."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "conformance"
CASES = ("random_uniform_float32", "split_prng", "NormalLogProb_by_functions", "GammaLn_float32")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    chosen = [part for case in CASES for part in ("--case", case)]
    runner = [sys.executable, str(FOLDER / "run.py"), *chosen, *command]
    return subprocess.run(runner, capture_output=True, text=True, check=False)


def test_onnx_runtime_conforms() -> None:
    found = run(sys.executable, str(FOLDER / "onnxruntime_command.py"))
    assert found.returncode == 0, found.stdout
    assert found.stderr.strip() == "4 of 4 right"


def test_problems_are_told(tmp_path: Path) -> None:
    command = tmp_path / "wrong.py"
    command.write_text(
        "import sys, pathlib, onnx, numpy as np\n"
        "sys.path.insert(0, sys.argv[1]); import onnxruntime_command as right\n"
        "model, inputs, outputs = sys.argv[2:]\n"
        "if 'Gamma' in model: sys.exit('no kernel')\n"
        "right.main(model, inputs, outputs)\n"
        "path = pathlib.Path(outputs, 'output_0.pb')\n"
        "array = onnx.numpy_helper.to_array(onnx.load_tensor(str(path))).copy()\n"
        "array.flat[0] = np.nextafter(array.flat[0], 9) if array.dtype.kind == 'f' else 1\n"
        "path.write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())\n"
    )
    found = run(sys.executable, str(command), str(FOLDER))
    assert found.returncode == 1
    lines = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert lines["random_uniform_float32"] == "wrong: output_0: 1 of 64 numbers have other bits"
    assert lines["split_prng"] == "wrong: output_0: 1 of 2 numbers have other bits"
    assert lines["NormalLogProb_by_functions"] == "right"
    assert lines["GammaLn_float32"] == "refused: no kernel"
