"""Operations of neural networks on arrays (N, C, *S), which PyTensor itself does not have.

Each is a PyTensor Op with an inner graph, so that all backends run and differentiate it, and
exports as the operator that ONNX has for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_onnx.nn.activations import sigmoid, silu, swish
    from pytensor_onnx.nn.conv import conv1d, conv2d, conv3d
    from pytensor_onnx.nn.detection import non_max_suppression
    from pytensor_onnx.nn.norm import batch_norm, batch_norm_train
    from pytensor_onnx.nn.pool import max_pool
    from pytensor_onnx.nn.resizing import resize, upsample

_MODULES = {
    "batch_norm": "norm",
    "batch_norm_train": "norm",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "max_pool": "pool",
    "non_max_suppression": "detection",
    "resize": "resizing",
    "sigmoid": "activations",
    "silu": "activations",
    "swish": "activations",
    "upsample": "resizing",
}

__all__ = [
    "batch_norm",
    "batch_norm_train",
    "conv1d",
    "conv2d",
    "conv3d",
    "max_pool",
    "non_max_suppression",
    "resize",
    "sigmoid",
    "silu",
    "swish",
    "upsample",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
