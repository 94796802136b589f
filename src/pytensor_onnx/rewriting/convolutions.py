"""Write convolutions of signals as parts of full ones."""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.signal import FullConvolution

_NOT_EMPTY = CheckAndRaise(ValueError, "an array to convolve is empty")
_COVERED = CheckAndRaise(
    ValueError,
    "for mode 'valid', one array must be at least as large as the other in every dimension",
)


@node_rewriter([Convolve1d, Convolve2d, Blockwise])
def convolve_fully(fgraph: FunctionGraph, node: Apply) -> list[TensorVariable] | None:
    """Convolve fully, and take the part where one array covers the other in mode ``valid``.

    Examples
    --------
    >>> from pytensor.tensor.signal import convolve1d
    >>> node = convolve1d(pt.vector("x"), pt.vector("y"), mode="full").owner
    >>> convolve_fully.transform(None, node)[0].owner.op
    Blockwise{FullConvolution{axes=1}, (n0),(k0)->(o0)}
    """
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    if not isinstance(op, Convolve1d | Convolve2d):
        return None
    x, y, is_full = node.inputs
    if any(v.type.dtype.startswith("complex") for v in (x, y)) or not _is_single(is_full):
        return None
    axes = op.ndim
    sizes = [(x.shape[axis], y.shape[axis]) for axis in range(-axes, 0)]
    x = _NOT_EMPTY(x, *(size > 0 for pair in sizes for size in pair))
    result = Blockwise(FullConvolution(axes))(x, y)
    if not (isinstance(is_full, Constant) and is_full.data.all()):
        is_full = (
            pt.tensor_from_scalar(is_full) if isinstance(is_full.type, ScalarType) else is_full
        )
        is_full = is_full.squeeze()
        covers = pt.all([n >= k for n, k in sizes]), pt.all([n <= k for n, k in sizes])
        result = _COVERED(result, is_full | covers[0] | covers[1])
        parts = [
            slice(
                pt.switch(is_full, 0, pt.minimum(n, k) - 1),
                pt.switch(is_full, n + k - 1, pt.maximum(n, k)),
            )
            for n, k in sizes
        ]
        result = result[(..., *parts)]
    return [node.outputs[0].type.filter_variable(result, allow_convert=True)]


def _is_single(is_full: TensorVariable) -> bool:
    """Return whether all signals of a batch have one mode."""
    return isinstance(is_full.type, ScalarType) or all(is_full.type.broadcastable)
