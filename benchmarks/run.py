"""Run all benchmarks and write `docs/project/benchmarks.md`: ``python -m benchmarks.run``.

With names of tables it measures these, and leaves the other tables of the page as they are. With
``--compare`` it prints the ratios of the results to those of the page, which stays as it is.
Where PyTorch lives in an environment of its own: ``python -m benchmarks.run --torch PYTHON``.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import fill

from benchmarks import (
    approximations,
    call_overhead,
    cnn,
    convolutions,
    draws,
    elementary,
    export_scaling,
    first_result,
    fourier,
    gpt2,
    linalg,
    loops,
    methods,
    posterior_tapes,
    posteriordb,
    products,
    pymc_calls,
    resnet18,
    rules,
    samplers,
    scoring,
    sparse,
    special,
    tapes,
    threads,
    yolo11n,
)
from benchmarks.comparison import compared, tables_of
from benchmarks.timing import Table, environment

PAGE = Path(__file__).parent.parent / "docs" / "project" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

Each number is the least of several rounds, in which the alternatives take turns, and each round
starts with another one. Turns of networks start with a call that is not counted, as one step of a
training run follows another. Compare numbers of one table only: times differ between machines, and
the claims below a table are ratios of its numbers.

In a clone with the extra `pymc`, Numba and JAX installed, `python -m benchmarks.run` measures all
of this again, and with `--compare` prints the ratios of the new results to the ones below, without
changing this page. With names, such as `python -m benchmarks.run samplers loops`, it measures those
tables, which then say when they were measured if that differs. Each table also has a script of its
own, such as `python -m benchmarks.call_overhead`.

{environment}
"""


def measures(torch: Path | None) -> dict[str, Callable[[], Table]]:
    """Return the functions that measure the tables by their names, in the order of the page."""
    return {
        "call_overhead": call_overhead.measure,
        "functions": call_overhead.measure_functions,
        "weights": call_overhead.measure_weights,
        "densities": pymc_calls.measure_all,
        "first_result": first_result.measure,
        "export_scaling": export_scaling.measure,
        "loops": loops.measure,
        "rules": rules.measure,
        "special": special.measure,
        "elementary": elementary.measure,
        "draws": draws.measure,
        "linalg": linalg.measure,
        "products": products.measure,
        "threads": threads.measure,
        "samplers": samplers.measure,
        "methods": methods.measure,
        "approximations": approximations.measure,
        "tapes": tapes.measure,
        "posterior_tapes": posterior_tapes.measure,
        "posteriordb": posteriordb.measure,
        "scoring": scoring.measure,
        "summaries": scoring.measure_summaries,
        "fourier": fourier.measure,
        "sparse": sparse.measure,
        "convolutions": convolutions.measure,
        "yolo11n": yolo11n.measure,
        "cnn": cnn.measure,
        "resnet18": partial(resnet18.measure, torch=torch),
        "gpt2": partial(gpt2.measure, torch=torch),
        "yolo11n_modes": partial(yolo11n.measure_modes, torch=torch),
    }


def with_tables(page: str, tables: list[Table]) -> str:
    """Return a page with tables in place of those of their titles, or at its end.

    Examples
    --------
    >>> table = Table("Calls", ["way", "µs"], [["mode ONNX", "5.0"]])
    >>> print(with_tables("# Benchmarks\\n\\n## Calls\\n\\nold\\n", [table]))
    # Benchmarks
    <BLANKLINE>
    ## Calls
    <BLANKLINE>
    | way | µs |
    |---|---:|
    | mode ONNX | 5.0 |
    <BLANKLINE>
    """
    introduction, *sections = f"\n{page}".split("\n## ")
    of_title = {section.partition("\n")[0]: f"## {section.rstrip()}\n" for section in sections}
    of_title |= {table.title: f"{table.markdown().rstrip()}\n" for table in tables}
    return "\n".join([introduction.strip() + "\n", *of_title.values()])


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", type=Path, help="a Python that has PyTorch; else this one")
    parser.add_argument(
        "--compare", action="store_true", help="print ratios to the page, and leave it as it is"
    )
    parser.add_argument(
        "tables", nargs="*", help="names of the tables to measure; all unless given"
    )
    given = parser.parse_args()
    every = measures(given.torch)
    if unknown := set(given.tables) - set(every):
        parser.error(f"no table {', '.join(sorted(unknown))}; tables are {', '.join(every)}")
    page, tables = PAGE.read_text(), []
    is_of_page = environment() in " ".join(page.partition("\n## ")[0].split())
    for name in given.tables or every:
        tables.append(every[name]())
        tables[-1].show()
        if given.compare:
            compared(tables[-1], tables_of(page)).show()
        elif given.tables and not is_of_page:
            tables[-1].note = f"{tables[-1].note} Measured: {environment()}.".strip()
    if not given.compare:
        introduction = INTRODUCTION.format(environment=fill(f"Measured: {environment()}.", 100))
        PAGE.write_text(with_tables(page if given.tables else introduction, tables))


if __name__ == "__main__":
    main()
