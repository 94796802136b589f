"""Block-diagonal matrices."""

import pytensor.tensor as pt
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define, own_signature


@define(BlockDiagonal, own_signature)
def block_diagonal(*blocks: TensorVariable) -> TensorVariable:
    """Matrix of the blocks along its diagonal, zeros elsewhere.

    Examples
    --------
    >>> from pytensor_onnx import compile_onnx
    >>> x, y = pt.matrices("x", "y")
    >>> compile_onnx([x, y], pt.linalg.block_diag(x, y))([[1.0, 2.0]], [[3.0]])
    array([[1., 2., 0.],
           [0., 0., 3.]])
    """
    dtype = pt.add(*blocks).type.dtype if len(blocks) > 1 else blocks[0].type.dtype
    width = sum(block.shape[-1] for block in blocks)
    rows, before = [], pt.constant(0, dtype="int64")
    for block in blocks:
        after = width - before - block.shape[-1]
        left, right = (pt.zeros((*block.shape[:-1], size), dtype=dtype) for size in (before, after))
        rows.append(pt.concatenate([left, block.astype(dtype), right], axis=-1))
        before = before + block.shape[-1]
    return pt.concatenate(rows, axis=-2)
