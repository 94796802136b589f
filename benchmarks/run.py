"""Run all benchmarks and write `docs/benchmarks.md`: ``python -m benchmarks.run``."""

from pathlib import Path
from textwrap import fill

from benchmarks import call_overhead, cnn, export_scaling, first_result, loops, yolo11n
from benchmarks.timing import environment

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

Each number is the least of several rounds, in which the alternatives take turns; the claim is the
ratio of two numbers of one run, not the number. `python -m benchmarks.run` in a clone, with the
extra `pymc` and Numba installed, measures all of this again; each table also has a script of its
own, such as `python -m benchmarks.call_overhead`.

{environment}
"""


def main() -> None:
    """Measure, print and write."""
    tables = []
    for benchmark in (call_overhead, first_result, export_scaling, loops, yolo11n, cnn):
        table = benchmark.measure()
        table.show()
        tables.append(table.markdown())
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(
        "\n".join(
            [INTRODUCTION.format(environment=fill(f"Measured: {environment()}.", 100)), *tables]
        )
    )


if __name__ == "__main__":
    main()
