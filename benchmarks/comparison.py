"""Compare tables of results with those of a page: ``python -m benchmarks.run --compare``."""

from collections.abc import Mapping, Sequence

from benchmarks.timing import Table

Cells = Mapping[tuple[str, str], str]
"""Cells by the label of their row and the title of their column."""


def tables_of(page: str) -> dict[str, Cells]:
    """Return the cells of each table of a page by its heading.

    Examples
    --------
    >>> tables_of("## Calls\\n\\n| way | µs |\\n|---|---:|\\n| mode ONNX | 6.3 |\\n")
    {'Calls': {('mode ONNX', 'µs'): '6.3'}}
    """
    tables: dict[str, Cells] = {}
    for section in f"\n{page}".split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        rows = [_cells(line) for line in text.splitlines() if line.startswith("|")]
        if rows:
            tables[title.strip()] = _by_label(rows[0], rows[2:])
    return tables


def compared(table: Table, committed: Mapping[str, Cells]) -> Table:
    """Return a table of the ratios of results to the committed ones, a dash where there is none.

    Examples
    --------
    >>> table = Table("Calls", ["way", "µs"], [["mode ONNX", "5.0"], ["bare", "4"]])
    >>> compared(table, {"Calls": {("mode ONNX", "µs"): "10.0"}}).rows
    [['mode ONNX', '0.50'], ['bare', '–']]
    """
    before = committed.get(table.title, {})
    result = Table(f"{table.title}: ratios to the committed results", list(table.columns))
    labels = _by_label(table.columns, table.rows)
    ratios = {place: _ratio(now, before.get(place)) for place, now in labels.items()}
    for row in table.rows:
        label = _label(table.columns, row)
        cells = [ratios.get((label, column), "") for column in table.columns[1:]]
        result.rows.append([row[0], *(new or old for new, old in zip(cells, row[1:], strict=True))])
    return result


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _by_label(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[tuple[str, str], str]:
    return {
        (_label(columns, row), column): cell
        for row in rows
        for column, cell in zip(columns[1:], row[1:], strict=True)
        if column not in _SIZES
    }


_SIZES = ("nodes", "in ONNX", "after the runtime's optimizer")
"""Columns that describe a row and are no measurement."""


def _label(columns: Sequence[str], row: Sequence[str]) -> str:
    """Return the first cell of a row, and the number of nodes where rows share it."""
    sizes = [cell for column, cell in zip(columns, row, strict=True) if column == "nodes"]
    return " ".join([row[0], *sizes])


def _ratio(now: str, before: str | None) -> str:
    try:
        return f"{float(now) / float(str(before)):.2f}"
    except (ValueError, ZeroDivisionError):
        return "–"
