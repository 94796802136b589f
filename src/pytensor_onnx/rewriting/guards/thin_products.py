"""Keep products of a column and a short row, which runtimes multiply faster than they broadcast."""

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.math import local_dot_to_mul

from pytensor_onnx.rewriting.guards.guarded import guard

SHORT = 256
"""Elements of a row up to which a product takes half the time, the addition of a bias included."""


def is_thin(column: Variable, row: Variable) -> bool:
    """Return whether a product without sums is faster as one of matrices.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> is_thin(pt.col(), pt.tensor(shape=(1, 8))), is_thin(pt.col(), pt.row())
    (True, False)
    """
    width = row.type.shape[-1]
    return (
        1 in (column.type.shape[-1], row.type.shape[0])
        and column.type.shape[0] != 1
        and width is not None
        and 1 < width <= SHORT
    )


def is_no_thin_product(node: Apply) -> bool:
    """Return whether a product without sums is faster as a multiplication.

    A network of one input has such a product in its first layer, and one of one output in the
    gradient of its last.
    """
    is_product = isinstance(node.op, Dot) and node.inputs[1].type.dtype.startswith("float")
    return not (is_product and is_thin(*node.inputs))


GUARDS = (
    guard(
        local_dot_to_mul,
        is_no_thin_product,
        family="products",
        purpose="speed",
        identity="column @ row = column * row",
        requires="no short row of floats",
        measured="docs/measurements.md, Products with a column",
    ),
)
