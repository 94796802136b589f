"""The native library exists, and switches turn it off."""

import onnxruntime
import pytest

from pytensor_onnx import native


def test_the_installed_package_has_a_library_for_this_machine():
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(native.library()))


@pytest.mark.parametrize(("value", "is_on"), [("0", False), ("1", True), (None, True)])
def test_an_environment_variable_and_an_option_switch_the_kernels_off(monkeypatch, value, is_on):
    monkeypatch.delenv(native.SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(native.SWITCH, value)
    assert native.is_on() is is_on
    assert native.is_on(True)
    assert not native.is_on(False)


def test_the_functions_with_kernels_have_names():
    names = native.function_kernels()
    assert {"Cholesky_lower_float64", "GammaLn_float32_in_blocks"} <= set(names)
    assert "Sigmoid_float32" not in names
    options = onnxruntime.SessionOptions()
    native.register(options, names)
