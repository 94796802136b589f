"""Build the library of kernels with the system's C compiler, or with that of ziglang.

``python native/build.py FOLDER`` writes the machine's own library, with ``--all`` those of all
platforms, for which it needs ziglang.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ["-std=c11", "-O3", "-fPIC", "-fvisibility=hidden"]
FLAGS += ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
LONGEST = "elementwise.c"
ZIG = [sys.executable, "-m", "ziglang", "cc"]

PLATFORMS = {
    "linux-x86_64": "x86_64-linux-gnu.2.17",
    "linux-aarch64": "aarch64-linux-gnu.2.17",
    "darwin-x86_64": "x86_64-macos.11.0",
    "darwin-arm64": "aarch64-macos.11.0",
    "win32-amd64": "x86_64-windows-gnu",
}
"""Targets of ziglang by the platforms of wheels, named as Python names them."""


def library_name() -> str:
    """Return the name of the library for this machine, without an extension."""
    return f"kernels-{sys.platform}-{platform.machine().lower()}"


def compiler() -> list[str] | None:
    """Return the command of a C compiler, None without one."""
    if found := os.environ.get("CC") or shutil.which("cc"):
        return found.split()
    if importlib.util.find_spec("ziglang"):
        return ZIG
    return None


def build(folder: Path) -> Path | None:
    """Build the library unless it is newer than its sources; None without a compiler."""
    library = folder / f"{library_name()}{_extension()}"
    given = [*SOURCES.glob("*.[ch]"), *SOURCES.glob("*.inc"), Path(__file__)]
    if library.exists() and library.stat().st_mtime > max(x.stat().st_mtime for x in given):
        return library
    command = compiler()
    if command is None:
        return None
    _compile(command, library)
    return library


def build_all(folder: Path) -> list[Path]:
    """Build the libraries of all platforms by ziglang, without symbols."""
    libraries = []
    for name, target in PLATFORMS.items():
        library = folder / f"kernels-{name}{_extension(name.split('-')[0])}"
        _compile([*ZIG, "-target", target, "-s"], library)
        libraries.append(library)
    return libraries


def _compile(command: list[str], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as temporary:
        made = Path(temporary) / library.name
        libraries = [] if library.suffix == ".dll" else ["-lm"]

        def object_of(source: Path) -> Path:
            target = Path(temporary) / f"{source.stem}.o"
            subprocess.run([*command, *FLAGS, "-c", source, "-o", target], check=True)
            return target

        # The largest source takes half of the time, so it goes first.
        sources = sorted(SOURCES.glob("*.c"), key=lambda source: source.name != LONGEST)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(object_of, sources))
        subprocess.run([*command, "-shared", *objects, "-o", made, *libraries], check=True)
        made.replace(library)


def _extension(system: str = sys.platform) -> str:
    return {"win32": ".dll", "darwin": ".dylib"}.get(system, ".so")


if __name__ == "__main__":
    if "--all" in sys.argv:
        print(*build_all(Path(sys.argv[1])), sep="\n")
    else:
        print(build(Path(sys.argv[1])) or "no C compiler: no library")
