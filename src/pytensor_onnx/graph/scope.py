"""The scope of a model: options, names, constants, functions, dimensions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import onnx_ir as ir

from pytensor_onnx.graph.dimensions import Dimensions
from pytensor_onnx.graph.names import Names
from pytensor_onnx.graph.traversal import DOMAINS, STANDARD_DOMAIN, all_nodes, bodies_of


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
        self.is_portable = is_portable
        self.widens = widens
        self.masks_draws = False  # draws by rejection keep the sizes of arrays
        self.has_scan = has_scan
        self.has_kernel = has_kernel
        self.kernel_calls: set[str] = set()
        self.names = Names()
        self.dims = Dimensions()
        self.function_names = Names()
        self.initializers: dict[Hashable, ir.Value] = {}
        self.functions: dict[Hashable, LocalFunction] = {}
        self.constant_names: dict[Hashable, str] = {}
        self.transposed_names: dict[Hashable, str] = {}
        self.failures: dict[str, Exception] = {}
        self._domains: dict[str, frozenset[int]] = {}
        self.unfinished: set[Hashable] = set()

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
