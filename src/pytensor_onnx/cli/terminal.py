"""Output on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pytensor_onnx.cli.demo import DigitsResult
    from pytensor_onnx.cli.inspection import ImportInspection, Inspection
    from pytensor_onnx.exporting.files.file_latency import Latency
    from pytensor_onnx.exporting.files.optimized_files import FileComparison
    from pytensor_onnx.pymc.calibration import Calibration


def printable(text: Any) -> str:
    r"""Escape the characters of a text that a terminal does not print.

    These include escape sequences and characters that change the direction of a line. Line ends
    stay, and tabs become spaces.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    return _escaped(str(text).replace("\t", "    "), kept="\n")


def _escaped(text: str, kept: str = "") -> str:
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode()
        for character in text
    )


def plain(text: Any) -> Text:
    """Return a text to print without markup and escape sequences."""
    from rich.text import Text

    return Text(printable(text))


def one_line(text: Any) -> str:
    """Return a printable text with escaped line ends and tabs."""
    return _escaped(str(text))


def duration(seconds: float) -> str:
    """Return a time with three digits, in seconds or in a smaller unit.

    Examples
    --------
    >>> duration(4.2e-6), duration(0.0234), duration(61.0)
    ('4.2 µs', '23.4 ms', '61 s')
    """
    factor, unit = (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")
    value = seconds * factor
    return f"{value:.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]] = ()) -> Table:
    """Return a table of plain texts, with a header if a column has a name."""
    from rich.table import Table

    table = Table(*columns, title=plain(title), title_justify="left", show_header=any(columns))
    for column in table.columns[1:]:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def terminal_width() -> int | None:
    """Return the width of the terminal, None if the output goes to a file or to a program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(*parts: Any) -> None:
    """Print tables, and texts without markup and escape sequences."""
    for part in parts:
        if isinstance(part, str):
            print(printable(part))
        else:
            from rich.console import Console

            Console().print(part)


def print_json(data: Any) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2))


def inspection_tables(found: Inspection) -> list[Table]:
    """Return the tables of the contents of a file: an overview, operators, and functions if any."""
    sets = ", ".join(f"{one_line(k)} {v}" for k, v in found.operator_sets.items())
    metadata = [f"{one_line(k)}: {one_line(v)[:200]}" for k, v in found.metadata.items()]
    rows = [
        ("inputs", "\n".join([*_lines(found.inputs), *_lines(found.defaults, ", with a default")])),
        ("outputs", "\n".join(_lines(found.outputs))),
        ("state", "\n".join(f"{one_line(k)} -> {one_line(v)}" for k, v in found.state.items())),
        ("operator sets", f"{sets}; IR version {found.ir_version}"),
        ("made by", one_line(found.producer)),
        ("test vectors", "\n".join(_lines(found.test_vectors))),
        ("metadata", "\n".join(metadata)),
        ("nodes", f"{found.nodes:,}"),
        ("constants", f"{found.constants:,}, {found.constant_bytes:,} bytes"),
        ("file size", f"{found.file_bytes:,} bytes"),
    ]
    tables = [
        make_table(found.file, "", "", rows=[row for row in rows if row[1]]),
        make_table("operators", "operator", "count", rows=_rows(found.operators)),
    ]
    if found.functions:
        tables.append(make_table("functions", "function", "nodes", rows=_rows(found.functions)))
    return tables


def import_tables(found: ImportInspection) -> list[Table | str]:
    """Return the table of an imported file's variables, or of the obstacles to its import."""
    if not found.obstacles:
        parts = {"inputs": found.inputs, "outputs": found.outputs}
        texts = [(name, "\n".join(_lines(part))) for name, part in parts.items()]
        return [make_table(f"from_onnx imports {found.file}", "", "", rows=texts)]
    rows = [
        (one_line(x.kind), f"{x.count:,}", one_line(x.reason), one_line(x.instead))
        for x in found.obstacles
    ]
    title = f"stops the import of {found.file}"
    table = make_table(title, "operator", "count", "reason", "instead", rows=rows)
    return [table, *([f"It is imported by {found.call}"] if found.call else [])]


def calibration_table(found: Calibration) -> Table:
    """Return the table of the p-values of the ranks, a row for each variable."""
    rows = []
    for name, p_values in found.p_values.items():
        places = "" if p_values.ndim == 0 else f"{p_values.size:,} elements"
        rows.append((name, places, f"{p_values.min():.3g}" if p_values.size else ""))
    return make_table("calibration", "variable", "", "least p-value", rows=rows)


def comparison_table(found: FileComparison) -> Table:
    """Return the table of a file and the optimized one, with their ratios."""
    pairs = {"latency": found.seconds, "bytes": found.bytes, "nodes": found.nodes}
    texts = {"latency": duration, "bytes": "{:,}".format, "nodes": "{:,}".format}
    rows = [
        (name, *map(texts[name], pair), f"{pair[1] / max(pair[0], 1e-9):.2f}")
        for name, pair in pairs.items()
    ]
    if found.difference is not None:
        rows.append(("difference of results", "", f"{found.difference:.1e}", ""))
    return make_table("optimized", "", "before", "after", "ratio", rows=rows)


def latency_table(latencies: Sequence[Latency]) -> Table:
    """Return the table of the latencies of sessions, one row each."""
    rows = [
        (
            name,
            *map(duration, (x.median_seconds, x.p90_seconds, x.p99_seconds, x.least_seconds)),
            f"{x.runs:,}",
        )
        for name, x in zip(session_names(latencies), latencies, strict=True)
    ]
    return make_table("latency", "", "median", "90 %", "99 %", "least", "runs", rows=rows)


def latency_lines(latencies: Sequence[Latency]) -> list[str]:
    """Return a line for each session on its start and its inputs."""
    return [
        f"{name}: loads in {duration(x.load_seconds)}, first run "
        f"{duration(x.first_seconds)}, {x.inputs}"
        for name, x in zip(session_names(latencies), latencies, strict=True)
    ]


def session_names(latencies: Sequence[Latency]) -> list[str]:
    """Return the names of sessions: file, and threads and provider where given.

    Sessions that are given several times have a number.
    """
    keys = [(x.file, x.threads, x.provider) for x in latencies]
    names = []
    for i, (file, threads, provider) in enumerate(keys):
        number = f" ({keys[: i + 1].count(keys[i])})" if keys.count(keys[i]) > 1 else ""
        of_threads = "" if threads is None else f", threads {threads}"
        of_provider = "" if provider == "cpu" else f", {provider}"
        names.append(f"{one_line(file)}{number}{of_threads}{of_provider}")
    return names


def digits_table(result: DigitsResult) -> Table:
    """Return the table of the results of the demo."""
    equal = int((result.predictions == result.runtime_predictions).sum())
    largest = float(abs(result.probabilities - result.runtime_probabilities).max())
    table = make_table("handwritten digits", "", "PyTensor", "ONNX Runtime")
    table.add_row(
        "accuracy on the test images",
        f"{(result.predictions == result.labels).mean():.2%}",
        f"{(result.runtime_predictions == result.labels).mean():.2%}",
    )
    n_images = len(result.labels)
    for name, value in (
        ("equal predictions", f"{equal} of {n_images}"),
        ("largest difference of a probability", f"{largest:.1e}"),
        ("operators", ", ".join(result.operators)),
        ("nodes", str(len(result.operators))),
        ("file size", f"{result.path.stat().st_size:,} bytes"),
        ("training", f"{result.train_seconds:.2f} s"),
        ("export and verification", f"{result.export_seconds:.2f} s"),
        ("latency, one image", duration(result.single_seconds)),
        (f"latency, {n_images} images", duration(result.batch_seconds)),
    ):
        table.add_row(name, "", value)
    return table


def _rows(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(one_line(name), str(count)) for name, count in counts.items()]


def _lines(values: Sequence[str], note: str = "") -> list[str]:
    return [f"{one_line(value)}{note}" for value in values]
