"""The table of PyTensor expressions that define the operations ONNX lacks."""

from collections.abc import Callable

from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorVariable

Definition = Callable[..., TensorVariable]

DEFINITIONS: dict[type[Op], Definition] = {}


def define(op_type: type[Op]) -> Callable[[Definition], Definition]:
    """Register a PyTensor expression as the definition of an Op.

    The expression is converted as written, without PyTensor's rewrites, into one model-local ONNX
    function per dtype, named after the Op.

    Parameters
    ----------
    op_type
        Class of the Op. For a scalar Op the expression receives one 0-d tensor for each input, of
        float32 or float64, and uses elementwise operations only, so that the function works for
        every rank.

    Examples
    --------
    >>> from pytensor.scalar.basic import Sqr
    >>> from pytensor_onnx import define
    >>> from pytensor_onnx.functions.registry import DEFINITIONS
    >>> @define(Sqr)
    ... def sqr(x):
    ...     return x * x
    >>> DEFINITIONS.pop(Sqr) is sqr
    True
    """

    def register(definition: Definition) -> Definition:
        DEFINITIONS[op_type] = definition
        return definition

    return register
