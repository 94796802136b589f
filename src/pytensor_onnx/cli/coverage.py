"""The command `ops`.

`scripts/make_coverage.py` makes the table from the registry and from recorded tests.
"""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, NoReturn

import click

from pytensor_onnx.cli.arguments_of_commands import with_json
from pytensor_onnx.cli.terminal import print_json, terminal_width
from pytensor_onnx.errors import PyTensorONNXError, did_you_mean

FILE = "coverage.json"
REWRITTEN = "rewritten to other operations"
NO_OPERATOR = "no operator of its own"
SEVERAL = "several operators"
DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64"),
    *("complex64", "complex128"),
)
_FAMILIES = {
    "all": DTYPES[:12],
    "integers": DTYPES[1:9],
    "signed integers": DTYPES[1:5],
    "unsigned integers": DTYPES[5:9],
    "floats": DTYPES[9:12],
    "complex": DTYPES[12:],
}


@dataclass(frozen=True)
class Row:
    """Test results of one Op.

    Attributes
    ----------
    name
        Module and class of the Op.
    dtypes, ranks, shapes
        Dtypes, ranks and kinds of shapes (static, dynamic) of the tested inputs.
    lowering
        Kinds of the lowered form: an operator, a function, several operators, none.
    error
        Largest relative error in graphs of this Op alone, by dtype of the result.
    limits
        Reasons of refused cases.
    tests
        Files of the tests.
    """

    name: str
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    shapes: tuple[str, ...]
    lowering: tuple[str, ...]
    error: dict[str, float]
    limits: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """The coverage table.

    Attributes
    ----------
    rows
        The Ops that are covered, by name.
    uncovered
        The Ops without coverage, with the reason.
    excluded
        Classes of PyTensor that no exported graph contains, with the reason.
    """

    rows: dict[str, Row]
    uncovered: dict[str, str]
    excluded: dict[str, str]


@cache
def load_coverage() -> Coverage:
    """Return the table of the installed package.

    Examples
    --------
    >>> "operator Exp" in load_coverage().rows["pytensor.scalar.basic.Exp"].lowering
    True
    """
    content: dict[str, Any] = json.loads(
        resources.files("pytensor_onnx").joinpath(FILE).read_text(encoding="utf-8")
    )
    return Coverage(
        {name: row_of(name, entry) for name, entry in content["covered"].items()},
        content["uncovered"],
        content["excluded"],
    )


