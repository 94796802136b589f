"""Lower permutations, removals and additions of axes."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import DimShuffle

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder


@onnx_funcify.register(DimShuffle)
def lower_dim_shuffle(op: DimShuffle, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Squeeze the dropped axes, transpose the kept ones, insert the new ones.

    A constant number gets its axes here, since rewrites do not run in the definition of a function.
    """
    if x.const_value is not None and x.const_value.size == 1:
        return build.constant(x.const_value.numpy().reshape((1,) * node.outputs[0].type.ndim))
    kept = sorted(op.shuffle)
    permutation = [kept.index(axis) for axis in op.shuffle]
    dropped = [axis for axis in range(node.inputs[0].type.ndim) if axis not in kept]
    if dropped:
        x = build.Squeeze(x, build.ints(dropped))
    if permutation != sorted(permutation):
        x = build.Transpose(x, perm=permutation)
    if op.augment:
        x = build.Unsqueeze(x, build.ints(op.augment))
    return x
