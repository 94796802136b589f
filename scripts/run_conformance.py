"""Run the cases of conformance/ in all runtimes that are installed, and write the table of them.

uv run --all-extras --group runtimes python -m scripts.run_conformance [RUNTIME ...]

Each case runs in a process of its own, which has at most half a minute.
"""

import json
import os
import signal
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "conformance")]

from run import HERE, difference, read  # noqa: E402

from tests.page_parts import write_part  # noqa: E402
from tests.runtimes.results import NAMES  # noqa: E402
from tests.runtimes.runtime_calls import RUNTIMES, short  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "conformance.md"
SECONDS = 30


def answer(runtime: str, name: str, relative: float) -> str:
    """Return the problem of a case in this process, nothing if it is right."""
    data = HERE / name / "test_data_set_0"
    model = onnx.load(HERE / name / "model.onnx")
    # A runtime may refuse arrays that it cannot write to.
    inputs = [np.array(read(path)) for path in sorted(data.glob("input_*.pb"))]
    wanted = [read(path) for path in sorted(data.glob("output_*.pb"))]
    feed = dict(zip([x.name for x in model.graph.input], inputs, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        onnx.save(model, file)
        try:
            found = RUNTIMES[runtime](str(file), feed, [x.name for x in model.graph.output])
        except Exception as error:
            return f"refused: {short(str(error)) or type(error).__name__}"
    for i, (array, exact) in enumerate(zip(found, wanted, strict=True)):
        values = np.asarray(array)
        # Runtimes may return integers of 32 bits, and numbers as vectors of one element.
        if values.size == exact.size:
            values = values.reshape(exact.shape)
        if values.dtype.kind == exact.dtype.kind == "i":
            values = values.astype(exact.dtype)
            if relative == 0:
                # A state has words of 32 bits.
                words = values.astype("int64") % 2**32, exact.astype("int64") % 2**32
                problem = difference(*words, relative)
                if problem:
                    return f"wrong: output {i}: {problem}"
                continue
        problem = difference(values, exact, relative)
        if problem:
            return f"wrong: output {i}: {problem}"
    return ""


def in_process(runtime: str, name: str, relative: float) -> str:
    """Return the problem of a case, of a process that may crash or take too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.alarm(SECONDS)
        try:
            os.write(writer, answer(runtime, name, relative).encode()[:4000])
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        # A compiler that the case has started does not end with it.
        os.killpg(child, signal.SIGKILL)
    if os.WIFSIGNALED(status):
        is_late = os.WTERMSIG(status) == signal.SIGALRM
        return f"refused: takes above {SECONDS} s" if is_late else "refused: the process crashes"
    return text if status == 0 else "wrong: outputs that cannot be compared"


def table(results: dict[str, dict[str, str]], cases: dict) -> str:
    """Return the table of right cases by kind, and the messages."""
    kinds = list(dict.fromkeys(case["kind"] for case in cases.values()))
    lines = [
        f"| | {' | '.join(NAMES[name] for name in results)} |",
        "|---" * (len(results) + 1) + "|",
    ]
    for kind in [*kinds, "all"]:
        chosen = [n for n, case in cases.items() if kind in (case["kind"], "all")]
        cells = [f"{sum(not row[n] for n in chosen)}" for row in results.values()]
        lines.append(f"| {kind}, of {len(chosen)} | {' | '.join(cells)} |")
    lines.append("")
    for runtime, row in results.items():
        by_problem: dict[str, list[str]] = {}
        for name, problem in row.items():
            if problem:
                by_problem.setdefault(problem, []).append(name)
        for problem, names in by_problem.items():
            text = problem.replace("<", "‹").replace(">", "›").replace("|", "/")
            lines.append(f"- {NAMES[runtime]}: {text} ({', '.join(names)})")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run all cases and write the table, or print the problems of the runtimes that are named."""
    cases = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    chosen = sys.argv[1:] or [name for name in NAMES if find_spec(name)]
    results: dict[str, dict[str, str]] = {}
    for runtime in chosen:
        find_spec(runtime)
        results[runtime] = {
            name: in_process(runtime, name, case["relative"]) for name, case in cases.items()
        }
        wrong = {name: problem for name, problem in results[runtime].items() if problem}
        print(runtime, len(cases) - len(wrong), json.dumps(wrong, indent=1), flush=True)
    if not sys.argv[1:]:
        write_part(PAGE, "table", table(results, cases))


if __name__ == "__main__":
    main()
