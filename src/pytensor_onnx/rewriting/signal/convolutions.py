"""Write convolutions of signals as parts of full ones."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.rewriting.blockwise import blockwise_of
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.signal.convolution_ops import FullConvolution
from pytensor_onnx.rules import rewrites_nodes

_NOT_EMPTY = CheckAndRaise(ValueError, "an array to convolve is empty")
_ONE_MODE = CheckAndRaise(ValueError, "a batch of convolutions has one mode")
_COVERED = CheckAndRaise(
    ValueError,
    "for mode 'valid', one array must be at least as large as the other in every dimension",
)


@rewrites_nodes(
    [Convolve1d, Convolve2d, blockwise_of(Convolve1d | Convolve2d)],
    family="signal",
    purpose="conversion",
    identity="convolve(x, y, 'valid') = part of convolve(x, y, 'full')",
)
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
    x, y, is_full = node.inputs
    if any(v.type.dtype.startswith("complex") for v in (x, y)):
        return None
    axes = op.ndim
    sizes = [(x.shape[axis], y.shape[axis]) for axis in range(-axes, 0)]
    x = _NOT_EMPTY(x, *(size > 0 for pair in sizes for size in pair))
    result = Blockwise(FullConvolution(axes))(x, y)
    known = get_underlying_scalar_constant_value(is_full, raise_not_constant=False)
    if not (isinstance(known, np.ndarray) and known):
        is_full = _common_mode(is_full) if isinstance(known, Variable) else pt.constant(known)
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


def _common_mode(is_full: Variable) -> TensorVariable:
    """Return the mode of all signals of a batch, whose results have one shape."""
    if isinstance(is_full.type, ScalarType):
        return pt.tensor_from_scalar(is_full)
    if all(is_full.type.broadcastable):
        return is_full.squeeze()
    return _ONE_MODE(is_full.all(), pt.eq(is_full.any(), is_full.all()) | pt.eq(is_full.size, 0))
