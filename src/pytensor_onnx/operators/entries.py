"""The entries of all operators, and sets of operators with a property."""

from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.operators import (
    elementwise,
    indexing,
    networks,
    reductions,
    shape,
)
from pytensor_onnx.operators.dims import Dims, dims_of
from pytensor_onnx.operators.facts import Attributes, Operands, Operator, Pairs
from pytensor_onnx.operators.inference import defaults_of

_DRAWS = (
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
    "RandomUniformLike",
)
OPERATORS: dict[str, Operator] = {
    **elementwise.OPERATORS,
    **indexing.OPERATORS,
    **networks.OPERATORS,
    **reductions.OPERATORS,
    **shape.OPERATORS,
    "Constant": Operator(cost="view"),
    "If": Operator(cost="view", has_bodies=True),
    "Loop": Operator(cost="view", has_bodies=True, is_sized_by_values=True),
    "Scan": Operator(cost="view", has_bodies=True),
    "SequenceMap": Operator(has_bodies=True),
    **dict.fromkeys(_DRAWS, Operator(is_random=True)),
}
"""The entries of standard operators; other operators are known by their schemas alone."""

_OTHER = Operator()


def entry_of(node: ir.Node) -> Operator:
    """Return the entry of the operator of a node; nothing is known of operators of other domains.

    Examples
    --------
    >>> entry_of(ir.node("Concat", [], {"axis": 0})).moves, entry_of(ir.node("f", [])).moves
    (slice(None, None, None), None)
    """
    return _OTHER if node.domain else OPERATORS.get(node.op_type, _OTHER)


def operators_with(holds: Callable[[Operator], object]) -> frozenset[str]:
    """Return the operators whose entries have a property.

    Examples
    --------
    >>> sorted(operators_with(lambda entry: entry.has_bodies))
    ['If', 'Loop', 'Scan', 'SequenceMap']
    """
    return frozenset(name for name, entry in OPERATORS.items() if holds(entry))


WITH_BODIES = operators_with(lambda entry: entry.has_bodies)
RANDOM = operators_with(lambda entry: entry.is_random)
MOVING = operators_with(lambda entry: entry.moves is not None)
ELEMENTWISE = operators_with(lambda entry: entry.shape is elementwise.broadcasting)
"""Operators that work element by element on broadcast operands."""


def output_dims(op_type: str, inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of the first output of an operator, None without a rule."""
    rule = OPERATORS.get(op_type, _OTHER).shape
    return None if rule is None else rule(inputs, _with_defaults(op_type, attributes))


def equal_sizes(op_type: str, inputs: Operands, attributes: Attributes) -> Pairs:
    """Yield the pairs of dimensions that an operator needs to be equal.

    Parameters
    ----------
    op_type
        Name of the operator.
    inputs
        Its operands, None where one is left out.
    attributes
        Its attributes.

    Examples
    --------
    >>> x, w = ir.val("x", shape=("n", "m")), ir.val("w", shape=(3, "k"))
    >>> list(equal_sizes("MatMul", [x, w], {})), list(equal_sizes("Add", [x, w], {}))
    ([('m', 3)], [])
    """
    rule = OPERATORS.get(op_type, _OTHER).equal
    if rule is None:
        return iter(())
    return rule(list(map(dims_of, inputs)), _with_defaults(op_type, attributes))


def _with_defaults(op_type: str, attributes: Attributes) -> Attributes:
    defaults = defaults_of(op_type)
    return {**defaults, **attributes} if defaults else attributes
