"""Find the sizes in integer values that are known before the model runs."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import Dims, dims_of, product_dim, sum_dim

CHECKED = "checked"
"""Where the metadata of a value holds the one that it equals, unless a check fails."""

SIZE = "size"
"""Where the metadata of a number holds the dimension that it gave its name."""

BROADCASTS = "onnx_broadcasts"
"""Tag of an input of an imported graph, whose computed axes of one element broadcast as in ONNX."""

SHARED = "shared"
"""Metadata of an input whose values are those of a shared variable that no call updates."""

_LONGEST_SHAPE = 64
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


def constant_ints(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a constant integer value, None for other values.

    Examples
    --------
    >>> constant_ints(ir.Value(const_value=ir.tensor([1, 2])))
    [1, 2]
    """
    if value is None or value.const_value is None:
        return None
    return [int(i) for i in np.atleast_1d(value.const_value.numpy())]


def sizes_in(value: ir.Value | None) -> Dims | None:
    """Return the elements of an integer value of rank 0 or 1 as dimensions.

    Parameters
    ----------
    value
        A shape, a size, or a result computed from them.

    Returns
    -------
    tuple
        For each element: its value, the dimension whose size it is, or None. None in place of the
        tuple if even the number of elements is unknown.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> from pytensor_onnx.graph.scope import ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
    >>> sizes_in(build.Concat(build.Shape(x), build.ints([-1]), axis=0))
    ('n', 3, -1)
    """
    dims = dims_of(value)
    if value is None or dims is None or len(dims) > 1 or value.dtype not in _INTEGERS:
        return None
    if value.const_value is not None:
        return (
            tuple(constant_ints(value) or ()) if value.const_value.size <= _LONGEST_SHAPE else None
        )
    if CHECKED in value.meta:
        return sizes_in(value.meta[CHECKED])
    if SIZE in value.meta:
        return (value.meta[SIZE],)
    node = value.producer()
    rule = None if node is None or node.domain else _SIZE_RULES.get(node.op_type)
    known = None if rule is None or node is None else rule(node)
    if known is not None:
        return known
    length = dims[0] if dims else 1
    return (None,) * length if isinstance(length, int) and length <= _LONGEST_SHAPE else None


def same_sizes(first: ir.Value, second: ir.Value) -> bool:
    """Return whether two integer values are known to be equal.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", "n", "m"))
    >>> rows, columns, pages = (build.size(x, axis) for axis in range(3))
    >>> same_sizes(rows, columns), same_sizes(rows, pages)
    (True, False)
    """
    if first.dtype not in _INTEGERS:
        return False
    sizes = sizes_in(first)
    return first is second or (
        sizes is not None and None not in sizes and sizes == sizes_in(second)
    )


def _sizes_of_shape(node: ir.Node) -> Dims | None:
    dims = dims_of(node.inputs[0])
    start, end = node.attributes.get("start"), node.attributes.get("end")
    return (
        None
        if dims is None
        else dims[start.as_int() if start else 0 : end.as_int() if end else None]
    )


def _sizes_of_input(node: ir.Node) -> Dims | None:
    return sizes_in(node.inputs[0])


def _sizes_of_concat(node: ir.Node) -> Dims | None:
    sizes: Dims = ()
    for value in node.inputs:
        part = sizes_in(value)
        if part is None:
            return None
        sizes += part
    return sizes


def _sizes_of_gather(node: ir.Node) -> Dims | None:
    sizes, indices = sizes_in(node.inputs[0]), constant_ints(node.inputs[1])
    if sizes is None or indices is None or any(not -len(sizes) <= i < len(sizes) for i in indices):
        return None
    return tuple(sizes[i] for i in indices)


def _sizes_of_slice(node: ir.Node) -> Dims | None:
    sizes = sizes_in(node.inputs[0])
    bounds = [constant_ints(value) for value in node.inputs[1:]]
    if sizes is None or any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, stop, _, step = [*(bound[0] for bound in bounds if bound), *(0, 1)[len(bounds) - 2 :]]
    return sizes[start:stop:step] if step > 0 else None


def _sizes_of_mul(node: ir.Node) -> Dims | None:
    first, second = sizes_in(node.inputs[0]), sizes_in(node.inputs[1])
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(product_dim(pair) for pair in zip(first, second, strict=True))


def _sizes_of_add(node: ir.Node) -> Dims | None:
    first, second = sizes_in(node.inputs[0]), sizes_in(node.inputs[1])
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(sum_dim(pair) for pair in zip(first, second, strict=True))


def _sizes_of_product(node: ir.Node) -> Dims | None:
    sizes = sizes_in(node.inputs[0])
    return None if sizes is None else (product_dim(sizes),)


_SIZE_RULES: dict[str, Callable[[ir.Node], Dims | None]] = {
    "Shape": _sizes_of_shape,
    "Concat": _sizes_of_concat,
    "Gather": _sizes_of_gather,
    "Slice": _sizes_of_slice,
    "Mul": _sizes_of_mul,
    "Add": _sizes_of_add,
    "ReduceProd": _sizes_of_product,
}
_SIZE_RULES |= dict.fromkeys(("Squeeze", "Unsqueeze", "Identity", "Cast"), _sizes_of_input)
