"""Write docs/reference/runtimes.md: all models in the runtimes that are installed.

uv run --all-extras --group runtimes python -m tests.runtimes [MODEL ...]
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.runtimes.operator_accuracy import START
from tests.runtimes.portable_models import MODELS
from tests.runtimes.results import NAMES, OLDER, Results, run_all
from tests.runtimes.wrong_answers import section, shown

TARGET = Path(__file__).parents[2] / "docs/reference/runtimes.md"
INTRODUCTION = """# Runtimes

Small models of all kinds, exported with `target="portable"` and `precision="float32"`, in several
runtimes, compared with the file for ONNX Runtime. `python -m tests.runtimes` writes this page; the
dependency group `runtimes` has the runtimes. *Refused* files end with an error of the runtime,
*wrong* ones with other numbers: [below](#wrong-answers) are the smallest files that show why. tract
and TVM are told the sizes of the arrays that they get; tinygrad needs clang for most of them. A
file of `target="openvino"` or `target="tract"` runs right in its runtime, or the export is refused:
of these models OpenVINO runs all, and tract 28. The module `MNN.tools` runs pip when it is
imported: MNN's converter is called without it, as `_tools.mnnconvert`. OpenVINO is told to compute
in float32, by `core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})`: by itself it takes
bfloat16 where the processor has it.
"""


def main() -> None:
    """Run the models and write the page, or print the results of the models that are named."""
    chosen = sys.argv[1:] or list(MODELS)
    runtimes = [name for name in NAMES if find_spec(name)]
    runtimes[1:1] = [f"onnxruntime=={version}" for version in OLDER]
    with tempfile.TemporaryDirectory() as folder:
        results = run_all(chosen, runtimes, Path(folder))
        wrong = shown(runtimes, Path(folder))
    text = page(results) + "\n" + section(wrong)
    _, start, rest = TARGET.read_text(encoding="utf-8").partition(START)
    # The errors of operators are measured apart.
    text += f"\n{start}{rest}" if start else ""
    if sys.argv[1:]:
        print(text)
    else:
        TARGET.write_text(text, encoding="utf-8")
        print(f"wrote {TARGET.name}: {counts(results)}")


def counts(results: Results) -> dict[str, int]:
    """Return the number of right files by runtime."""
    answers = results.answers
    return {name: sum(not answer for answer in row.values()) for name, row in answers.items()}


def page(results: Results) -> str:
    """Return the page: the table, and the messages below it."""
    answers, versions = results.answers, results.versions
    stems = list(next(iter(answers.values())))
    names = {name: NAMES[name.partition("==")[0]] for name in answers}
    head = ["model", *(f"{names[name]} {versions[name]}" for name in answers)]
    lines = [_row(head), _row(["---"] * len(head))]
    lines += [_row([s, *(_word(answers[name][s]) for name in answers)]) for s in stems]
    right = [f"{count} of {len(stems)}" for count in counts(results).values()]
    lines += [_row(["**right**", *right]), "", "## Messages", ""]
    for name, row in answers.items():
        failed = {stem: answer for stem, answer in row.items() if answer}
        lines += [f"- {names[name]}, {stem}: {_plain(answer)}" for stem, answer in failed.items()]
    return INTRODUCTION + "\n" + "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _word(answer: str) -> str:
    return answer.partition(":")[0] or "right"


def _plain(answer: str) -> str:
    return answer.replace("<", "‹").replace(">", "›").replace("`", "'").replace("*", "×")


if __name__ == "__main__":
    main()
