"""`late_names`: names of a package that are imported when they are used."""

import importlib
import sys

import pytest

from pytensor_onnx.errors import MissingExtraError


def test_a_missing_package_of_an_extra_is_named_with_its_command(monkeypatch):
    package = importlib.import_module("pytensor_onnx.pymc")
    monkeypatch.delitem(sys.modules, "pytensor_onnx.pymc.nutpie", raising=False)
    monkeypatch.setitem(sys.modules, "nutpie.compiled_pyfunc", None)
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pytensor-onnx\[nutpie\]'"):
        _ = package.nutpie_model
