"""Operations of neural networks on arrays (N, C, *S) that PyTensor itself lacks.

Each is a PyTensor Op with an inner graph, so that all backends run and differentiate it, and
exports as one ONNX operator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor_onnx.nn.activations import (
        celu,
        elu,
        gelu,
        hard_sigmoid,
        hard_swish,
        hard_tanh,
        leaky_relu,
        log_softmax,
        mish,
        prelu,
        relu,
        selu,
        sigmoid,
        silu,
        softmax,
        softplus,
        softsign,
        swish,
        thresholded_relu,
    )
    from pytensor_onnx.nn.attending import attention
    from pytensor_onnx.nn.conv import conv1d, conv2d, conv3d
    from pytensor_onnx.nn.conv_forms import causal_conv1d, depthwise_conv2d, separable_conv2d
    from pytensor_onnx.nn.conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
    from pytensor_onnx.nn.dense import linear
    from pytensor_onnx.nn.detection import non_max_suppression
    from pytensor_onnx.nn.dropping import dropout
    from pytensor_onnx.nn.norm import (
        batch_norm,
        batch_norm_train,
        group_norm,
        instance_norm,
        layer_norm,
        rms_norm,
    )
    from pytensor_onnx.nn.pool import (
        avg_pool,
        global_avg_pool,
        global_lp_pool,
        global_max_pool,
        lp_pool,
        max_pool,
    )
    from pytensor_onnx.nn.recurrent import gru, lstm, rnn
    from pytensor_onnx.nn.resizing import resize, upsample
    from pytensor_onnx.nn.rotary import rotary_embedding, rotary_tables

_MODULES = {
    "attention": "attending",
    "avg_pool": "pool",
    "batch_norm": "norm",
    "batch_norm_train": "norm",
    "causal_conv1d": "conv_forms",
    "celu": "activations",
    "conv1d": "conv",
    "conv1d_transpose": "conv_transpose",
    "conv2d": "conv",
    "conv2d_transpose": "conv_transpose",
    "conv3d": "conv",
    "conv3d_transpose": "conv_transpose",
    "depthwise_conv2d": "conv_forms",
    "dropout": "dropping",
    "elu": "activations",
    "gelu": "activations",
    "global_avg_pool": "pool",
    "global_lp_pool": "pool",
    "global_max_pool": "pool",
    "group_norm": "norm",
    "gru": "recurrent",
    "hard_sigmoid": "activations",
    "hard_swish": "activations",
    "hard_tanh": "activations",
    "instance_norm": "norm",
    "layer_norm": "norm",
    "leaky_relu": "activations",
    "linear": "dense",
    "log_softmax": "activations",
    "lp_pool": "pool",
    "lstm": "recurrent",
    "max_pool": "pool",
    "mish": "activations",
    "non_max_suppression": "detection",
    "prelu": "activations",
    "relu": "activations",
    "resize": "resizing",
    "rms_norm": "norm",
    "rnn": "recurrent",
    "rotary_embedding": "rotary",
    "rotary_tables": "rotary",
    "selu": "activations",
    "separable_conv2d": "conv_forms",
    "sigmoid": "activations",
    "silu": "activations",
    "softmax": "activations",
    "softplus": "activations",
    "softsign": "activations",
    "swish": "activations",
    "thresholded_relu": "activations",
    "upsample": "resizing",
}

__all__ = [
    "attention",
    "avg_pool",
    "batch_norm",
    "batch_norm_train",
    "causal_conv1d",
    "celu",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "gelu",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "group_norm",
    "gru",
    "hard_sigmoid",
    "hard_swish",
    "hard_tanh",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "lp_pool",
    "lstm",
    "max_pool",
    "mish",
    "non_max_suppression",
    "prelu",
    "relu",
    "resize",
    "rms_norm",
    "rnn",
    "rotary_embedding",
    "rotary_tables",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "thresholded_relu",
    "upsample",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
