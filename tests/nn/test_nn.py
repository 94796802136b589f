from importlib import import_module
from pkgutil import iter_modules

from pytensor_onnx import nn


def test_no_module_hides_a_name_that_it_is_offered_under():
    for module in iter_modules(nn.__path__):
        import_module(f"pytensor_onnx.nn.{module.name}")
    for name in nn.__all__:
        assert callable(getattr(nn, name)), name
