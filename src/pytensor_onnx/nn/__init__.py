"""Operations of neural networks on arrays ``(N, C, *S)`` that PyTensor itself lacks.

Each is a PyTensor Op with an inner graph, so that all backends run and differentiate it, and
exports as one ONNX operator.
"""

from typing import TYPE_CHECKING

from pytensor_onnx.late_names import late_names

if TYPE_CHECKING:
    from pytensor_onnx.nn.activations import (
        celu as celu,
        elu as elu,
        gelu as gelu,
        hard_sigmoid as hard_sigmoid,
        hard_swish as hard_swish,
        hard_tanh as hard_tanh,
        leaky_relu as leaky_relu,
        log_softmax as log_softmax,
        mish as mish,
        prelu as prelu,
        relu as relu,
        selu as selu,
        sigmoid as sigmoid,
        silu as silu,
        softmax as softmax,
        softplus as softplus,
        softsign as softsign,
        swish as swish,
        thresholded_relu as thresholded_relu,
    )
    from pytensor_onnx.nn.attending import (
        attention as attention,
        rotary_embedding as rotary_embedding,
        rotary_tables as rotary_tables,
    )
    from pytensor_onnx.nn.conv import (
        conv1d as conv1d,
        conv2d as conv2d,
        conv3d as conv3d,
    )
    from pytensor_onnx.nn.conv_transpose import (
        causal_conv1d as causal_conv1d,
        conv1d_transpose as conv1d_transpose,
        conv2d_transpose as conv2d_transpose,
        conv3d_transpose as conv3d_transpose,
        depthwise_conv2d as depthwise_conv2d,
        separable_conv2d as separable_conv2d,
    )
    from pytensor_onnx.nn.dense import dropout as dropout, linear as linear
    from pytensor_onnx.nn.detection import non_max_suppression as non_max_suppression
    from pytensor_onnx.nn.norm import (
        batch_norm as batch_norm,
        batch_norm_train as batch_norm_train,
        group_norm as group_norm,
        instance_norm as instance_norm,
        layer_norm as layer_norm,
        rms_norm as rms_norm,
    )
    from pytensor_onnx.nn.pool import (
        avg_pool as avg_pool,
        global_avg_pool as global_avg_pool,
        global_lp_pool as global_lp_pool,
        global_max_pool as global_max_pool,
        lp_pool as lp_pool,
        max_pool as max_pool,
    )
    from pytensor_onnx.nn.recurrent import (
        gru as gru,
        lstm as lstm,
        rnn as rnn,
    )
    from pytensor_onnx.nn.resizing import (
        resize as resize,
        upsample as upsample,
    )

__getattr__, __all__ = late_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
