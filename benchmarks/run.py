"""Run all benchmarks and write `docs/project/benchmarks.md`: ``python -m benchmarks.run``.

With ``--compare`` it prints the ratios of the results to those of the page, which stays as it is.
Where PyTorch lives in an environment of its own: ``python -m benchmarks.run --torch PYTHON``.
"""

import argparse
from functools import partial
from pathlib import Path
from textwrap import fill

from benchmarks import (
    call_overhead,
    cnn,
    convolutions,
    draws,
    export_scaling,
    first_result,
    fourier,
    gpt2,
    linalg,
    loops,
    resnet18,
    rules,
    samplers,
    sparse,
    special,
    yolo11n,
)
from benchmarks.comparison import compared, tables_of
from benchmarks.timing import environment

PAGE = Path(__file__).parent.parent / "docs" / "project" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

Each number is the least of several rounds, in which the alternatives take turns, and each round
starts with another one. Turns of networks start with a call that is not counted, as one step of a
training run follows another. Compare numbers of one table only: times differ between machines, and
the claims below a table are ratios of its numbers.

In a clone with the extra `pymc`, Numba and JAX installed, `python -m benchmarks.run` measures all
of this again, and with `--compare` prints the ratios of the new results to the ones below, without
changing this page. Each table also has a script of its own, such as
`python -m benchmarks.call_overhead`.

{environment}
"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch; else this one")
    parser.add_argument(
        "--compare", action="store_true", help="print ratios to the page, and leave it as it is"
    )
    given = parser.parse_args()
    torch, committed = given.torch, tables_of(PAGE.read_text()) if given.compare else {}
    tables = []
    for measure in (
        call_overhead.measure,
        call_overhead.measure_functions,
        call_overhead.measure_weights,
        first_result.measure,
        export_scaling.measure,
        loops.measure,
        rules.measure,
        special.measure,
        draws.measure,
        linalg.measure,
        samplers.measure,
        fourier.measure,
        sparse.measure,
        convolutions.measure,
        yolo11n.measure,
        cnn.measure,
        partial(resnet18.measure, torch=torch),
        partial(gpt2.measure, torch=torch),
        partial(yolo11n.measure_modes, torch=torch),
    ):
        table = measure()
        table.show()
        if given.compare:
            compared(table, committed).show()
        tables.append(table.markdown())
    if given.compare:
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(
        "\n".join(
            [INTRODUCTION.format(environment=fill(f"Measured: {environment()}.", 100)), *tables]
        )
    )


if __name__ == "__main__":
    main()