def row_of(name: str, entry: Mapping[str, Any]) -> Row:
    """Return the row of an Op, from its entry in the file."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Row(name=name, **values)


def name_of(op_type: type) -> str:
    """Return the name of a class in the table.

    Examples
    --------
    >>> from pytensor.tensor.math import Dot
    >>> name_of(Dot)
    'pytensor.tensor.math.Dot'
    """
    return f"{op_type.__module__}.{op_type.__qualname__}"


def short_dtypes(dtypes: Sequence[str]) -> str:
    """Return a short text for a set of dtypes.

    Examples
    --------
    >>> short_dtypes(["bool", "float16", "float32", "float64"])
    'bool, floats'
    """
    left, parts = set(dtypes), []
    for family, members in _FAMILIES.items():
        if left.issuperset(members):
            parts.append((DTYPES.index(members[0]), family))
            left -= set(members)
    parts += [(DTYPES.index(dtype), dtype) for dtype in left]
    return ", ".join(text for _, text in sorted(parts))


def select(coverage: Coverage, text: str | None) -> tuple[list[Row], dict[str, str]]:
    """Return the rows, and the reasons of uncovered Ops, whose name contains a text.

    Examples
    --------
    >>> rows, reasons = select(load_coverage(), "softmax")
    >>> [row.name.rpartition(".")[2] for row in rows]
    ['LogSoftmax', 'Softmax']
    """
    wanted = (text or "").lower()
    rows = [row for name, row in coverage.rows.items() if wanted in name.lower()]
    return rows, {
        name: reason
        for name, reason in (coverage.uncovered | coverage.excluded).items()
        if wanted in name.lower()
    }


def short_ranks(ranks: Sequence[int]) -> str:
    """Return a short text for a set of ranks.

    Examples
    --------
    >>> short_ranks([0, 1, 2]), short_ranks([0, 2]), short_ranks([])
    ('0–2', '0, 2', '')
    """
    if len(ranks) > 1 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]}–{ranks[-1]}"
    return ", ".join(map(str, ranks))


def describe_row(row: Row) -> str:
    """Return one line on an Op.

    Examples
    --------
    >>> row = Row("x.Foo", ("int8",), (0, 1), ("static",), ("operator Foo",), {}, (), ())
    >>> describe_row(row)
    'Foo: int8; ranks 0–1; static shapes; operator Foo'
    """
    dtypes, ranks, shapes, lowering, error, refused = cells(row)
    parts = [dtypes, f"ranks {ranks}" if ranks else "", f"{shapes} shapes" if shapes else ""]
    parts += [lowering, f"largest relative error {error}" if error else ""]
    parts += [f"refused: {refused}" if refused else ""]
    return f"{short_name(row)}: {'; '.join(part for part in parts if part)}"


def short_name(row: Row) -> str:
    """Return the class of an Op, with its package where others have classes of the same name.

    Examples
    --------
    >>> rows = load_coverage().rows
    >>> [short_name(rows[f"pytensor.{name}"]) for name in ("tensor.math.Dot", "sparse.math.Dot")]
    ['Dot', 'sparse.Dot']
    """
    packages = {"pytensor.sparse.": "sparse.", "pytensor_onnx.ops.networks.": "nn."}
    prefix = next((short for long, short in packages.items() if row.name.startswith(long)), "")
    return f"{prefix}{row.name.rpartition('.')[2]}"


def cells(row: Row) -> list[str]:
    """Return the table cells of a row: dtypes, ranks, shapes, lowering, error and limits."""
    return [
        short_dtypes(row.dtypes),
        short_ranks(row.ranks),
        ", ".join(row.shapes),
        ", ".join(row.lowering),
        ", ".join(f"{error:.0e} ({d})" if error else f"0 ({d})" for d, error in row.error.items()),
        "; ".join(row.limits),
    ]


def markdown_lines(rows: Sequence[Row], reasons: Mapping[str, str]) -> list[str]:
    """Return the lines of two Markdown tables: covered Ops, and Ops that are not covered.

    Examples
    --------
    >>> row = Row("x.Foo", ("int8",), (0, 1), ("static",), ("operator Foo",), {}, (), ())
    >>> markdown_lines([row], {})[2]
    '| Foo | int8 | 0–1 | static | operator Foo |  |  |'
    """
    columns = ("Op", "dtypes", "ranks", "shapes", "in ONNX", "error", "refused")
    covered = [(short_name(row), *cells(row)) for row in rows]
    tables = _markdown(columns, covered) if covered else []
    others = [(name.removeprefix("pytensor."), reason) for name, reason in reasons.items()]
    gap = [""] if covered and others else []
    return [*tables, *gap, *(_markdown(("not covered", "reason"), others) if others else [])]


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in (columns, *escaped)]
    return [lines[0], f"|{'---|' * len(columns)}", *lines[1:]]


@click.command
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Show what is not covered as well.")
@click.option(
    "--kernels",
    is_flag=True,
    help="Show the operators and functions of the native library instead.",
)
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@with_json
def ops(name: str | None, everything: bool, kernels: bool, markdown: bool, as_json: bool) -> None:
    """List the covered operations of PyTensor.

    Each line has the dtypes, ranks and shapes with which an operation is tested, its form in ONNX,
    the largest relative error, and cases that are refused.
    """
    if kernels:
        _print_kernels(name or "", as_json)
        return
    coverage = load_coverage()
    rows, reasons = select(coverage, name)
    if not rows and not reasons:
        known = {**coverage.rows, **coverage.uncovered, **coverage.excluded}
        _refuse(str(name), [key.rpartition(".")[2] for key in known], "operation of PyTensor")
    shown = reasons if everything or name else {}
    if as_json:
        covered = [asdict(row) for row in rows]
        print_json({"covered": covered, "not_covered": shown})
        return
    if markdown:
        print("\n".join(markdown_lines(rows, shown)))
        return
    lines = [describe_row(row) for row in rows]
    lines += [f"{key.removeprefix('pytensor.')}: not covered; {why}" for key, why in shown.items()]
    _print_wrapped(lines)


def _print_kernels(part: str, as_json: bool) -> None:
    """Print the operators and functions of the native library that have a text in their name."""
    from pytensor_onnx import native
    from pytensor_onnx.kernels.limits import covered_operators

    if native.library() is None:
        raise PyTensorONNXError("the package was built without a C compiler: it has no kernels")
    wanted = part.lower()
    operators = {k: v for k, v in covered_operators().items() if wanted in k.lower()}
    functions = [name for name in native.function_kernels() if wanted in name.lower()]
    if not operators and not functions:
        known = [*covered_operators(), *native.function_kernels()]
        _refuse(part, known, "operator or function of the native library")
    if as_json:
        print_json({"operators": operators, "functions": functions})
        return
    _print_wrapped(
        [
            *(
                f"{k}: {', '.join(dtypes) or 'the dtypes of its bodies'}"
                for k, dtypes in operators.items()
            ),
            *(f"{name}: a function" for name in functions),
        ]
    )


def _refuse(part: str, known: Sequence[str], kind: str) -> NoReturn:
    """Raise for a text that no name has in it, with the most similar name."""
    names = [name.lower() for name in known]
    hint = did_you_mean(part.lower(), names, "without a name, ops lists all")
    raise PyTensorONNXError(f"no {kind} has {part!r} in its name: {hint}")


def _print_wrapped(lines: Sequence[str]) -> None:
    width = terminal_width()
    for line in lines:
        wrapped = textwrap.wrap(line, width, subsequent_indent="    ") if width else [line]
        print("\n".join(wrapped))
