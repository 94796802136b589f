"""The scope of a model: names of dimensions, equal sizes, functions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from typing import NamedTuple

import onnx_ir as ir

from pytensor_onnx.graph.names import Names, snake_case
from pytensor_onnx.graph.traversal import DOMAINS, STANDARD_DOMAIN, all_nodes, bodies_of
from pytensor_onnx.operators.dims import ComputedSize, Dim, dims_of, parts_of, replace_parts
from pytensor_onnx.operators.entries import output_dims


class LocalFunction(NamedTuple):
    """A model-local function, with facts that the function itself does not show.

    Attributes
    ----------
    function
        The function.
    returns_list
        Whether its body returned a list, and not one value.
    is_definition
        Whether it is an elementwise definition, which uses operators where they are accurate.
    """

    function: ir.Function
    returns_list: bool
    is_definition: bool = False


class ModelScope:
    """Opset, names, constants, functions and dimensions of all graphs of one model.

    Parameters
    ----------
    opset_version
        Version of the standard operator set.
    fixes_sizes
        Whether a constant size that the graph asserts may become that of an axis of an input.
    is_portable
        Whether the file is for runtimes of any maker: it has no nodes that fail.
    widens
        Whether sums and functions of float32 may be computed in float64.
    has_scan
        Whether loops over sequences may be written by Scan.
    as_imported
        Whether operators of imported models have no guards that these models had not either.
    has_kernel
        Function that tells whether the runtime has a kernel for a standard function of a name, so
        that the main graph calls it without a body; None if all functions have bodies.
    """

    def __init__(
        self,
        opset_version: int,
        *,
        fixes_sizes: bool = False,
        is_portable: bool = False,
        widens: bool = True,
        has_scan: bool = True,
        has_kernel: Callable[[str], bool] | None = None,
        as_imported: bool = False,
    ) -> None:
        self.opset_version = opset_version
        self.as_imported = as_imported
        self.fixes_sizes = fixes_sizes
        self.broadcasts = False  # computed axes of one element, as in imported models
        self._compared: dict[frozenset[Dim], tuple[Dim, Dim]] = {}
        self.is_portable = is_portable
        self.widens = widens
        self.has_scan = has_scan
        self.has_kernel = has_kernel
        self.kernel_calls: set[str] = set()
        self.names = Names()
        self.dim_names = Names()
        self.function_names = Names()
        self.initializers: dict[Hashable, ir.Value] = {}
        self.functions: dict[Hashable, LocalFunction] = {}
        self.constant_names: dict[Hashable, str] = {}
        self.transposed_names: dict[Hashable, str] = {}
        self.failures: dict[str, Exception] = {}
        self._domains: dict[str, frozenset[int]] = {}
        self.unfinished: set[Hashable] = set()
        self._equal_dims: dict[str, Dim] = {}
        self._ranks: dict[str, int] = {}
        self._computed_dims: set[str] = set()

    def calls_kernel(self, name: str) -> bool:
        """Return whether a standard function of this name is called without a body."""
        if name not in self.kernel_calls:
            if self.has_kernel is None or name in self.function_names or not self.has_kernel(name):
                return False
            self.kernel_calls.add(self.function_names.unique(name))
        return True

    def uses_domain(self, domain: str, versions: frozenset[int]) -> bool:
        """Return whether one version of a domain serves an operator and those before it.

        Parameters
        ----------
        domain
            Domain of operators.
        versions
            Versions of the domain that have the operator.

        Examples
        --------
        >>> scope = ModelScope(21)
        >>> given = frozenset({1, 2, 3}), frozenset({3, 4}), frozenset({4})
        >>> [scope.uses_domain("ai.onnx.ml", versions) for versions in given]
        [True, True, False]
        """
        shared = versions & self._domains.get(domain, versions)
        if shared:
            self._domains[domain] = shared
        return bool(shared)

    def import_domains(self, graph: ir.Graph, functions: Iterable[ir.Function]) -> None:
        """Let the main graph import the domains of functions, and of kernels without a body.

        All graphs import the lowest version of other domains that serves their operators.
        """
        functions = list(functions)
        domains = [function.domain for function in functions]
        if self.kernel_calls:
            domains.append(STANDARD_DOMAIN)
        graph.opset_imports.update((domain, DOMAINS[domain]) for domain in domains)
        for imports in (graph.opset_imports, *(f.opset_imports for f in functions)):
            imports.update((d, min(versions)) for d, versions in self._domains.items())

    def name_of_constant(self, content: Hashable) -> str | None:
        """Return the user's name for the content of an array, or for its transpose."""
        return self.constant_names.get(content) or self.transposed_names.get(content)

    def name_dim(self, name: str, rank: int = 2) -> None:
        """Record a name for a dimension, unless it has a name of a higher rank."""
        self._ranks[name] = max(rank, self._ranks.get(name, 0))
        self.dim_names.reserve(name)

    def is_named_well(self, dim: Dim) -> bool:
        """Return whether a dimension has a size, a name not made here, or one derived from others.

        Examples
        --------
        >>> scope = ModelScope(21)
        >>> scope.name_dim("city")
        >>> scope.is_named_well("city"), scope.is_named_well("dim0")
        (True, False)
        """
        dim = self.canonical_dim(dim)
        return not isinstance(dim, str) or isinstance(dim, ComputedSize) or dim in self._ranks

    def computed_dim(self, wanted: str) -> str:
        """Return a name for a dimension whose size is computed."""
        name = self.dim_names.unique(wanted)
        self._computed_dims.add(name)
        return name

    def canonical_dim(self, dim: Dim) -> Dim:
        """Return the representative of all dimensions known to be equal to this one.

        Examples
        --------
        >>> from pytensor_onnx.operators.dims import sum_dim
        >>> scope = ModelScope(21)
        >>> scope.equate_dims("n", "m")
        >>> scope.canonical_dim(sum_dim(["m", 1]))
        n+1
        """
        if not isinstance(dim, ComputedSize) and dim not in self._equal_dims:
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
            if root in self._equal_dims:
                equal.append(root)
                root = self._equal_dims[root]
                continue
            if not isinstance(root, ComputedSize):
                break
            replaced = replace_parts(root, self.canonical_dim)
            if replaced is None or replaced == root:
                break
            root = replaced
        self._equal_dims.update((name, root) for name in equal if name != root)
        return root

    def equate_dims(self, first: Dim, second: Dim) -> None:
        """Record that two dimensions must have the same size for the graph to be valid.

        Examples
        --------
        >>> scope = ModelScope(21)
        >>> scope.equate_dims("n", "m")
        >>> scope.equate_dims("m", 3)
        >>> scope.canonical_dim("m"), scope.canonical_dim("n")
        (3, 3)
        """
        if first == second:
            return
        first, second = self.canonical_dim(first), self.canonical_dim(second)
        if first == second or first is None or second is None:
            return
        if self._rank(second) > self._rank(first):
            first, second = second, first
        if isinstance(second, str) and second in parts_of(first):
            first, second = second, first
        is_size = isinstance(first, int) and self.is_computed(second)
        if isinstance(second, str) and not is_size and self._is_free_of(first, second):
            self._equal_dims[second] = first

    def compare_dims(self, first: Dim, second: Dim) -> bool:
        """Record that the model compares two sizes when it runs; return whether that is new."""
        is_new = frozenset((first, second)) not in self._compared
        self._compared[frozenset((first, second))] = first, second
        return is_new

    def rename_results(self, results: Iterable[ir.Value]) -> None:
        """Give results that no node uses the best names of sizes that the model compares.

        Other values keep theirs, by which passes would find a comparison needless.

        Examples
        --------
        >>> scope = ModelScope(21)
        >>> part = ir.val("part", shape=(scope.computed_dim("slice_dim0"),))
        >>> scope.compare_dims("slice_dim0", "school")
        True
        >>> scope.rename_results([part])
        >>> dims_of(part), scope.canonical_dim("slice_dim0")
        (('school',), 'slice_dim0')
        """
        equal = copy(self)
        equal._equal_dims = dict(self._equal_dims)
        for pair in self._compared.values():
            equal.equate_dims(*pair)
        for value in results:
            if not value.uses():
                equal.rename_dims(value)

    def are_computed_apart(self, first: Dim, second: Dim) -> bool:
        """Return whether two dimensions are computed by different nodes of the graph.

        Examples
        --------
        >>> scope = ModelScope(21)
        >>> rows, columns = scope.computed_dim("reshape_dim0"), scope.computed_dim("reshape_dim1")
        >>> scope.are_computed_apart(rows, columns), scope.are_computed_apart(rows, "batch")
        (True, False)
        """
        dims = {self.canonical_dim(first), self.canonical_dim(second)}
        return len(dims) == 2 and dims <= self._computed_dims

    def is_computed(self, dim: Dim) -> bool:
        """Return whether a size is computed by the model, and no size of an input."""
        return isinstance(dim, ComputedSize) or dim in self._computed_dims

    def _rank(self, dim: str | int) -> int:
        """Return the rank of a size, of a name, and of a name made for a computed size."""
        if isinstance(dim, int):
            return 3
        return self._ranks.get(dim, -1 if dim in self._computed_dims else 0)

    def _is_free_of(self, dim: Dim, part: str) -> bool:
        """Return whether a dimension, or an equal one, is not computed from another."""
        return all(self.canonical_dim(p) == p != part for p in parts_of(dim))

    def name_dims(self, value: ir.Value) -> None:
        """Give every dimension of a value a name or a size, one for all that must be equal.

        A runtime that meets unnamed dimensions plans its memory in quadratic time.
        """
        dims = dims_of(value)
        if dims is None or all(isinstance(d, int) for d in dims):
            return
        if None in dims:
            node = value.producer()
            name = value.name or (snake_case(node.op_type) if node is not None else "value")
            unique = self.dim_names.unique
            new = {i: unique(f"{name}_dim{i}") for i, d in enumerate(dims) if d is None}
            if node is not None:
                self._computed_dims.update(new.values())
            dims = tuple(new.get(i, d) for i, d in enumerate(dims))
            value.shape = ir.Shape(dims)
        self.rename_dims(value)

    def rename_dims(self, value: ir.Value) -> None:
        """Give the named dimensions of a value one name for all that must be equal, or a size."""
        dims = dims_of(value) or ()
        canonical = tuple(map(self.canonical_dim, dims))
        if canonical != dims:
            value.shape = ir.Shape(canonical)


