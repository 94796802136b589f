"""The coverage table lists every Op of the registry, with the evidence of the tests."""

import importlib
import json
import re
import runpy
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.type import zvector

from pytensor_onnx.cli.app import app
from pytensor_onnx.cli.coverage import REWRITTEN, load_coverage, name_of
from pytensor_onnx.cli.lowered_ops import is_lowered, registered_ops
from pytensor_onnx.encodings import encoding_of

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_coverage.py"


MAKE_COVERAGE = runpy.run_path(str(SCRIPT))
op_classes = cache(MAKE_COVERAGE["op_classes"])


def class_of(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


COVERED = load_coverage().rows


def test_every_registered_op_is_covered():
    covered = [class_of(name) for name in COVERED]
    missing = [
        name_of(op)
        for op in registered_ops()
        if op.__module__.startswith("pytensor.") and not any(issubclass(c, op) for c in covered)
    ]
    assert not missing, f"run scripts/make_coverage.py: {missing} have no row"


def test_every_covered_op_has_a_lowering_and_a_test():
    for name, row in COVERED.items():
        assert REWRITTEN in row.lowering or is_lowered(class_of(name)), (
            f"run scripts/make_coverage.py: {name}"
        )
        assert row.tests, name
        assert row.ranks, name


def test_every_op_of_pytensor_is_in_one_part_of_the_table():
    table = load_coverage()
    names = {name_of(op) for op in op_classes()}
    parts = (table.rows, table.uncovered, table.excluded)
    assert names == set().union(*parts)
    assert sum(map(len, parts)) == len(names)


def is_special(op):
    """Return whether an Op of PyTensor is one of numbers, or of its module of special functions."""
    module = op.__module__
    return (issubclass(op, ScalarOp) and module.startswith("pytensor.")) or (
        module == "pytensor.tensor.special"
    )


@pytest.mark.slow
def test_every_scalar_op_has_a_lowering_or_a_reason_of_its_own():
    missing = {op.__qualname__ for op in op_classes() if is_special(op) and not is_lowered(op)}
    reasons = MAKE_COVERAGE["UNCOVERED"].keys() | MAKE_COVERAGE["EXCLUDED"].keys()
    assert missing <= reasons, "write a lowering or a definition, or a reason in UNCOVERED"


def test_no_scalar_op_with_a_lowering_has_a_reason():
    lowered = {op.__qualname__ for op in op_classes() if is_special(op) and is_lowered(op)}
    assert not lowered & MAKE_COVERAGE["UNCOVERED"].keys(), "take it off UNCOVERED"


def is_linear_algebra(op):
    """Return whether an Op of PyTensor is one of matrices, and not a base class."""
    excluded = MAKE_COVERAGE["EXCLUDED"]
    return op.__module__.startswith("pytensor.tensor.linalg.") and op.__qualname__ not in excluded


def is_rewritten(op):
    """Return whether an Op is replaced by others before the conversion."""
    row = COVERED.get(name_of(op))
    is_recorded = row is not None and REWRITTEN in row.lowering
    return is_recorded or encoding_of(zvector).rewrite_of(object.__new__(op)) is not None


def test_every_op_of_linear_algebra_has_a_lowering_or_a_reason_of_its_own():
    ops = [op for op in op_classes() if is_linear_algebra(op)]
    assert len(ops) > 25
    missing = {op.__qualname__ for op in ops if not is_lowered(op) and not is_rewritten(op)}
    assert missing == MAKE_COVERAGE["UNCOVERED"].keys() & {op.__qualname__ for op in ops}


def run(*arguments):
    return CliRunner().invoke(app, ["ops", *arguments], env={"COLUMNS": "200"})


def test_the_command_prints_a_row():
    printed = run("basic.Exp")
    assert printed.exit_code == 0, printed.output
    assert "operator Exp" in printed.output
    assert "Expm1" in printed.output
    assert "MatrixInverse" not in printed.output


def test_a_row_is_written_for_users():
    assert run("basic.XOR").output.endswith(
        "refused: no dtype has the bits of uint64 and of a signed integer\n"
    )
    assert "sparse.Dot: " in run("sparse").output
    assert not re.search("…|composite", run().output)


def test_a_pipe_takes_one_line_for_each_operation_and_a_terminal_80_columns(monkeypatch):
    lines = run().output.splitlines()
    assert len(lines) == len(load_coverage().rows)
    assert max(map(len, lines)) > 80
    assert all(re.match(r"[\w.]+: ", line) for line in lines)
    exp = next(line for line in lines if line.startswith("Exp: "))
    monkeypatch.setattr("pytensor_onnx.cli.coverage.terminal_width", lambda: 80)
    wrapped = run().output
    assert max(map(len, wrapped.splitlines())) <= 80
    assert "".join(exp.split()) in "".join(wrapped.split())


def test_the_command_prints_json():
    found = json.loads(run("basic.Exp", "--json").output)
    (row,) = [row for row in found["covered"] if row["name"] == "pytensor.scalar.basic.Exp"]
    assert "float64" in row["dtypes"]
    assert "operator Exp" in row["lowering"]
    assert json.loads(run("--json").output)["not_covered"] == {}
    assert json.loads(run("--json", "--all").output)["not_covered"]
    assert json.loads(run("typed_list.basic.Append", "--json").output)["not_covered"]


def test_the_command_prints_a_markdown_table():
    lines = run("basic.Exp", "--markdown").output.splitlines()
    assert lines[0] == "| Op | dtypes | ranks | shapes | in ONNX | error | refused |"
    assert any(line.startswith("| Exp | ") for line in lines)
    assert {line.count("|") - line.count("\\|") for line in lines} == {8}
    assert "| not covered | reason |" in run("typed_list.basic.Append", "--markdown").output


def test_the_command_gives_the_reasons_of_uncovered_ops():
    assert "typed lists" in run("typed_list.basic.Append").output


def test_the_command_shows_uncovered_ops_only_when_asked():
    assert "typed_list" not in run().output
    assert "typed_list" in run("--all").output


def test_the_command_says_that_there_is_no_such_operation():
    assert "nonsense" in str(run("nonsense").exception)
