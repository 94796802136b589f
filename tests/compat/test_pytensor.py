"""Names of PyTensor that are not public."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pytensor_onnx.compat import pytensor as compat

SOURCE = Path(compat.__file__).parents[1]


def test_all_names_that_a_version_lacks_are_listed_in_one_error(monkeypatch):
    monkeypatch.setattr(compat, "_missing", ["pytensor.somewhere._gone"])
    with pytest.raises(ImportError, match="lacks") as raised:
        compat.check(["no_pass"], ["BlasOpt", "no_rewrite"], ["local_pow_canonicalize", "no_guard"])
    message = str(raised.value)
    for name in ("somewhere._gone", "pass no_pass", "rewrite no_rewrite", "rewrite no_guard"):
        assert name in message
    assert "BlasOpt" not in message
    assert "pytensor>=" in message


OF_OTHERS = {
    *("_exit", "_getframe"),  # Python
    *("_replace",),  # named tuples
    *("_sess",),  # ONNX Runtime's session
    *("_eval_args",),  # SciPy's splines
    *("_make_initial_point",),  # PyMC's models
    *("_resample_axis",),  # pytensor-ml's layers
}
"""Private names of other libraries than PyTensor, which the package uses."""


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    paths = sorted(SOURCE.rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def own_names() -> set[str]:
    """Return the private names that the package defines."""
    own = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                own |= {node.attr} if node.value.id in ("self", "cls") else set()
    return own


def private_names(tree: ast.Module) -> Iterator[str]:
    """Yield the private names that a module imports from others, or reads by an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith("pytensor_onnx"):
            names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
            yield from filter(is_private, names)
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "setattr"):
            name = getattr(node.args[1], "value", None)
            yield from [name] if is_private(name) else []


@pytest.mark.slow
def test_private_names_of_pytensor_stand_in_one_module():
    known = own_names() | OF_OTHERS
    wrong = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path, tree in trees()
        if path.parent.name != "compat"
        for name in private_names(tree)
        if name not in known and name != "__future__"
    ]
    assert not wrong


@pytest.mark.slow
def test_each_private_name_of_another_library_is_used():
    assert {name for _, tree in trees() for name in private_names(tree)} >= OF_OTHERS