def live_nodes(nodes: Sequence[ir.Node], results: Sequence[ir.Value]) -> list[ir.Node]:
    """Return the nodes on which the results depend, and disconnect the others.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
    >>> _, y = build.Exp(x), build.Neg(x)
    >>> [node.op_type for node in live_nodes(build.nodes, [y])]
    ['Neg']
    """
    wanted = {id(value) for value in results}
    live: list[ir.Node] = []
    for node in reversed(nodes):
        is_used = [id(v) in wanted or bool(v.uses()) for v in node.outputs]
        if any(is_used):
            _drop_traces(node, is_used)
            live.append(node)
        else:
            disconnect(node)
    return live[::-1]


def _drop_traces(node: ir.Node, is_used: list[bool]) -> None:
    """Drop the last results of a loop that nothing uses, which take the memory of all its steps."""
    if node.op_type not in ("Loop", "Scan") or node.domain:
        return
    body = node.attributes["body"].as_graph()
    n_traces = len(node.outputs) - _state_count(node)
    while n_traces and not is_used.pop():
        node.resize_outputs(len(is_used))
        body.outputs.pop()
        n_traces -= 1


def _state_count(node: ir.Node) -> int:
    """Return the number of values that a loop carries from step to step."""
    if node.op_type == "Loop":
        return len(node.inputs) - 2
    return len(node.inputs) - node.attributes["num_scan_inputs"].as_int()


def disconnect(node: ir.Node) -> None:
    """Take a node and the nodes of its bodies off the uses of their operands."""
    for i in range(len(node.inputs)):
        node.replace_input_with(i, None)
    for body in bodies_of(node):
        for inner in all_nodes(body):
            disconnect(inner)


def infer_and_name_dims(graph: ir.Graph, scope: ModelScope) -> None:
    """Name the dimensions of all values, after all equalities between them are known."""
    for value in graph.inputs:
        scope.name_dims(value)
    for node in all_nodes(graph):
        _infer_unknown_dims(node)
        for value in node.outputs:
            scope.name_dims(value)


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
