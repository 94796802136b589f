"""Lowerings of PyTensor Ops to ONNX, by families of operations.

Importing the package imports all modules, which register their lowerings.
"""

from importlib import import_module
from pkgutil import walk_packages

from pytensor_onnx.dispatch.registry.basic import onnx_funcify

for module in walk_packages(__path__, f"{__name__}."):
    import_module(module.name)

__all__ = ["onnx_funcify"]
