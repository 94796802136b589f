"""The dimensions of a model: their names, and which of them are equal."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import onnx_ir as ir

from pytensor_onnx.graph.names import Names, snake_case
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.operators.dims import ComputedSize, Dim, dims_of, parts_of, replace_parts
from pytensor_onnx.operators.entries import output_dims


class Dimensions:
    """Names and equal sizes of the dimensions of all graphs of one model.

    The names that users give are recorded before nodes are converted. Each conversion of a node
    records which dimensions are equal, and makes names for the sizes that the node computes. When
    all equal dimensions are known, `finish` gives each axis of each value the best of their names.

    Attributes
    ----------
    names
        Names that are taken.
    """

    def __init__(self) -> None:
        self.names = Names()
        self._equal: dict[str, Dim] = {}
        self._ranks: dict[str, int] = {}
        self._computed: set[str] = set()
        self._compared: dict[frozenset[Dim], tuple[Dim, Dim]] = {}

    def name(self, name: str, rank: int = 2) -> None:
        """Record a name for a dimension, unless it has a name of a higher rank."""
        self._ranks[name] = max(rank, self._ranks.get(name, 0))
        self.names.reserve(name)

    def is_named_well(self, dim: Dim) -> bool:
        """Return whether a dimension has a size, a name not made here, or one derived from others.

        Examples
        --------
        >>> dims = Dimensions()
        >>> dims.name("city")
        >>> dims.is_named_well("city"), dims.is_named_well("dim0")
        (True, False)
        """
        dim = self.canonical(dim)
        return not isinstance(dim, str) or isinstance(dim, ComputedSize) or dim in self._ranks

    def computed(self, wanted: str) -> str:
        """Return a name for a dimension whose size is computed."""
        name = self.names.unique(wanted)
        self._computed.add(name)
        return name

    def canonical(self, dim: Dim) -> Dim:
        """Return the representative of all dimensions known to be equal to this one.

        Examples
        --------
        >>> from pytensor_onnx.operators.dims import sum_dim
        >>> dims = Dimensions()
        >>> dims.equate("n", "m")
        >>> dims.canonical(sum_dim(["m", 1]))
        n+1
        """
        if not isinstance(dim, ComputedSize) and dim not in self._equal:
            return dim
        equal: list[str] = []
        seen: list[str] = []
        root: Dim = dim
        while isinstance(root, str):
            if root in seen:
                # A size that equals another one, whose parts were found equal to its own later.
                root = min(seen[seen.index(root) :], key=str)
                break
            seen.append(root)
            if root in self._equal:
                equal.append(root)
                root = self._equal[root]
                continue
            if not isinstance(root, ComputedSize):
                break
            replaced = replace_parts(root, self.canonical)
            if replaced is None or replaced == root:
                break
            root = replaced
        self._equal.update((name, root) for name in equal if name != root)
        return root

    def equate(self, first: Dim, second: Dim) -> None:
        """Record that two dimensions must have the same size for the graph to be valid.

        Examples
        --------
        >>> dims = Dimensions()
        >>> dims.equate("n", "m")
        >>> dims.equate("m", 3)
        >>> dims.canonical("m"), dims.canonical("n")
        (3, 3)
        """
        if first == second:
            return
        first, second = self.canonical(first), self.canonical(second)
        if first == second or first is None or second is None:
            return
        if self._rank(second) > self._rank(first):
            first, second = second, first
        if isinstance(second, str) and second in parts_of(first):
            first, second = second, first
        is_size = isinstance(first, int) and self.is_computed(second)
        if isinstance(second, str) and not is_size and self._is_free_of(first, second):
            self._equal[second] = first

    def compare(self, first: Dim, second: Dim) -> bool:
        """Record that the model compares two sizes when it runs; return whether that is new."""
        is_new = frozenset((first, second)) not in self._compared
        self._compared[frozenset((first, second))] = first, second
        return is_new

    def rename_results(self, results: Iterable[ir.Value]) -> None:
        """Give results that no node uses the best names of sizes that the model compares.

        Other values keep theirs, by which passes would find a comparison needless.

        Examples
        --------
        >>> dims = Dimensions()
        >>> part = ir.val("part", shape=(dims.computed("slice_dim0"),))
        >>> dims.compare("slice_dim0", "school")
        True
        >>> dims.rename_results([part])
        >>> dims_of(part), dims.canonical("slice_dim0")
        (('school',), 'slice_dim0')
        """
        equal = copy(self)
        equal._equal = dict(self._equal)
        for pair in self._compared.values():
            equal.equate(*pair)
        for value in results:
            if not value.uses():
                equal.rename_axes(value)

    def are_computed_apart(self, first: Dim, second: Dim) -> bool:
        """Return whether two dimensions are computed by different nodes of the graph.

        Examples
        --------
        >>> dims = Dimensions()
        >>> rows, columns = dims.computed("reshape_dim0"), dims.computed("reshape_dim1")
        >>> dims.are_computed_apart(rows, columns), dims.are_computed_apart(rows, "batch")
        (True, False)
        """
        dims = {self.canonical(first), self.canonical(second)}
        return len(dims) == 2 and dims <= self._computed

    def is_computed(self, dim: Dim) -> bool:
        """Return whether a size is computed by the model, and no size of an input."""
        return isinstance(dim, ComputedSize) or dim in self._computed

    def _rank(self, dim: str | int) -> int:
        """Return the rank of a size, of a name, and of a name made for a computed size."""
        if isinstance(dim, int):
            return 3
        return self._ranks.get(dim, -1 if dim in self._computed else 0)

    def _is_free_of(self, dim: Dim, part: str) -> bool:
        """Return whether a dimension, or an equal one, is not computed from another."""
        return all(self.canonical(p) == p != part for p in parts_of(dim))

    def name_axes(self, value: ir.Value) -> None:
        """Give every dimension of a value a name or a size, one for all that must be equal.

        A runtime that meets unnamed dimensions plans its memory in quadratic time.
        """
        dims = dims_of(value)
        if dims is None or all(isinstance(d, int) for d in dims):
            return
        if None in dims:
            node = value.producer()
            name = value.name or (snake_case(node.op_type) if node is not None else "value")
            unique = self.names.unique
            new = {i: unique(f"{name}_dim{i}") for i, d in enumerate(dims) if d is None}
            if node is not None:
                self._computed.update(new.values())
            dims = tuple(new.get(i, d) for i, d in enumerate(dims))
            value.shape = ir.Shape(dims)
        self.rename_axes(value)

    def rename_axes(self, value: ir.Value) -> None:
        """Give the named dimensions of a value one name for all that must be equal, or a size."""
        dims = dims_of(value) or ()
        canonical = tuple(map(self.canonical, dims))
        if canonical != dims:
            value.shape = ir.Shape(canonical)

    def finish(self, graph: ir.Graph) -> None:
        """Name the dimensions of all values, after all equalities between them are known."""
        for value in graph.inputs:
            self.name_axes(value)
        for node in all_nodes(graph):
            _infer_unknown_dims(node)
            for value in node.outputs:
                self.name_axes(value)


def _infer_unknown_dims(node: ir.Node) -> None:
    """Infer the dimensions of the first output again, from inputs whose dimensions have names."""
    value = node.outputs[0]
    own = dims_of(value)
    if own is None or None not in own or node.domain:
        return
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    dims = output_dims(node.op_type, node.inputs, attributes)
    if dims is not None and len(dims) == len(own):
        value.shape = ir.Shape([d if o is None else o for d, o in zip(dims, own, strict=True)])
