"""Names of PyTensor that are not public."""

import re
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


def test_private_names_of_pytensor_stand_in_one_module():
    private = re.compile(
        r"from pytensor[. ]\S* *import [^(\n]*\b_\w|from pytensor\.\S*\._\w+ import"
    )
    several = re.compile(r"from pytensor\S* import \(([^)]*)\)")
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = private.search(text) or any(
            re.search(r"\b_\w", names) for names in several.findall(text)
        )
        assert not found or path.parent.name == "compat", path
