"""Register the rewrites that recognise layers of pytensor-ml, in the order in which they run."""

from pytensor.compile.builders import OpFromGraph
from pytensor.scan.op import Scan

from pytensor_onnx.ml.layers.activation_layers import (
    attend_as_one,
    name_activation,
    normalise_as_one,
)
from pytensor_onnx.ml.layers.inlining import inline_gradients, inline_layers
from pytensor_onnx.ml.layers.recurrent_layers import recur_as_one
from pytensor_onnx.ml.layers.spatial import channels_first, slice_gradients
from pytensor_onnx.ml.layers.upsampling import resize_upsampled
from pytensor_onnx.rewriting import register_onnx
from pytensor_onnx.rewriting.engine.walkers import WithOps

for rewrite in (
    resize_upsampled,
    WithOps(recur_as_one, Scan),
    channels_first,
    normalise_as_one,
    # After `channels_first`, which moves padding into convolutions.
    WithOps(slice_gradients, OpFromGraph),
    WithOps(inline_gradients, OpFromGraph),
    attend_as_one,
    inline_layers,
    name_activation,
):
    register_onnx(rewrite, stage="layers")
