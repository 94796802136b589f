"""All models of posteriordb: densities, calls and samplers beside NUMBA's and reference draws.

``python -m benchmarks.posteriordb --part density --only NAME ...`` measures a part of some
posteriors; all parts of all of them unless given. Each measurement is a process of its own with
bounded time. Results are kept in ``benchmarks/posteriordb.json``, also between machines, and a run
goes on where an earlier one stopped, unless ``--again``. A run ends with the page of all results
that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import posterior_parts
from benchmarks.posterior_page import found_results, summary, write_page
from benchmarks.posteriors import RESULTS, cloned, measured
from benchmarks.timing import Table

PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "density": {"density": ()},
    "calls": {"calls": ()},
    "sampling": {name: (name,) for name in ("file", "nutpie_onnx", "nutpie_numba")},
}
"""Measurements of each part, and the arguments of their processes."""
PACKED = Path(__file__).with_suffix(".json")
ENVIRONMENT = {
    # No cached code, and no C compiler for the graphs that Python runs.
    "PYTENSOR_FLAGS": "numba__cache=False,cxx=",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def results_of(
    part: str, name: str, checkout: Path, arguments: tuple[str, ...], seconds: int
) -> dict[str, Any]:
    """Return the results of one process, and its error if it fails or takes too long.

    The bound is in seconds of the processor, and in four times as many of the clock.
    """
    processes = get_context("forkserver")
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        given = (str(checkout), name, part, arguments, folder, seconds)
        process = processes.Process(target=posterior_parts.run, args=given)
        process.start()
        process.join(4 * seconds)
        is_late = process.is_alive()
        if is_late:
            process.kill()
            process.join()
        is_late |= process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        paths = [Path(folder) / file for file in ("results", "errors")]
        lines, errors = (path.read_text() if path.exists() else "" for path in paths)
    results: dict[str, Any] = {}
    for line in lines.splitlines():
        results.update(json.loads(line))
    step, taken = results.pop("step", "building the model"), time.time() - start
    if is_late:
        results["error"] = f"{step}: stopped after {seconds} s of the processor"
    elif process.exitcode:
        told = re.findall(r"^[\w.]*(?:Error|Exception): .*$", errors, re.MULTILINE)
        last = told[-1] if told else f"exit code {process.exitcode}"
        results |= {"error": f"{step}: {last}", "traceback": errors[-4000:]}
    return results | {"wall_s": taken, "date": time.strftime("%Y-%m-%d")}


def keep(name: str, part: str, checkout: Path, seconds: int, again: bool) -> None:
    """Take the missing measurements of a part of a posterior, and write them to its file."""
    path = RESULTS / part / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(path.read_text()) if path.exists() else {}
    for title, arguments in PARTS[part].items():
        if title not in found or again:
            found[title] = results_of(part, name, checkout, arguments, seconds)
            path.write_text(json.dumps(found, indent=1))
            print(name, title, _told(found[title]), flush=True)


def unpack_results() -> None:
    """Write the results of the repository to files of their own, where there are none."""
    if not PACKED.exists():
        return
    for part, of_names in json.loads(PACKED.read_text()).items():
        (RESULTS / part).mkdir(parents=True, exist_ok=True)
        for name, found in of_names.items():
            path = RESULTS / part / f"{name}.json"
            if not path.exists():
                path.write_text(json.dumps(found, indent=1))


def pack_results() -> None:
    """Write all results to one file of the repository, with four digits and without tracebacks."""
    packed: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("*/*.json")):
        packed.setdefault(path.parent.name, {})[path.stem] = _short(json.loads(path.read_text()))
    lines = [
        f' "{part}": {{\n'
        + ",\n".join(f'  "{name}": {json.dumps(found)}' for name, found in of_names.items())
        + "\n }"
        for part, of_names in packed.items()
    ]
    PACKED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items() if k != "traceback"}
    if isinstance(value, list):
        return list(map(_short, value))
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _told(results: dict) -> str:
    shown = {k: v for k, v in results.items() if k not in ("traceback", "date", "kernels")}
    return json.dumps(shown)[:300]


def main() -> None:
    """Take the measurements of the arguments, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="all unless given")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of posteriors")
    parser.add_argument("--checkout", type=Path, help="folder; cloned unless given")
    parser.add_argument("--seconds", type=int, default=120, help="limit of a measurement")
    parser.add_argument("--jobs", type=int, default=1, help="measurements at a time")
    parser.add_argument("--again", action="store_true", help="repeat measurements")
    parser.add_argument("--remark", default="", help="sentence on the machine, for the page")
    given = parser.parse_args()
    checkout = given.checkout or cloned()
    unpack_results()
    names = [x for x in measured(checkout) if any(part in x for part in given.only)]
    # Imports are timed with the bytecode that a first one writes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(ENVIRONMENT)
    get_context("forkserver").set_forkserver_preload(["benchmarks.posterior_parts"])
    with ThreadPoolExecutor(given.jobs) as pool:
        for part in given.part or PARTS:
            one = partial(
                keep, part=part, checkout=checkout, seconds=given.seconds, again=given.again
            )
            list(pool.map(one, names))
    pack_results()
    write_page(checkout, given.remark)


def measure() -> Table:
    """Take the missing measurements, write the page, and return its summary."""
    # The processes of measurements import the main module, which is a small one so.
    subprocess.run([sys.executable, "-m", "benchmarks.posteriordb"], check=True)
    return summary(found_results(cloned()))


if __name__ == "__main__":
    main()
