"""Write in docs/how-to/web.md which kinds of models a tape runs, and why it does not run others.

uv run --all-extras python -m tests.web.tape_kinds
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

from pytensor_onnx.errors import UncoveredError
from tests.page_parts import write_part
from tests.runtimes.portable_models import MODELS
from tests.runtimes.runtime_calls import difference
from tests.web.tapes import run_in_node

TARGET = Path(__file__).parents[2] / "docs/how-to/web.md"


def answer_of(name: str, folder: Path) -> str:
    """Return why a tape does not run a model, or what differs from the session; empty if right."""
    model = MODELS[name]()
    program = model.export("web")
    file = folder / "model.onnx"
    program.save(file)
    names = [str(value.name) for value in program.inputs]
    feed = dict(zip(names, program.conversion.arrays(list(model.values)), strict=True))
    feed |= {state.name: state.value for state in program.conversion.states}
    wanted = dict(zip(program.conversion.output_names, program.session.run(feed), strict=True))
    try:
        [found] = run_in_node(file, folder, feed)
    except UncoveredError as error:
        reasons = str(error).partition("does not cover ")[2].split("; ")
        own = [x for x in reasons if not x.endswith("in a body")] or reasons[:1]
        return ", ".join(re.sub(r": \w+ has no kernel$", "", x) for x in own)
    return found if isinstance(found, str) else difference(found, wanted)


def text_of(answers: dict[str, str]) -> str:
    """Return the lines of the page."""
    right = [name for name, answer in answers.items() if not answer]
    count = f"{len(right)} of {len(answers)} [small models of all kinds](../reference/runtimes.md)"
    lines = [f"A tape runs {count}. The others stay with ONNX Runtime Web:", ""]
    lines += ["| model | nodes that a tape lacks |", "|---|---|"]
    lines += [f"| {name} | {answer} |" for name, answer in answers.items() if answer]
    return "\n".join(lines) + "\n\n"


def main() -> None:
    """Run all models, and write the page."""
    answers = {}
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            answers[name] = answer_of(name, Path(folder))
    write_part(TARGET, "kinds", text_of(answers))
    print(sum(not answer for answer in answers.values()), "of", len(answers))


if __name__ == "__main__":
    main()
