"""Build the library of kernels with the system's C compiler, or with that of ziglang.

``python native/build.py FOLDER`` writes the machine's own library, with ``--all`` those of all
platforms, and with ``--wasm`` the module of WebAssembly, for which it needs ziglang.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent
MATH = ["-std=c11", "-fvisibility=hidden"]
MATH += ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
FLAGS = [*MATH, "-O3", "-fPIC"]
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

WASM = "tape.wasm"
CORE = "core.wasm"
"""The module of WebAssembly without rare kernels."""
WASM_FLAGS = [*MATH, "-target", "wasm32-wasi", "-msimd128", "-Wno-pass-failed"]
OF_RUNTIME = ("density.c", "draft.c", "functions.c", "region.c", "registration.c")
"""Sources that call ONNX Runtime, or open files, which the module of WebAssembly does without."""
FAST = {"products.c": ["-Os"], "elementwise.c": ["-O2", "-fno-unroll-loops"]}
"""Flags of sources that are fast in the module of WebAssembly; others are small."""
NOT_OF_CORE = ("ciphers.c", "eigen.c", "schur.c", "special.c")
"""Sources that the core lacks."""
SMALLER_IN_CORE = ("elementwise.c", "kernels.c", "linalg.c", "operators.c", "wasm.c")
"""Sources that the core has with the flag IS_CORE."""
WASM_LINK = ["-mexec-model=reactor", "-s", "-Wl,--gc-sections"]
WASM_LINK += ["-Wl,-z,stack-size=1048576", "-Wl,--max-memory=2147483648"]


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
    if _is_new(library):
        return library
    command = compiler()
    if command is None:
        return None
    _compile(command, library)
    return library


def build_wasm(folder: Path) -> list[Path]:
    """Build the modules of WebAssembly unless they are newer than their sources.

    Returns
    -------
    list of Path
        The core and the whole module, empty without ziglang.
    """
    modules = [folder / CORE, folder / WASM]
    if has_wasm(folder):
        return modules
    if not importlib.util.find_spec("ziglang"):
        return []
    sources = [source for source in SOURCES.glob("*.c") if source.name not in OF_RUNTIME]
    flags = {source: FAST.get(source.name, ["-Oz"]) for source in sources}
    smaller = {x: [*flags[x], "-DIS_CORE"] for x in sources if x.name in SMALLER_IN_CORE}
    with _parts(modules[0]) as parts:
        whole = _objects(ZIG, WASM_FLAGS, flags, parts)
        other = _objects(ZIG, WASM_FLAGS, smaller, parts, "-core")
        without = {Path(name).stem for name in (*NOT_OF_CORE, *SMALLER_IN_CORE)}
        core = [x for x in whole if x.stem not in without] + other
        for objects, module in zip((core, whole), modules, strict=True):
            made = parts / module.name
            subprocess.run([*ZIG, *WASM_FLAGS, *WASM_LINK, *objects, "-o", made], check=True)
            made.replace(module)
    return modules


def has_wasm(folder: Path) -> bool:
    """Return whether a folder has modules of WebAssembly that are newer than their sources."""
    return all(_is_new(folder / name) for name in (CORE, WASM))


def _is_new(made: Path) -> bool:
    """Return whether a file is newer than all sources."""
    given = [*SOURCES.glob("*.[ch]"), *SOURCES.glob("*.inc"), Path(__file__)]
    return made.exists() and made.stat().st_mtime > max(x.stat().st_mtime for x in given)


def build_all(folder: Path) -> list[Path]:
    """Build the libraries of all platforms by ziglang, without symbols."""
    libraries = []
    for name, target in PLATFORMS.items():
        library = folder / f"kernels-{name}{_extension(name.split('-')[0])}"
        _compile([*ZIG, "-target", target, "-s"], library)
        libraries.append(library)
    return libraries


def _compile(command: list[str], library: Path) -> None:
    with _parts(library) as folder:
        made = folder / library.name
        libraries = [] if library.suffix == ".dll" else ["-lm", "-lpthread"]
        sources: dict[Path, list[str]] = {source: [] for source in sorted(SOURCES.glob("*.c"))}
        objects = _objects(command, FLAGS, sources, folder)
        subprocess.run([*command, "-shared", *objects, "-o", made, *libraries], check=True)
        made.replace(library)


@contextmanager
def _parts(target: Path) -> Iterator[Path]:
    """Yield a folder beside a file, from which the file moves to its place when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        yield Path(folder)


def _objects(
    command: list[str],
    flags: list[str],
    sources: Mapping[Path, list[str]],
    folder: Path,
    suffix: str = "",
) -> list[Path]:
    """Compile sources side by side, each with flags of its own beside those of all."""

    def object_of(source: Path) -> Path:
        target = folder / f"{source.stem}{suffix}.o"
        own = [*flags, *sources[source]]
        subprocess.run([*command, *own, "-c", source, "-o", target], check=True)
        return target

    # The largest source takes half of the time, so it goes first.
    ordered = sorted(sources, key=lambda source: source.name != LONGEST)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(object_of, ordered))


def _extension(system: str = sys.platform) -> str:
    return {"win32": ".dll", "darwin": ".dylib"}.get(system, ".so")


if __name__ == "__main__":
    if "--wasm" in sys.argv:
        print(*build_wasm(Path(sys.argv[1])) or ["no ziglang: no module of WebAssembly"], sep="\n")
    elif "--all" in sys.argv:
        print(*build_all(Path(sys.argv[1])), sep="\n")
    else:
        print(build(Path(sys.argv[1])) or "no C compiler: no library")
