"""Register mode ``"ONNX"`` and its linker with PyTensor; both load when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytensor.compile.mode import Mode, predefined_modes, register_linker, register_mode
from pytensor.link.basic import JITLinker

from pytensor_onnx.compat.pytensor import accept_in_config


def _late(name: str, base: type) -> Any:
    """Return an object that becomes one of the module of the linker when it is first used.

    Python lets an object change its class if both classes have one base.
    """

    class Late(base):
        def __init__(self) -> None: ...

        def __getattribute__(self, attribute: str) -> Any:
            real = getattr(import_module("pytensor_onnx.running.linker"), name)
            object.__setattr__(self, "__dict__", vars(real))
            object.__setattr__(self, "__class__", type(real))
            return getattr(self, attribute)

        # Python looks these up on the class.
        def __setattr__(self, attribute: str, value: Any) -> None:
            self.__getattribute__("__setattr__")(attribute, value)

        def __repr__(self) -> str:
            return str(self.__getattribute__("__repr__")())

        def __str__(self) -> str:
            return str(self.__getattribute__("__str__")())

        def __reduce_ex__(self, protocol: Any) -> Any:
            return self.__getattribute__("__reduce_ex__")(protocol)

    # The class that the object becomes implements the abstract methods.
    Late.__abstractmethods__ = frozenset()
    return Late()


if "ONNX" not in predefined_modes:
    register_linker("onnx", _late("LINKER", JITLinker))
    register_mode("ONNX", _late("ONNX", Mode))
    accept_in_config("ONNX")
