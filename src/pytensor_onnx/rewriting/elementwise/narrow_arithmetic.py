"""Compute arithmetic of float32 numbers in float32 if a float64 result is rounded at once.

A float64 number in a loss (``np.sqrt(2 * np.pi)``) makes part of its gradient float64. The casts
between the parts would hide cancelling factors from PyTensor's rewrites, as in ``exp(x) * (1 /
exp(x))``.
"""

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import add, mul, neg, sub, true_div

from pytensor_onnx.rewriting.engine.predicates import applies, only_client
from pytensor_onnx.rules import rewrites_nodes

NARROW, WIDE = "float32", "float64"


@rewrites_nodes(
    [Elemwise],
    family="elementwise",
    purpose="correctness",
    identity="float32(float64(x) * float64(y)) = x * y",
    requires="one operation on float32 numbers, so equal bit for bit",
    ensures="no casts hide factors that cancel, such as exp(x) and 1 / exp(x)",
)
def narrow_arithmetic(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Compute one sum, product or quotient of float32 numbers in float32.

    The result is equal bit for bit: float64 has more than twice the digits of float32.
    """
    if not _is_cast(node, WIDE, NARROW):
        return None
    (wide,) = node.inputs
    inner = wide.owner
    if inner is None or inner.op not in (add, sub, mul, true_div, neg) or len(inner.inputs) > 2:
        return None
    if only_client(fgraph, wide) is None:
        return None
    if inner.op == true_div and isinstance(inner.inputs[1], Constant):
        # In float32 the division would become a product with a rounded reciprocal.
        return None
    operands = [_narrow(x) for x in inner.inputs]
    if any(x is None for x in operands):
        return None
    return [inner.op(*operands)]


def _narrow(x: Variable) -> Variable | None:
    """Return the float32 variable or constant that equals a float64 one."""
    if isinstance(x, Constant):
        with np.errstate(over="ignore"):
            narrow = np.asarray(x.data, NARROW)
        return constant(narrow) if np.array_equal(narrow, x.data) else None
    if x.owner is not None and _is_cast(x.owner, NARROW, WIDE):
        return x.owner.inputs[0]
    return None


def _is_cast(node: Apply, source: str, target: str) -> bool:
    is_cast = applies(node, Cast)
    return is_cast and (node.inputs[0].type.dtype, node.outputs[0].type.dtype) == (source, target)
