"""Give numbers as many axes as fast broadcasting along axes of size one needs.

ONNX Runtime walks an array of shape (m, n, 1, 1) element by element beside an operand of shape (),
(1,) or (1, 1), which takes 25 to 60 times as long as beside one of shape (1, 1, 1): it skips axes
of size one only as far as both operands have them.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.operators.dims import Dims, dims_of
from pytensor_onnx.operators.entries import ELEMENTWISE
from pytensor_onnx.passes.matching import constant_of, store_constants
from pytensor_onnx.passes.model_pass import model_pass

FEWEST_ELEMENTS = 256
"""Known size of a result from which on a node for the axes of a computed number is no loss."""

_NUMBERS_ONLY = frozenset({"Clip"})
"""Elementwise operators whose further operands must have no axes."""

_Shaped = dict[tuple[ir.Graph | None, ir.Value, int], ir.Value]


@model_pass(
    family="elementwise",
    purpose="speed",
    identity="x * c = x * reshape(c, (1, …, 1))",
    requires="a number beside trailing axes of size one",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def broadcast_numbers(model: ir.Model, scope: ModelScope) -> int:
    """Give numbers one axis more than the result of their operator has trailing axes of size one.

    Parameters
    ----------
    model
        Model to change in place, with its subgraphs.
    scope
        Names and constants of the model.

    Returns
    -------
    int
        Number of operands that were replaced.
    """
    count, shaped = 0, _Shaped()
    for node in list(all_nodes(model.graph)):
        if node.domain or node.op_type not in ELEMENTWISE - _NUMBERS_ONLY:
            continue
        ones = _trailing_ones(dims_of(node.outputs[0]))
        for position, operand in enumerate(node.inputs) if ones else ():
            dims = dims_of(operand)
            if operand is None or dims is None or len(dims) > ones or any(d != 1 for d in dims):
                continue
            key = node.graph if operand.const_value is None else None, operand, ones
            if key not in shaped:
                shaped[key] = _with_axes(operand, ones + 1, node, scope)
            node.replace_input_with(position, shaped[key])
            count += 1
    if count:
        store_constants(model.graph, scope)
    return count


def _trailing_ones(dims: Dims | None) -> int:
    """Return the number of trailing axes of size one, 0 for a result that is small anyway."""
    if dims is None:
        return 0
    ones = next((i for i, dim in enumerate(reversed(dims)) if dim != 1), len(dims))
    known = [dim for dim in dims if isinstance(dim, int)]
    is_small = len(known) == len(dims) and np.prod(known, dtype=float) < FEWEST_ELEMENTS
    return 0 if is_small or ones == len(dims) else ones


def _with_axes(number: ir.Value, rank: int, user: ir.Node, scope: ModelScope) -> ir.Value:
    """Return a number with axes of size one added, before its first user if it is computed."""
    builder = Builder(scope)
    shape = (1,) * rank
    array = constant_of(number)
    if array is not None:
        return builder.constant(array.reshape(shape))
    builder.provenance = dict(user.metadata_props)
    result = builder.Reshape(number, builder.ints(shape))
    result.shape = ir.Shape(shape)
    assert user.graph is not None
    name_values(builder.nodes, scope.names)
    user.graph.insert_before(user, builder.nodes)
    return result
