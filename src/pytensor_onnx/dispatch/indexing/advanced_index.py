"""Split an advanced index into a basic one that selects a view, and arrays on the axes of the view.

If the arrays are adjacent, their axes replace the indexed ones, otherwise they come first. A scalar
counts as an array for this rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    flatten_index_variables,
    unflatten_index_variables,
)

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder

_WHOLE = slice(None)


@dataclass(frozen=True)
class IndexArray:
    """Array of integers that indexes one axis, or mask over as many axes as it has."""

    axis: int
    index: ir.Value
    is_mask: bool
    rank: int

    @property
    def axes(self) -> list[int]:
        """The indexed axes."""
        return list(range(self.axis, self.axis + (self.rank if self.is_mask else 1)))


class AdvancedIndex(NamedTuple):
    """Basic index, and arrays for axes of the view that it selects.

    Attributes
    ----------
    idx_list, values, variables
        The basic index in Subtensor's form, and the PyTensor variables of its values.
    arrays
        Arrays in the order of their axes.
    position
        Position of the axes of the arrays in the result.
    """

    idx_list: list[int | slice]
    values: list[ir.Value]
    variables: list[Variable]
    arrays: list[IndexArray]
    position: int

    @property
    def views_all(self) -> bool:
        """Whether the view is the whole array."""
        return all(entry == _WHOLE for entry in self.idx_list)

    @property
    def axes(self) -> list[int]:
        """The axes of the view that arrays index."""
        return [axis for array in self.arrays for axis in array.axes]


def read_index(
    op: AdvancedSubtensor | AdvancedIncSubtensor,
    node: Apply,
    values: Sequence[ir.Value],
    *,
    scalars_as_arrays: bool = False,
) -> AdvancedIndex:
    """Read the index of a node.

    Parameters
    ----------
    op, node
        The Op and its node, whose last inputs are the index.
    values
        Values of these inputs.
    scalars_as_arrays
        Whether scalars become arrays; by default they are part of the basic index.
    """
    inputs = node.inputs[len(node.inputs) - len(values) :]
    entries = unflatten_index_variables(values, op.idx_list)
    basic: list[ir.Value | slice] = []
    basic_variables: list[Variable | slice] = []
    arrays: list[IndexArray] = []
    view_axis = 0
    for entry, variable in zip(
        entries, unflatten_index_variables(inputs, op.idx_list), strict=True
    ):
        if isinstance(entry, slice):
            basic.append(entry)
            basic_variables.append(variable)
            view_axis += 1
        elif variable.type.ndim == 0 and not scalars_as_arrays:
            basic.append(entry)
            basic_variables.append(variable)
        else:
            is_mask = variable.type.dtype == "bool"
            array = IndexArray(view_axis, entry, is_mask, variable.type.ndim)
            arrays.append(array)
            basic += [_WHOLE] * len(array.axes)
            basic_variables += [_WHOLE] * len(array.axes)
            view_axis += len(array.axes)
    idx_list, flat = flatten_index_variables(basic)
    _, flat_variables = flatten_index_variables(basic_variables)
    return AdvancedIndex(idx_list, flat, flat_variables, arrays, _position(entries))


def _position(entries: Sequence[ir.Value | slice]) -> int:
    places = [place for place, entry in enumerate(entries) if not isinstance(entry, slice)]
    if not places or places != list(range(places[0], places[-1] + 1)):
        return 0
    return places[0]


def view_of(build: Builder, node: Apply, index: AdvancedIndex, x: ir.Value) -> ir.Value:
    """Return the view that the basic part of an index selects."""
    if index.views_all:
        return x
    view = Subtensor(index.idx_list).make_node(node.inputs[0], *index.variables)
    return lower_node(build, view, x, *index.values)


def put_view(
    build: Builder, node: Apply, index: AdvancedIndex, x: ir.Value, view: ir.Value
) -> ir.Value:
    """Return an array with the view of an index replaced."""
    if index.views_all:
        return view
    template = Subtensor(index.idx_list).make_node(node.inputs[0], *index.variables)
    op = IncSubtensor(index.idx_list, set_instead_of_inc=True)
    put = op.make_node(node.inputs[0], template.outputs[0].type(), *index.variables)
    return lower_node(build, put, x, view, *index.values)


def lower_node(build: Builder, node: Apply, *values: ir.Value) -> ir.Value:
    """Lower a node outside of the graph, for given values of its inputs."""
    lowered = onnx_funcify(node.op, node, build, *values)
    if not isinstance(lowered, ir.Value):
        raise TypeError(f"{node.op} has more than one result")
    return lowered
