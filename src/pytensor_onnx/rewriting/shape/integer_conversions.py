"""Conversions between integers, through which rewrites look at sizes and numbers of steps."""

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.type import integer_dtypes

from pytensor_onnx.rewriting.engine.predicates import applies


def keeps_integer(node: Apply | None) -> bool:
    """Return whether a node converts an integer to a type that has all of its values.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> n, x = pt.iscalar("n"), pt.dscalar("x")
    >>> [keeps_integer(pt.cast(v, "int64").owner) for v in (n, x)]
    [True, False]
    """
    if node is not None and isinstance(node.op, TensorFromScalar | ScalarFromTensor):
        return True
    if not applies(node, Cast):
        return False
    before, after = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    return before in integer_dtypes and after in integer_dtypes and np.can_cast(before, after)
