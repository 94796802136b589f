"""Estimate the work of operators, which decides the number of threads of a session.

Waking a thread that does not spin takes some ten microseconds, and more where the system moves it.
So two threads are faster than one if an operator has about ten million additions and
multiplications or more, and they slow down smaller operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from pytensor_onnx.graph.traversal import bodies_of, usual_nodes
from pytensor_onnx.operators.dims import ComputedSize, Dim, Dims, dims_of, parts_of, replace_parts
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.spell_sizes import computed_sizes_of

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    Product = tuple[int, Dims]

LARGE = 10_000_000
"""Number of arithmetic operations in one operator above which a session uses all threads."""
_OF_ELEMENT, _OF_FUNCTION, _OF_COPY = 10, 200, 4
"""Arithmetic operations as long as an element of an array, a transcendental function, a copy."""


class Work:
    """The work of the operators of a model, by the sizes of its inputs.

    For a size that does not follow from the sizes of inputs, the estimate is the number of elements
    of the largest input, since parts and selections of arrays are smaller. Where a size may depend
    on values, the work may be large.

    Parameters
    ----------
    model
        A model whose dimensions keep their structure, as conversion makes it.

    Attributes
    ----------
    is_large
        Whether an operator is large for all inputs, or has a size that depends on values.
    axes
        Name, input and axis of the dimensions on which the work depends.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.matrix("x", dtype="float64")
    >>> work = Work(export_onnx([x], x @ x.T, verify=False).model)
    >>> work.is_large, [work.exceeds({"x": np.zeros((n, 10))}) for n in (10, 10_000)]
    (False, [False, True])
    """

    def __init__(self, model: ir.Model) -> None:
        named = {
            dim: (dim, x.name or "", axis)
            for x in model.graph.inputs
            for axis, dim in enumerate(dims_of(x) or ())
            if isinstance(dim, str)
        }
        computed = computed_sizes_of(model)
        products: set[Product] = set()
        seen, unbounded = set(named), set[str]()
        for node in usual_nodes(model.graph):
            products |= set(_products(node))
            names = {n for x in node.outputs for n in _names(_read(dims_of(x) or (), computed))}
            if _is_sized_by_values(node):
                unbounded |= names - seen
            seen |= names
        products = {(factor, _read(dims, computed)) for factor, dims in products}
        fixed = {p for p in products if None not in p[1] and not _names(p[1])}
        self._products = products - fixed
        self.axes = [
            named[n] for n in sorted({n for _, d in products for n in _names(d)} & set(named))
        ]
        self.is_large = bool(unbounded) or any(_value(p, {}, 0) > LARGE for p in fixed)

    @property
    def is_fixed(self) -> bool:
        """Whether the work is the same for all inputs."""
        return not self._products

    def exceeds(self, feed: Mapping[str, np.ndarray]) -> bool:
        """Return whether an operator is large for given inputs."""
        sizes = {dim: feed[name].shape[axis] for dim, name, axis in self.axes}
        largest = max((x.size for x in feed.values()), default=1)
        return any(_value(product, sizes, largest) > LARGE for product in self._products)


class Sizes:
    """The sizes of the values of a model where some of its inputs have given shapes.

    Parameters
    ----------
    model
        A model whose dimensions keep their structure, as conversion makes it.
    shapes
        Shapes of inputs by name. The size of the largest is assumed for unknown sizes.
    """

    def __init__(self, model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._computed = computed_sizes_of(model)
        self._largest = max((prod(shape) for shape in shapes.values()), default=1)
        self._sizes = {
            dim: size
            for x in model.graph.inputs
            for dim, size in zip(dims_of(x) or (), shapes.get(x.name or "", ()), strict=False)
            if isinstance(dim, str)
        }

    def elements(self, value: ir.Value | None) -> int:
        """Return the number of elements of a value."""
        dims = dims_of(value)
        return self._largest if dims is None else self._value((1, dims))

    def operations(self, node: ir.Node) -> int:
        """Return the arithmetic operations of a node, as many as an element of an array counts."""
        bodies = [sum(map(self.operations, body)) for body in bodies_of(node)]
        if bodies and node.op_type == "If":
            return max(bodies)
        if bodies:
            # At least one element of each operand in a step.
            return sum(bodies) * max(map(self.elements, (*node.inputs, *node.outputs)))
        if entry_of(node).cost == "copy":
            return _OF_COPY * max(map(self.elements, node.outputs))
        return max(map(self._value, _products(node)), default=0)

    def _value(self, product: Product) -> int:
        factor, dims = product
        return int(_value((factor, _read(dims, self._computed)), self._sizes, self._largest))


def _read(dims: Dims, computed: Mapping[str, ComputedSize]) -> Dims:
    """Return dimensions with computed sizes in place of their texts."""
    return tuple(computed.get(d, d) if isinstance(d, str) else d for d in dims)


def _is_sized_by_values(node: ir.Node) -> bool:
    """Return whether sizes of the results may depend on values."""
    if node.op_type == "Expand" and node.inputs[1] is not None:
        shape = node.inputs[1].producer()
        return shape is None or shape.op_type != "Shape"
    return bool(node.domain) or entry_of(node).is_sized_by_values


def _products(node: ir.Node) -> Iterator[Product]:
    """Yield products of sizes that are lower bounds of the work of a node."""
    cost = entry_of(node).cost
    if cost == "view":
        return
    shapes = [dims_of(x) for x in (*node.inputs, *node.outputs)]
    is_function = bool(node.domain) or cost == "function"
    for dims in filter(None, shapes):
        yield _OF_FUNCTION if is_function else _OF_ELEMENT, dims
    if node.op_type in ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"):
        left, right, out = shapes[0], shapes[1], shapes[-1]
        if left and right and out is not None:
            yield 2, _factors(node, left, right, out)


def _factors(node: ir.Node, left: Dims, right: Dims, out: Dims) -> Dims:
    """Return the sizes whose product is the number of multiplications of a product."""
    match node.op_type:
        case "MatMul":
            return (*out, right[-2] if len(right) > 1 else right[0])
        case "Gemm":
            return (*out, left[0 if attribute_of(node, "transA") else 1])
        case "Conv":
            return (*out, *right[1:])
        case "ConvTranspose":
            return (*left, *right[1:])
    return (*left, *right)


def _names(dims: Dims) -> set[str]:
    """Return the names that dimensions are computed from."""
    parts = {part for dim in dims if isinstance(dim, str) for part in (dim, *parts_of(dim))}
    return {part for part in parts if not isinstance(part, ComputedSize)}


def _value(product: Product, sizes: Mapping[str, int], largest: int) -> int:
    """Return a product of sizes, with the size of the largest input for unknown sizes."""

    def size(dim: Dim) -> Any:
        if isinstance(dim, ComputedSize):
            return replace_parts(dim, size)
        return sizes.get(dim, largest) if isinstance(dim, str) else largest if dim is None else dim

    return product[0] * prod(map(size, product[1]))
