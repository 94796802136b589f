"""`late_names`: names of a package that are imported when they are used."""

import importlib
import sys

import pytest

from pytensor_onnx.errors import MissingExtraError


def test_a_missing_package_of_an_extra_is_named_with_its_command(monkeypatch):
    package = importlib.import_module("pytensor_onnx.pymc")
    for module in ("pymc.nutpie", "compat.nutpie_models"):
        monkeypatch.delitem(sys.modules, f"pytensor_onnx.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "nutpie.compiled_pyfunc", None)
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytensor-onnx\[nutpie\]'"):
        _ = package.nutpie_model
