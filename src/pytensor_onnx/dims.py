"""Dimensions of values, and what is known of the sizes that integer values hold.

A dimension is an int, the name of a dimension whose size is known at run time, or None. Equal
names mean equal sizes. A product of named dimensions is named after its factors: ``2*n*m``; a sum
after its terms: ``n+1``.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

Dim = int | str | None
Dims = tuple[Dim, ...]

CHECKED = "checked"
"""Where the metadata of a value holds the one that it equals, unless a check fails."""

SIZE = "size"
"""Where the metadata of a number holds the dimension that it gave its name."""

_LONGEST_SHAPE = 64
_LONGEST_NAME = 60
_OPEN = 2**62
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


def dims_of(value: ir.Value | None) -> Dims | None:
    """Return the dimensions of a value, or None where even its rank is unknown."""
    if value is None or value.shape is None:
        return None
    return tuple(d.value if isinstance(d, ir.SymbolicDim) else d for d in value.shape.dims)


def broadcast(first: Dims, second: Dims) -> Dims:
    """Return the dimensions of two broadcast operands.

    Examples
    --------
    >>> broadcast(("n", 1), (3,))
    ('n', 3)
    """
    rank = max(len(first), len(second))
    padded = [(1,) * (rank - len(dims)) + tuple(dims) for dims in (first, second)]
    return tuple(_broadcast_dim(a, b) for a, b in zip(*padded, strict=True))


def _broadcast_dim(a: Dim, b: Dim) -> Dim:
    if b in (a, 1):
        return a
    if a == 1:
        return b
    if isinstance(a, int) and a != 1:
        return a
    if isinstance(b, int) and b != 1:
        return b
    return None


def product_dim(dims: Sequence[Dim]) -> Dim:
    """Return the product of dimensions, None where one of them is unknown.

    Examples
    --------
    >>> product_dim([2, 3]), product_dim(["n", 2, "m"]), product_dim(["n", 0]), product_dim([])
    (6, '2*m*n', 0, 1)
    >>> product_dim(["n+1", 2]), quotient_dim(["2*(n+1)"], [2])
    ('2*(n+1)', 'n+1')
    """
    coefficient, names = 1, Counter[str]()
    for dim in dims:
        if dim is None:
            return None
        number, factors = _factors(dim)
        coefficient, names = coefficient * number, names + factors
    return _dim(coefficient, names)


def sum_dim(dims: Sequence[Dim]) -> Dim:
    """Return the sum of dimensions, None where one is unknown or the name would be too long.

    Examples
    --------
    >>> sum_dim([2, 3]), sum_dim(["n", 1]), sum_dim(["n+1", "m", 2]), sum_dim(["2*n", 1])
    (5, 'n+1', 'm+n+3', None)
    """
    number, names = 0, list[str]()
    for dim in dims:
        if dim is None or (isinstance(dim, str) and ("*" in dim or "[" in dim)):
            return None
        if isinstance(dim, int):
            number += dim
            continue
        terms = dim.split("+")
        number += sum(int(term) for term in terms if term.isdecimal())
        names += [term for term in terms if not term.isdecimal()]
    if not names:
        return number
    name = "+".join([*sorted(names), *([str(number)] if number else [])])
    return name if len(name) <= _LONGEST_NAME else None


def is_empty_with(dim: Dim, others: Sequence[Dim]) -> bool:
    """Return whether one of some dimensions is known to be empty where this one is.

    Examples
    --------
    >>> is_empty_with("n", ["m", "n"]), is_empty_with("m+n", ["n", 3]), is_empty_with("n", ["m+n"])
    (True, True, False)
    """
    if not isinstance(dim, str):
        return False
    terms = [dim] if "*" in dim or "[" in dim else [dim, *dim.split("+")]
    return any(term in others for term in terms)


def is_positive(dim: Dim) -> bool:
    """Return whether a dimension is known not to be empty.

    Examples
    --------
    >>> is_positive(2), is_positive("n+1"), is_positive("n"), is_positive(0)
    (True, True, False, False)
    """
    if isinstance(dim, str):
        return "*" not in dim and "[" not in dim and dim.rpartition("+")[2].isdecimal()
    return dim is not None and dim > 0


def quotient_dim(whole: Sequence[Dim], parts: Sequence[Dim]) -> Dim:
    """Return what is left of a product of dimensions when some of its factors are taken away.

    Examples
    --------
    >>> quotient_dim(["n", 2, 6], ["n", 4]), quotient_dim(["n", 2], [3]), quotient_dim([0], [0])
    (3, None, None)
    """
    product, divisor = product_dim(whole), product_dim(parts)
    if product is None or divisor is None:
        return None
    (a, names), (b, taken) = _factors(product), _factors(divisor)
    if b == 0 or a % b or taken - names:
        return None
    return _dim(a // b, names - taken)


def slice_dim(dim: str, start: int, stop: int, step: int) -> Dim:
    """Return the size of a slice along a named dimension, None where it would be too long a name.

    Examples
    --------
    >>> slice_dim("n", 0, -1, 1), slice_dim("n", 1, 2**63 - 1, 2), slice_dim("n", 0, -7, -3)
    ('n[:-1]', 'n[1::2]', 'n[0:-7:-3]')
    """
    if "*" in dim or "+" in dim or len(dim) > _LONGEST_NAME:
        return None
    bounds = [str(bound) if -_OPEN < bound < _OPEN else "" for bound in (start, stop)]
    is_open = start == 0 and step > 0
    return f"{dim}[{'' if is_open else bounds[0]}:{bounds[1]}{f':{step}' if step != 1 else ''}]"


def _factors(dim: int | str) -> tuple[int, Counter[str]]:
    if isinstance(dim, int):
        return dim, Counter()
    first, *rest = (factor.strip("()") for factor in dim.split("*"))
    return (int(first), Counter(rest)) if first.isdecimal() else (1, Counter([first, *rest]))


def _dim(coefficient: int, names: Counter[str]) -> int | str:
    factors = sorted(names.elements())
    if not factors or coefficient == 0:
        return coefficient
    if len(factors) > 1 or coefficient != 1:
        factors = [f"({factor})" if "+" in factor else factor for factor in factors]
    return "*".join(factors if coefficient == 1 else [str(coefficient), *factors])


def constant_ints(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a constant integer value, or None where it is not constant.

    Examples
    --------
    >>> constant_ints(ir.Value(const_value=ir.tensor([1, 2])))
    [1, 2]
    """
    if value is None or value.const_value is None:
        return None
    return [int(i) for i in np.atleast_1d(value.const_value.numpy())]


def sizes_in(value: ir.Value | None) -> Dims | None:
    """Return what is known of the elements of an integer value of rank 0 or 1, as dimensions.

    Parameters
    ----------
    value
        A shape, a size, or what was computed from such.

    Returns
    -------
    tuple
        For each element: its value, the dimension whose size it is, or None. None in place of the
        tuple if even the number of elements is unknown.

    Examples
    --------
    >>> from pytensor_onnx.builder import Builder
    >>> from pytensor_onnx.scope import ModelScope
    >>> onnx = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
    >>> sizes_in(onnx.Concat(onnx.Shape(x), onnx.ints([-1]), axis=0))
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
    """Return whether two integer values are known to hold the same sizes.

    Examples
    --------
    >>> from pytensor_onnx.builder import Builder, ModelScope
    >>> onnx = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", "n", "m"))
    >>> same_sizes(onnx.size(x, 0), onnx.size(x, 1)), same_sizes(onnx.size(x, 0), onnx.size(x, 2))
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
    pairs = zip(first, second, strict=True)
    return tuple(
        None if any(isinstance(size, int) and size < 0 for size in pair) else sum_dim(pair)
        for pair in pairs
    )


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
