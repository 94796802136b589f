"""Rewrites of shapes and sizes."""

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from operator import mul as times
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.rewriting.unify import Asterisk, OpPattern
from pytensor.graph.traversal import apply_ancestors
from pytensor.raise_op import Assert
from pytensor.scalar.basic import Abs, Cast, Switch
from pytensor.tensor.basic import (
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    as_tensor_variable,
    cast,
    switch,
)
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.extra_ops import broadcast_shape
from pytensor.tensor.math import Max, Prod, add, eq, int_div, mul, or_
from pytensor.tensor.rewriting.basic import elemwise_of
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Reshape, Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType, integer_dtypes, lscalar
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.predicates import applies, elementwise, made_by, size_of
from pytensor_onnx.rewriting.engine.walkers import ONE_INDEX, matching
from pytensor_onnx.rules import part_of, rewrites_graphs, rewrites_nodes

# Choose the size to which several sizes broadcast pair by pair.
#
# PyTensor takes the largest element of a vector of the sizes, without ones. A choice between two
# sizes that are known to be equal is dropped. The number of elements that several vectors select,
# as the scores of the labels in a loss, is read from these.


@rewrites_nodes(
    [Assert],
    family="shape",
    purpose="size",
    identity="max of (a, b, c) without ones = where(a != 1, a, where(b != 1, b, c))",
    requires="PyTensor's check of broadcast sizes",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def choose_sizes_in_pairs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the broadcast size of several sizes by choices between two."""
    sizes = _broadcast_sizes(node.inputs[0]) if node.op == _broadcast_assert() else None
    if sizes is None:
        return None
    if (selected := _size_of_selected(fgraph, node, sizes)) is not None:
        return [selected]
    conditions = []

    def chosen(first: Variable, second: Variable) -> Variable:
        conditions.append(or_(or_(eq(first, 1), eq(second, 1)), eq(first, second)))
        return switch(eq(first, 1), second, first)

    result = node.op(reduce(chosen, sizes), *conditions)
    copy_stack_trace(node.outputs[0], result)
    return [result]


@cache
def _broadcast_assert() -> Assert:
    """Return the Op that asserts in PyTensor that sizes broadcast."""
    shapes = [(lscalar(),), (lscalar(),)]
    (size,) = broadcast_shape(*shapes, arrays_are_shapes=True, allow_runtime_broadcast=True)
    return size.owner.op


def _size_of_selected(fgraph: FunctionGraph, node: Apply, sizes: list[Variable]) -> Variable | None:
    """Return the size of an array that index arrays of these sizes select, None if there is none.

    The selection fails where the sizes do not broadcast.
    """
    read = [node for size in sizes if (node := made_by(size, Shape_i))]
    if not read or not hasattr(fgraph, "shape_feature"):
        return None
    for user in _users(fgraph, read[-1].inputs[0]):
        for axis, lengths in enumerate(_index_lengths(fgraph, user)):
            is_equal = len(lengths) == len(sizes) and equal_computations(lengths, sizes)
            # An array that has the size in its own computation cannot tell it.
            if is_equal and node not in apply_ancestors(user.inputs):
                return Shape_i(axis)(user.outputs[0])
    return None


def _index_lengths(fgraph: FunctionGraph, node: Apply) -> list[list[Variable]]:
    """Return for each axis of the selected elements the sizes of the index arrays, without ones."""
    indices = node.inputs[1:]
    if not isinstance(node.op, AdvancedSubtensor) or node.op.idx_list != (*range(len(indices)),):
        return []
    if any(index.type.dtype == "bool" for index in indices):
        return []
    rank = max(index.type.ndim for index in indices)
    lengths: list[list[Variable]] = [[] for _ in range(rank)]
    for index in indices:
        for i, is_one in enumerate(index.type.broadcastable):
            if not is_one:
                lengths[rank - index.type.ndim + i].append(fgraph.shape_feature.get_shape(index, i))
    return lengths


def _users(fgraph: FunctionGraph, variable: Variable) -> Iterator[Apply]:
    """Yield the nodes that read an array, or the array with other axes."""
    for user, _ in fgraph.clients[variable]:
        yield user
        if isinstance(user.op, DimShuffle):
            yield from (node for node, _ in fgraph.clients[user.outputs[0]])


def _broadcast_sizes(largest: Variable) -> list[Variable] | None:
    """Return the sizes whose largest, without ones, a variable is; None for other variables."""
    magnitude = elementwise(largest, Abs)
    marked = made_by(magnitude.inputs[0], Max) if magnitude else None
    choice = elementwise(marked.inputs[0], Switch) if marked else None
    made = made_by(choice.inputs[2], MakeVector) if choice else None
    return list(made.inputs) if made else None


class ForgetSizesBesideZero(Feature):
    """Graph feature that corrects PyTensor's static shape of ``reshape(x, (n, 0))`` for an empty x.

    PyTensor divides the number of elements by the known sizes, and treats zero divided by zero as
    zero: rewrites would assume that ``n`` is zero. The types of dependent variables are corrected
    too.

    Examples
    --------
    >>> import warnings
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> n, x = pt.lscalar("n"), pt.vector("x", shape=(0,))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     y = pt.reshape(x, (n, 0))
    >>> y.type.shape
    (0, 0)
    >>> fgraph = FunctionGraph([n, x], [y], clone=False, features=[ForgetSizesBesideZero()])
    >>> y.type.shape
    (None, 0)
    """

    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Correct the nodes of the graph."""
        for node in fgraph.toposort():
            _correct(node)

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        """Correct a new node."""
        _correct(node)


def _correct(node: Apply) -> None:
    if isinstance(node.op, Reshape) and 0 in node.outputs[0].type.shape:
        made = _made_of_unknown_sizes(node)
        if 0 not in made.outputs[0].type.shape:
            return
    elif isinstance(node.op, HasInnerGraph) or not any(map(_may_be_corrected, node.inputs)):
        return
    else:
        made = node.op.make_node(*node.inputs)
    for output, new in zip(node.outputs, made.outputs, strict=True):
        if output.type != new.type:
            output.type = new.type
            forget_sizes_beside_zero.rule.note()


def _made_of_unknown_sizes(node: Apply) -> Apply:
    """Return a reshape whose static shape follows from its sizes argument only."""
    x, sizes = node.inputs
    unknown = TensorType(x.type.dtype, shape=(None,) * x.type.ndim)()
    return node.op.make_node(unknown, sizes)


def _may_be_corrected(variable: Variable) -> bool:
    type_ = variable.type
    return isinstance(type_, TensorType) and 0 in type_.shape and None in type_.shape


@rewrites_graphs(
    family="shape",
    purpose="correctness",
    identity="static shape of reshape(x, s) = s",
    requires="a size of zero beside an unknown size",
    begins_at=("Reshape",),
    measured="docs/project/upstream.md#sizes-beside-a-zero-are-inferred-from-the-number-of-elements",
)
def forget_sizes_beside_zero(fgraph: FunctionGraph) -> None:
    """Correct static shapes in the graph and in later rewrites."""
    fgraph.attach_feature(ForgetSizesBesideZero())


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


@rewrites_nodes(
    [Elemwise],
    family="shape",
    purpose="size",
    identity="f(x[None]) = f(x)[None]",
    requires="an elementwise operation of one operand",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def add_leading_axes_last(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Add leading axes after an elementwise operation of one operand, not before.

    The size by which a mean divides is then a number without axes.
    """
    if len(node.inputs) != 1 or len(node.outputs) != 1:
        return None
    added = made_by(node.inputs[0], DimShuffle)
    if added is None or not added.op.is_left_expand_dims:
        return None
    result = added.op(node.op(*added.inputs))
    copy_stack_trace(node.outputs[0], result)
    return [result]


_READ = OpPattern(Subtensor, idx_list=ONE_INDEX)
_SET = OpPattern(IncSubtensor, idx_list=ONE_INDEX, set_instead_of_inc=True)
_VECTOR = (OpPattern(MakeVector), Asterisk("elements"))
_INDEX = {"pattern": "index", "constraint": lambda x: isinstance(x, Constant)}


def _element(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    position, dtype = int(index.data), node.outputs[0].type.dtype
    return cast(elements[position], dtype) if -len(elements) <= position < len(elements) else None


@rewrites_nodes(
    [Subtensor],
    name="read_one_size",
    family="shape",
    purpose="size",
    identity="cast(vector(a, b), t)[i] = cast((a, b)[i], t), set(v, y, i)[j] = v[j] or y, and "
    "prod(vector(a, b)) = a * b",
    requires="constant i and j; integers",
    begins_at=("Subtensor", "Prod"),
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
@matching(_READ, (elemwise_of(Cast), _VECTOR), _INDEX)
def cast_one_size(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    """Replace an element of a cast vector of scalars by the cast scalar."""
    return _element(node, elements, index)


@part_of(cast_one_size.rule, [Subtensor])
@matching(_READ, _VECTOR, _INDEX)
def read_one_size(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    """Replace an element of a vector of scalars by the scalar."""
    return _element(node, elements, index)


@part_of(cast_one_size.rule, [Subtensor])
@matching(_READ, (_SET, "before", "value", _INDEX | {"pattern": "place"}), _INDEX)
def read_before_replacing(
    node: Apply, before: TensorVariable, value: Variable, place: Constant, index: Constant
) -> Variable | None:
    """Replace an element of a vector with a replaced element by its source.

    PyTensor's shape of a part of a split is a vector of sizes with one replaced.
    """
    wanted, written = int(index.data), int(place.data)
    if wanted < 0 or written < 0:
        return None
    return cast(value, before.type.dtype) if written == wanted else before[wanted]


@part_of(cast_one_size.rule, [Prod])
@matching(OpPattern(Prod), _VECTOR)
def multiply_sizes(node: Apply, elements: Sequence[Variable]) -> Variable | None:
    """Replace the product of a vector of integers by a product of scalars."""
    dtype = node.outputs[0].type.dtype
    is_exact = node.inputs[0].type.dtype == dtype and dtype.startswith(("int", "uint"))
    return reduce(times, [cast(x, dtype) for x in elements]) if is_exact else None


class SizesAsArrays(ShapeFeature):
    """Shape inference of PyTensor whose sizes are always arrays.

    PyTensor infers the Python number one for broadcast axes. In the sizes of a function, rewrites
    fail on it where they expect a sum of arrays.

    Where one operand of an operation has a size that is a number, PyTensor infers an assertion that
    the others have the same. The operation itself checks this, and its static shape has the number.
    """

    def _coerce_shape_element(self, element: Any, node: Apply) -> Variable:
        return as_tensor_variable(super()._coerce_shape_element(_asserted(element), node))


def _asserted(size: Any) -> Any:
    """Return a number about which a size asserts something, or the size itself."""
    inner = size
    while isinstance(inner, Variable) and (made_by(inner, Assert) or keeps_integer(inner.owner)):
        inner = inner.owner.inputs[0]
    return inner.data.item() if inner is not size and isinstance(inner, Constant) else size


# Simplify sizes that are multiplied by a number and divided by it again.
#
# A reshape with an open batch size computes it as the number of elements divided by the other
# sizes. Simplified, it is recognised as the size of the batch, and needs no check.


@rewrites_nodes(
    [int_div],
    family="shape",
    purpose="size",
    identity="(6 * n) // 3 = 2 * n, (n - 3) // 2 = (n + 1) // 2 - 2",
    requires="n is the size of an axis, or computed from sizes",
    measured="benchmarks/NOTES.md, Rules that were merged",
)
def divide_sizes(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Divide multiples of sizes by a number, and sums of sizes where they are not negative.

    Products of other integers could have overflowed. The number of windows needs one division if
    its dividend is never negative.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.tensor("x", shape=(None, 2, 3))
    >>> program = export_onnx([x], x.reshape((-1, 6)).shape[0])
    >>> [node.op_type for node in program.model.graph]
    ['Shape', 'Squeeze']
    """
    dividend, divisor = node.inputs
    if dividend.owner is None or not _is_number(divisor) or node.outputs[0].type.dtype != "int64":
        return None
    numbers = [v for v in dividend.owner.inputs if _is_number(v)]
    sizes = [v for v in dividend.owner.inputs if not _is_number(v)]
    by = int(divisor.data)
    if len(numbers) != 1 or by <= 0:
        return None
    number = int(numbers[0].data)
    if dividend.owner.op == mul and len(sizes) == 1 and size_of(sizes[0]):
        if number % by:
            return None
        return [sizes[0] if number == by else sizes[0] * (number // by)]
    if dividend.owner.op == add and -(2**31) < number < 0 and all(map(_is_made_of_sizes, sizes)):
        times = -(number // by)
        rest = number + times * by
        terms = [*sizes, *([rest] if rest else [])]
        return [(add(*terms) if len(terms) > 1 else terms[0]) // divisor - times]
    return None


def _is_made_of_sizes(x: Variable, depth: int = 8) -> bool:
    if size_of(x):
        return True
    if x.owner is None or not depth or x.owner.op not in (add, mul, int_div):
        return False
    return all(_is_number(v) or _is_made_of_sizes(v, depth - 1) for v in x.owner.inputs)


def _is_number(x: Variable) -> bool:
    return isinstance(x, Constant) and x.type.ndim == 0
