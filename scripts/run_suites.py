"""Run test files of another package in mode ONNX and in PyTensor's default mode, and count.

`python -m scripts.run_suites FOLDER tests/a.py tests/b.py` prints a row for each file, with the
tests that only one of the modes passes below it. FOLDER is the unpacked source of the package
(of its source distribution, or of a checkout), which is to be installed in the environment in
the same version. Each file runs in processes of its own, `--limit` seconds at most.

The warning of mode ONNX of nodes that run in Python is switched off: PyMC's tests let warnings
fail, and switch off that of mode NUMBA alike.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytensor
import pytest

ROOT = Path(__file__).parents[1]
MODES = ("ONNX", "")
MODE = "SUITE_MODE"


def pytest_configure() -> None:
    """Make the mode of the run PyTensor's default: pytest loads this file as a plugin."""
    if os.environ.get(MODE):
        import pytensor_onnx  # noqa: F401  (registers the mode)

        pytensor.config.mode = os.environ[MODE]


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call():
    """Run a test without the warning of nodes that run in Python."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "operations that cannot be converted to ONNX run in")
        return (yield)


def results(folder: Path, file: str, mode: str, limit: float) -> dict[str, str]:
    """Return "passed", "skipped" or "failed" for each test of a file; none if it takes too long."""
    environment = os.environ | {MODE: mode, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary, "report.xml")
        # The package's own settings for pytest are switched off where they add checks.
        options = ["-q", "-p", "scripts.run_suites", "-p", "no:cacheprovider", "-o", "addopts="]
        options += ["-o", "filterwarnings="]
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", file]
        given: dict = {"cwd": folder, "env": environment, "timeout": limit}
        try:
            subprocess.run(command, check=False, capture_output=True, **given)
            cases = list(ElementTree.parse(report).iter("testcase"))
        except (subprocess.TimeoutExpired, FileNotFoundError):
            return {}
    found: dict[str, str] = {}
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {child.tag for child in case}
        failed = "failed" if kinds & {"failure", "error"} else None
        found[name] = failed or ("skipped" if "skipped" in kinds else found.get(name, "passed"))
    return found


def main() -> None:
    """Print the table of the files that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS")
    arguments = parser.parse_args()
    print("| file | passed, failed in mode ONNX | in the default mode |\n|---|---|---|")
    for file in arguments.files:
        of_modes = [results(arguments.folder, file, mode, arguments.limit) for mode in MODES]
        counts = [Counter(found.values()) for found in of_modes]
        cells = [f"{c['passed']}, {c['failed']}" if c else "not done" for c in counts]
        print(f"| `{file}` | {' | '.join(cells)} |", flush=True)
        ours, others = of_modes
        for name in sorted(ours.keys() & others.keys()):
            if ours[name] != others[name]:
                print(f"  {name}: {ours[name]}, {others[name]}", flush=True)


if __name__ == "__main__":
    main()
