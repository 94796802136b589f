"""Run tests with the native library built for the sanitizers of the system's C compiler.

``python scripts/sanitize.py [PYTEST ARGUMENT ...]`` takes ``tests/kernels`` without arguments. A
read or write out of bounds, or undefined behaviour, ends the process with a report.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-std=c11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
FLAGS += ["-fno-omit-frame-pointer", *SANITIZERS]
RUN_TIME = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
"""Python and the runtime keep memory until their end, so leaks are not reported."""


def build(folder: Path) -> Path:
    """Build the library with both sanitizers."""
    library = folder / "kernels.so"
    compiler = os.environ.get("CC", "cc").split()

    def object_of(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        subprocess.run([*compiler, *FLAGS, "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(object_of, sorted((ROOT / "native").glob("*.c"))))
    subprocess.run([*compiler, "-shared", *SANITIZERS, *objects, "-o", library, "-lm"], check=True)
    return library


def sanitizer_libraries() -> str:
    """Return the libraries of the compiler that a process loads before all others."""
    compiler = os.environ.get("CC", "cc").split()
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    found = [
        subprocess.check_output([*compiler, f"-print-file-name={name}"], text=True).strip()
        for name in names
    ]
    return ":".join(found)


def run_tests(library: Path, arguments: list[str]) -> int:
    """Run tests in this process with another library."""
    import pytest

    from pytensor_onnx import native

    # The next library that is asked for is this one, in place of the package's own.
    setattr(native, "library", lambda: library)  # noqa: B010
    # Captured output would be lost with the process that a sanitizer ends.
    return int(pytest.main(["-q", "-s", "-p", "no:cacheprovider", *arguments]))


def main() -> int:
    """Build the library, and run tests with it in another process."""
    arguments = sys.argv[1:] or ["tests/kernels"]
    if library := os.environ.get("SANITIZED_LIBRARY"):
        return run_tests(Path(library), arguments)
    with tempfile.TemporaryDirectory() as folder:
        added = {"LD_PRELOAD": sanitizer_libraries(), "SANITIZED_LIBRARY": str(build(Path(folder)))}
        command = [sys.executable, __file__, *arguments]
        environment = {**os.environ, **RUN_TIME, **added}
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
