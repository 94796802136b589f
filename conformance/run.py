"""Run the cases of this folder with any command, and compare bits or bounds.

    python run.py [--case NAME] COMMAND [ARGUMENT ...]

The command is called with three further arguments for each case: a model, a folder with
``input_0.pb``, ``input_1.pb``, … (messages TensorProto, in the order of the inputs), and an empty
folder for ``output_0.pb``, … . A status other than zero means that it refuses the model; the last
line of its standard error is the reason. ``{"relative": 0}`` in ``cases.json`` asks for equal bits.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

HERE = Path(__file__).parent
SECONDS = 120


def read(path: Path) -> np.ndarray:
    """Return the array of a file."""
    return onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))


def difference(found: np.ndarray, expected: np.ndarray, relative: float) -> str:
    """Return how an array differs, nothing if it does not."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
    if relative == 0:
        count = int((found != expected).sum())
        return f"{count} of {expected.size} numbers have other bits" if count else ""
    with np.errstate(invalid="ignore"):
        errors = np.abs(found - expected) / (relative * np.maximum(np.abs(expected), 1))
    errors = np.array(errors)
    errors[(found == expected) | (np.isnan(found) & np.isnan(expected))] = 0
    errors[np.isnan(errors)] = np.inf
    return "" if (errors <= 1).all() else f"{errors.max():.2g} times the bound"


def run(name: str, relative: float, command: list[str]) -> str:
    """Return the problem of a case, nothing if it is right."""
    data = HERE / name / "test_data_set_0"
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*command, str(HERE / name / "model.onnx"), str(data), folder]
        try:
            called = subprocess.run(
                arguments, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"refused: above {SECONDS} s"
        if called.returncode:
            return f"refused: {(called.stderr.strip().splitlines() or ['no reason'])[-1][:160]}"
        for path in sorted(data.glob("output_*.pb")):
            if not Path(folder, path.name).exists():
                return f"wrong: no {path.name}"
            problem = difference(read(Path(folder, path.name)), read(path), relative)
            if problem:
                return f"wrong: {path.stem}: {problem}"
    return ""


def main() -> int:
    """Run all cases, and print the cases whose results are not right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", help="a case; may be repeated")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    cases = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    results = {
        name: run(name, case["relative"], given.command)
        for name, case in cases.items()
        if not given.case or name in given.case
    }
    if given.json:
        print(json.dumps(results, indent=1))
    else:
        for name, problem in results.items():
            print(f"{name:32} {problem or 'right'}")
    right = sum(not problem for problem in results.values())
    print(f"{right} of {len(results)} right", file=sys.stderr)
    return int(right < len(results))


if __name__ == "__main__":
    sys.exit(main())
