"""Tapes run on several kinds of machines, whose results have equal bits."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from native.build import FLAGS, OF_RUNTIME
from tests.native.damaged_tapes import Seed

ROOT = Path(__file__).parents[2]
ZIG = (sys.executable, "-m", "ziglang", "cc", "-target")


@dataclass(frozen=True)
class Machine:
    """A kind of machine.

    Attributes
    ----------
    name
        Name in tables.
    compiler
        Command that compiles for it.
    emulator
        Command before the program that this machine cannot run itself.
    narrow
        Whether the program uses the vectors that all its processors have.
    """

    name: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...] = ()
    narrow: bool = False

    @property
    def is_here(self) -> bool:
        """Whether this machine has the compiler and the emulator."""
        needed = [self.compiler[0], *self.emulator[:1]]
        return all(shutil.which(x) for x in needed)


MACHINES = (
    Machine("x86-64, AVX2", ("cc",)),
    Machine("x86-64, SSE2", ("cc",), narrow=True),
    Machine("arm64", (*ZIG, "aarch64-linux-musl"), ("qemu-aarch64",)),
    Machine("Windows", (*ZIG, "x86_64-windows-gnu"), ("wine",)),
)
"""Kinds of machines beside WebAssembly; Debian's qemu-user and wine emulate the last two."""


def build(machine: Machine, folder: Path) -> Path:
    """Build `run_tapes.c` for a machine."""
    sources = [x for x in sorted((ROOT / "native").glob("*.c")) if x.name not in OF_RUNTIME]
    sources.append(ROOT / "tests/native/run_tapes.c")

    def object_of(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        subprocess.run([*machine.compiler, *FLAGS, "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(object_of, sources))
    program = folder / "run_tapes.exe"
    subprocess.run([*machine.compiler, *objects, "-o", program, "-lm"], check=True)
    return program


def run(machine: Machine, program: Path, seeds: Sequence[Seed]) -> list[list[np.ndarray]]:
    """Return the outputs of tapes, of none where a tape is refused."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outputs"
        command = [*machine.emulator, str(program), str(file), *["narrow"] * machine.narrow]
        messages = b"".join(seed.message() for seed in seeds)
        subprocess.run(command, input=messages, stdout=subprocess.DEVNULL, check=True)
        return _outputs(file.read_bytes())


def _outputs(content: bytes) -> list[list[np.ndarray]]:
    """Read the file of outputs, in which two zeros are after those of a tape."""
    found: list[list[np.ndarray]] = [[]]
    at = 0
    while at < len(content):
        dtype, size = struct.unpack_from("<qq", content, at)
        at += 16 + size
        if dtype:
            kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
            found[-1].append(np.frombuffer(content[at - size : at], kind))
        else:
            found.append([])
    return found[:-1]


def digest(arrays: Sequence[Any]) -> str:
    """Return the SHA-256 of arrays, in which all NaN are one: processors differ in their bits."""
    made = hashlib.sha256()
    for array in arrays:
        x = np.array(array)
        if x.dtype.kind == "f":
            x[np.isnan(x)] = np.nan
        made.update(x.tobytes())
    return made.hexdigest()
