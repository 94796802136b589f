"""Linear resizing of arrays (N, C, L) within their channels."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.passes.matching import attributes_of, constant_of


def may_mix_channels(node: ir.Node) -> bool:
    """Return whether a node is a linear Resize of channels with one spatial axis."""
    if node.op_type != "Resize" or "axes" in node.attributes:
        return False
    is_linear = node.attributes.get_string("mode") == "linear"
    dims = dims_of(node.inputs[0]) or ()
    return is_linear and len(dims) == 3 and dims[1] != 1


def resize_as_image(build: Builder, node: ir.Node) -> ir.Value:
    """Resize the array as images of one row."""
    x, region, *targets = node.inputs
    if x is None or region is not None:
        raise TypeError("a Resize of a region")
    images = build.Unsqueeze(x, build.ints([2]))
    attributes = attributes_of(node)
    with_rows = [None if target is None else _with_one_row(build, target) for target in targets]
    return build.Squeeze(build.Resize(images, None, *with_rows, **attributes), build.ints([2]))


def _with_one_row(build: Builder, target: ir.Value) -> ir.Value:
    """Insert a one for the rows into the scales or sizes of an array (N, C, L)."""
    array = constant_of(target)
    if array is not None:
        return build.constant(np.insert(array, 2, 1))
    parts = [build.Slice(target, build.ints([i]), build.ints([j])) for i, j in ((0, 2), (2, 3))]
    return build.Concat(parts[0], build.cast(build.ints([1]), dtype_of(target)), parts[1], axis=0)
