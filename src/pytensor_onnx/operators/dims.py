"""Dimensions: names, sizes, and polynomials of both.

A dimension is an int, a name whose size is known at run time, or None. Equal dimensions have equal
sizes. A `ComputedSize` is a sum of products of other dimensions, or the length of a slice along
one. It is the text that stands for it in a file, but no text is read as a computed size: a name
such as ``"k+1"`` is a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
import onnx_ir as ir


class ComputedSize(str):
    """Size computed from named dimensions; it equals no name of the same text.

    Examples
    --------
    >>> from pytensor_onnx.operators.dims import sum_dim
    >>> sum_dim(["k", 1]), sum_dim(["k", 1]) == "k+1", sum_dim(["k", 1]) == sum_dim([1, "k"])
    (k+1, False, True)
    """

    __slots__ = ()

    # Texts of different sizes differ, since names that are no plain words are quoted in them.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComputedSize) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return str(self)


class Polynomial(ComputedSize):
    """Sum of products of dimensions, with positive coefficients."""

    __slots__ = ("terms",)
    terms: tuple[tuple[tuple[str, ...], int], ...]

    def __new__(cls, *terms: tuple[tuple[str, ...], int]) -> Polynomial:
        """Take terms: the factors of each, and its coefficient."""
        self = super().__new__(cls, "+".join(_product_text(*term) for term in terms))
        self.terms = terms
        return self

    def __getnewargs__(self) -> tuple:
        return self.terms


class SliceLength(ComputedSize):
    """Length of a slice along a dimension; bounds of None are open."""

    __slots__ = ("bounds", "whole")
    whole: str
    bounds: tuple[int | None, int | None, int]

    def __new__(cls, whole: str, start: int | None, stop: int | None, step: int) -> SliceLength:
        """Take the dimension that is sliced, and the bounds."""
        text = f"({whole})" if isinstance(whole, Polynomial) else atom_text(whole)
        bounds = ["" if bound is None else str(bound) for bound in (start, stop)]
        self = super().__new__(cls, f"{text}[{':'.join(bounds)}{f':{step}' if step != 1 else ''}]")
        self.whole, self.bounds = whole, (start, stop, step)
        return self

    def __getnewargs__(self) -> tuple:
        return (self.whole, *self.bounds)


def _product_text(names: tuple[str, ...], coefficient: int) -> str:
    number = [str(coefficient)] if coefficient != 1 or not names else []
    return "*".join([*number, *map(atom_text, names)])


def atom_text(name: str) -> str:
    """Return the text of a dimension within a computed size.

    Examples
    --------
    >>> atom_text("k"), atom_text("k+1")
    ('k', "'k+1'")
    """
    return str(name) if isinstance(name, ComputedSize) or is_plain(name) else repr(name)


@lru_cache(maxsize=4096)
def is_plain(name: str) -> bool:
    """Return whether a name cannot be confused with a computed size.

    Examples
    --------
    >>> is_plain("batch"), is_plain("k+1"), is_plain("3")
    (True, False, False)
    """
    return not (name.isdecimal() or re.search(r"""[+*()\[\]'"]""", name))


Dim = int | str | None
Dims = tuple[Dim, ...]
_Terms = Mapping[tuple[str, ...], int]

_MOST_FACTORS = 16
_OPEN = 2**62


def dims_of(value: ir.Value | None) -> Dims | None:
    """Return the dimensions of a value, None for an unknown rank.

    A negative size, which converters of PaddlePaddle write, is an unknown one.

    Examples
    --------
    >>> dims_of(ir.val("x", shape=(-1, 3, "n")))
    (None, 3, 'n')
    """
    if value is None or value.shape is None:
        return None
    dims = [d if isinstance(d, int) else d.value for d in value.shape.dims]
    return tuple([None if isinstance(d, int) and d < 0 else d for d in dims])


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


def sum_dim(dims: Sequence[Dim]) -> Dim:
    """Return the sum of dimensions, None if one is unknown or the sum may be negative.

    Examples
    --------
    >>> sum_dim([2, 3]), sum_dim(["n", "n"]), sum_dim([sum_dim(["n", 1]), "m", 2])
    (5, 2*n, m+n+3)
    >>> sum_dim([sum_dim(["n", 1]), -1]), sum_dim(["n", -1])
    ('n', None)
    """
    total: _Terms = {}
    for dim in dims:
        if dim is None or len(total) > _MOST_FACTORS:
            return None
        total = _plus(total, _terms(dim))
    return _dim(total)


def product_dim(dims: Sequence[Dim]) -> Dim:
    """Return the product of dimensions, None if one of them is unknown.

    Examples
    --------
    >>> product_dim([2, 3]), product_dim(["n", 2, "m"]), product_dim(["n", 0]), product_dim([])
    (6, 2*m*n, 0, 1)
    >>> product_dim([sum_dim(["n", 1]), 2])
    2*n+2
    """
    product: _Terms = {(): 1}
    for dim in dims:
        if dim is None or len(product) > _MOST_FACTORS:
            return None
        product = _times(product, _terms(dim))
    return _dim(product)


def quotient_dim(whole: Sequence[Dim], parts: Sequence[Dim]) -> Dim:
    """Return the quotient of two products of dimensions, None if it is no dimension.

    Examples
    --------
    >>> quotient_dim(["n", 2, 6], ["n", 4]), quotient_dim(["n", 2], [3]), quotient_dim([0], [0])
    (3, None, None)
    >>> quotient_dim([product_dim([sum_dim(["n", 1]), 2])], [2])
    n+1
    """
    product, divisor = product_dim(whole), product_dim(parts)
    if product is None or divisor is None or divisor == 0:
        return None
    rest, by, quotient = _terms(product), _terms(divisor), dict[tuple[str, ...], int]()
    first = min(by, key=_order)
    while rest:
        names = min(rest, key=_order)
        left, remainder = _without(names, first), rest[names] % by[first]
        if left is None or remainder or rest[names] < 0:
            return None
        quotient[left] = rest[names] // by[first]
        rest = _plus(rest, _times({left: -quotient[left]}, by))
    return _dim(quotient)


def slice_dim(dim: Dim, start: int, stop: int, step: int) -> Dim:
    """Return the length of a slice with the bounds of the operator Slice, None if unknown.

    Examples
    --------
    >>> slice_dim("n", 0, -1, 1), slice_dim("n", 1, 2**63 - 1, 2), slice_dim("n", 0, -7, -3)
    (n[1:], n[1::2], n[0:-7:-3])
    >>> slice_dim(3, 1, 2**63 - 1, 1), slice_dim(sum_dim(["n", 1]), 1, 2**63 - 1, 1)
    (2, 'n')
    """
    forward = step > 0
    from_end = start == 0 or start <= -_OPEN if forward else start == -1 or start >= _OPEN
    to_end = stop >= _OPEN if forward else stop <= -_OPEN
    return _slice(dim, None if from_end else start, None if to_end else stop, step)


def _slice(dim: Dim, start: int | None, stop: int | None, step: int) -> Dim:
    if isinstance(dim, int):
        # A start before the first element is the first one, also on the way to the front.
        first = None if start is None else max(start, -dim)
        return len(range(dim)[first:stop:step])
    if dim is None or any(bound is not None and abs(bound) >= _OPEN for bound in (start, stop)):
        return None
    if (start, stop, step) == (None, None, -1):
        return dim
    if step == 1 and (length := _known_length(dim, start or 0, stop)) is not None:
        return length
    if step == 1 and (start or 0) >= 0 and stop is not None and stop < 0:
        # Slices that leave out as many elements have one name: a[1:] and a[:-1].
        start, stop = (start or 0) - stop, None
    return SliceLength(dim, start, stop, step) if _n_factors(dim) < _MOST_FACTORS else None


def _known_length(dim: str, start: int, stop: int | None) -> Dim:
    """Return the length of a slice with bounds known to lie within the axis, otherwise None."""
    least = _terms(dim).get((), 0)
    if not 0 <= start <= least:
        return None
    if stop is None or stop < 0:
        less = start - (stop or 0)
        return sum_dim([dim, -less]) if less <= least else None
    return max(stop - start, 0) if stop <= least else None


def is_positive(dim: Dim) -> bool:
    """Return whether a dimension is known not to be empty.

    Examples
    --------
    >>> is_positive(2), is_positive(sum_dim(["n", 1])), is_positive("n+1"), is_positive(0)
    (True, True, False, False)
    """
    return dim is not None and _terms(dim).get((), 0) > 0


def is_empty_with(dim: Dim, others: Sequence[Dim]) -> bool:
    """Return whether `dim == 0` is known to imply that one of the other dimensions is zero.

    Examples
    --------
    >>> total = sum_dim(["m", "n"])
    >>> is_empty_with("n", ["m", "n"]), is_empty_with(total, ["n", 3]), is_empty_with("n", [total])
    (True, True, False)
    """
    if not isinstance(dim, str):
        return False
    empty = _terms(dim)
    return any(all(map(partial(_has_factor_in, empty), _terms(o))) for o in others if o is not None)


def _has_factor_in(products: _Terms, names: tuple[str, ...]) -> bool:
    return any(_without(names, factors) is not None for factors in products)


def parts_of(dim: Dim) -> Iterator[str]:
    """Yield the dimensions from which a dimension is computed, recursively.

    Examples
    --------
    >>> list(parts_of(sum_dim(["n", slice_dim("m", 1, 9, 2)])))
    [m[1:9:2], 'm', 'n']
    """
    direct: Sequence[str] = ()
    if isinstance(dim, Polynomial):
        direct = [name for names, _ in dim.terms for name in names]
    elif isinstance(dim, SliceLength):
        direct = [dim.whole]
    for part in direct:
        yield part
        yield from parts_of(part)


def replace_parts(size: ComputedSize, replacement: Callable[[str], Dim]) -> Dim:
    """Replace dimensions in a computed size; return None if its expression becomes too long.

    Examples
    --------
    >>> replace_parts(sum_dim(["n", 1]), {"n": 3}.get), replace_parts(sum_dim(["n", 1]), str.upper)
    (4, N+1)
    """
    if isinstance(size, SliceLength):
        return _slice(replacement(size.whole), *size.bounds)
    assert isinstance(size, Polynomial)
    return sum_dim([product_dim([n, *map(replacement, names)]) for names, n in size.terms])


def _terms(dim: int | str) -> _Terms:
    if isinstance(dim, int):
        return {(): dim} if dim else {}
    return dict(dim.terms) if isinstance(dim, Polynomial) else {(dim,): 1}


def _dim(terms: _Terms) -> Dim:
    """Return a sum of products as a dimension, or None if it may be negative or is too long."""
    if not any(terms):
        return terms.get((), 0)
    if any(n < 0 for n in terms.values()):
        return None
    if sum(_n_factors(name) for names in terms for name in names) > _MOST_FACTORS:
        return None
    [(names, n), *others] = sorted(terms.items(), key=lambda term: _order(term[0]))
    if not others and n == 1 and len(names) == 1:
        return names[0]
    return Polynomial((names, n), *others)


def _n_factors(dim: str) -> int:
    """Return the length of a dimension in names and slices."""
    return 1 + sum(1 for _ in parts_of(dim))


def _plus(first: _Terms, second: _Terms) -> _Terms:
    total = dict(first)
    for names, n in second.items():
        total[names] = total.get(names, 0) + n
    return {names: n for names, n in total.items() if n}


def _times(first: _Terms, second: _Terms) -> _Terms:
    product: _Terms = {}
    for names, n in first.items():
        shifted = {_sorted(names + more): n * m for more, m in second.items()}
        product = _plus(product, shifted)
    return product


def _without(names: tuple[str, ...], factors: tuple[str, ...]) -> tuple[str, ...] | None:
    """Divide a product by factors; return None if the product lacks one of them."""
    rest = list(names)
    for factor in factors:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) < 2 else tuple(sorted(names, key=atom_text))


def _order(names: tuple[str, ...]) -> tuple[int, list[str]]:
    """Order products by the number of factors; multiplying two products keeps their order."""
    return -len(names), [atom_text(name) for name in names]


CHECKED = "checked"
"""Where the metadata of a value holds the one that it equals, unless a check fails."""

SIZE = "size"
"""Where the metadata of a number holds the dimension that it gave its name."""

BROADCASTS = "onnx_broadcasts"
"""Tag of an input of an imported graph, whose computed axes of one element broadcast as in ONNX."""

AS_IN_FILE = "onnx_as_in_file"
"""Tag of an output of an imported graph that is a function of the inputs of its file alone.

Its value is the node that makes maps of the output in the file, if that has one.
"""

ENCODER = "onnx_encoder"
"""Tag of an input of an imported graph that the file makes of strings: the part that does so."""

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
    start, end = (node.attributes.get_int(name, None) for name in ("start", "end"))
    return None if dims is None else dims[start:end]


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
