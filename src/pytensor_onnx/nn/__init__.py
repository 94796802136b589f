"""Operations of neural networks on arrays (N, C, *S), which PyTensor itself does not have.

Each is a PyTensor Op with an inner graph, so that all backends run and differentiate it, and
exports as the operator that ONNX has for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_onnx.nn.activations import sigmoid, silu, swish
    from pytensor_onnx.nn.conv import conv1d, conv2d, conv3d
    from pytensor_onnx.nn.pool import max_pool

_MODULES = {
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "max_pool": "pool",
    "sigmoid": "activations",
    "silu": "activations",
    "swish": "activations",
}

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "max_pool",
    "sigmoid",
    "silu",
    "swish",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
