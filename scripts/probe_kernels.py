"""Measure which operators a runtime implements for which dtype and opset, and write the table.

    python scripts/probe_kernels.py                      # the installed onnxruntime
    python scripts/probe_kernels.py --web NODE_MODULES   # onnxruntime-web, run by node
    python scripts/probe_kernels.py --join TABLE         # keep what runs in its versions as well

A dtype counts where the model loads and runs and gives the type that the standard asks for, be it
by a kernel, by the operator's function body or by a cast that the runtime inserts. The project's
table of onnxruntime joins the lowest version that pyproject.toml allows and later ones; opsets that
earlier versions refuse are those of the later ones.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx_ir as ir
from probe_models import DTYPES, Trial, trials
from web_runtime import WORKER as WEB_WORKER, encode

OPSETS = range(18, 29)
TABLES = Path(__file__).parents[1] / "src" / "pytensor_onnx" / "targets"
Table = dict[str, dict[int, list[str]]]
"""Dtypes by operator, or variant of it, and by the first opset."""

WORKER = Path(__file__).with_name("probe_worker.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--web", metavar="NODE_MODULES", help="probe onnxruntime-web found there")
    parser.add_argument("--output", type=Path, help="file to write instead of the project's table")
    parser.add_argument("--join", metavar="TABLE", type=Path, help="table of other versions")
    parser.add_argument("--explain", metavar="OP", help="print why calls of this operator fail")
    arguments = parser.parse_args()
    name = "onnxruntime-web" if arguments.web else "onnxruntime"
    command = (
        ["node", str(WEB_WORKER), arguments.web] if arguments.web else [sys.executable, str(WORKER)]
    )
    chosen = [
        t for t in trials(OPSETS) if not arguments.explain or t.key.startswith(arguments.explain)
    ]
    version, failures = run(command, chosen)
    if arguments.explain:
        for trial, failure in zip(chosen, failures, strict=True):
            print(trial.key, trial.dtype.name, trial.opset, failure or "runs")
        return
    path = arguments.output or TABLES / (
        "kernels_web.json" if arguments.web else "kernels_onnxruntime.json"
    )
    versions, table = [version], tabulate(chosen, failures)
    if arguments.join:
        other = json.loads(arguments.join.read_text())
        versions = sorted({*other["versions"], version}, key=_release)
        table = common(table, other["kernels"], last=other["opsets"][1])
    path.write_text(render(name, versions, table))
    if path == TABLES / "kernels_onnxruntime.json":
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from tests.runtimes.operator_accuracy import measure, write_table

        write_table(name, measure(name))


def run(command: list[str], chosen: list[Trial]) -> tuple[str, list[str]]:
    """Run trials in worker processes; a worker that dies fails the trial it was at.

    Returns the runtime's version and, for each trial, why it failed (empty where it did not).
    """
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder, "requests.jsonl")
        requests.write_text(
            "".join(json.dumps(encode(trial.model, trial.inputs)) + "\n" for trial in chosen)
        )
        version = ""
        failures: list[str] = []
        while len(failures) < len(chosen):
            call = [*command, str(requests), str(len(failures))]
            result = subprocess.run(call, capture_output=True, text=True, check=False)
            if not result.stdout:
                raise RuntimeError(f"the worker did not start: {result.stderr}")
            version, *answers = result.stdout.splitlines()
            failures += [json.loads(answer) for answer in answers]
            if result.returncode:
                failures.append(f"process ended with {result.returncode}")
    return version, failures


def tabulate(chosen: Iterable[Trial], failures: Iterable[str]) -> Table:
    """Collect, by row and opset, the dtypes in which every trial ran.

    An operator with variants has a row for each, and one of its own for what all of them share;
    only variants that differ from it are kept. Of equal successive opsets only the first is kept.
    """
    results: dict[tuple[str, int, ir.DataType], bool] = {}
    for trial, failure in zip(chosen, failures, strict=True):
        for key in {trial.key, trial.key.split("[")[0]}:
            place = (key, trial.opset, trial.dtype)
            results[place] = results.get(place, True) and not failure
    table: Table = defaultdict(dict)
    for key in sorted({key for key, _, _ in results}):
        for opset in OPSETS:
            running = [d.numpy().name for d in DTYPES if results.get((key, opset, d))]
            if running != next(reversed(table[key].values()), []):
                table[key][opset] = running
    return _without_equal_variants(table)


def common(table: Table, other: dict[str, dict[str, str]], last: int) -> Table:
    """Return the kernels that two tables share, and those of opsets that the other lacks."""
    joined: Table = {}
    for key in sorted(table.keys() | other):
        rows = [_row(t, key) for t in (table, other)]
        joined[key] = {}
        for opset in OPSETS:
            running = _at(rows[0], opset)
            if opset <= last:
                running = [d for d in running if d in _at(rows[1], opset)]
            if running != next(reversed(joined[key].values()), []):
                joined[key][opset] = running
    return _without_equal_variants(joined)


def _row(table: Mapping[str, Mapping[Any, Any]], key: str) -> dict[int, list[str]]:
    """Return the row of an operator, or of the operator of a variant without one."""
    row = table.get(key) or table.get(key.split("[", maxsplit=1)[0], {})
    return {int(o): d.split() if isinstance(d, str) else d for o, d in row.items()}


def _at(row: dict[int, list[str]], opset: int) -> list[str]:
    return next((row[o] for o in sorted(row, reverse=True) if o <= opset), [])


def _without_equal_variants(table: Table) -> Table:
    return {k: row for k, row in table.items() if "[" not in k or row != table[k.split("[")[0]]}


def _release(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def render(
    runtime: str,
    versions: list[str],
    table: Table,
    dtypes: Iterable[ir.DataType] = DTYPES,
) -> str:
    """Lay the table out with one operator on a line."""
    head = {
        "runtime": runtime,
        "versions": versions,
        "opsets": [OPSETS.start, OPSETS.stop - 1],
        "dtypes": " ".join(d.numpy().name for d in dtypes),
    }
    rows = (
        f"  {json.dumps(key)}: {json.dumps({o: ' '.join(row[o]) for o in row})}"
        for key, row in table.items()
    )
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*lines, '"kernels": {\n' + ",\n".join(rows) + "\n}"]) + "\n}\n"


if __name__ == "__main__":
    main()
