"""Build the library of kernels with the system's C compiler, or with that of ziglang.

``python native/build.py FOLDER`` writes the machine's own library.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ["-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden"]
FLAGS += ["-ffp-contract=off", "-fno-math-errno"]


def library_name() -> str:
    """Return the name of the library for this machine, without an extension."""
    return f"kernels-{sys.platform}-{platform.machine().lower()}"


def compiler() -> list[str] | None:
    """Return the command of a C compiler, None without one."""
    if found := os.environ.get("CC") or shutil.which("cc"):
        return found.split()
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def build(folder: Path) -> Path | None:
    """Build the library unless it is newer than its sources; None without a compiler."""
    library = folder / f"{library_name()}{_extension()}"
    sources = sorted(SOURCES.glob("*.c"))
    given = [*sources, *SOURCES.glob("*.h"), Path(__file__)]
    if library.exists() and library.stat().st_mtime > max(x.stat().st_mtime for x in given):
        return library
    command = compiler()
    if command is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = Path(temporary) / library.name
        libraries = [] if sys.platform == "win32" else ["-lm"]
        subprocess.run([*command, *FLAGS, *sources, "-o", made, *libraries], check=True)
        made.replace(library)
    return library


def _extension() -> str:
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


if __name__ == "__main__":
    print(build(Path(sys.argv[1])) or "no C compiler: no library")
