"""Rewrites of pools, recurrent loops and sizes after strides."""

from __future__ import annotations

from typing import Any

from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.traversal import applys_between
from pytensor.scalar.basic import GT, Switch
from pytensor.scan.op import Scan
from pytensor.tensor.basic import switch
from pytensor.tensor.math import add, gt, mul, sub
from pytensor.tensor.shape import Shape_i

from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.ops.networks.recurrent_ops import RecurrentOp
from pytensor_onnx.rewriting.engine.predicates import applies, filling_of, made_by, only_client
from pytensor_onnx.rewriting.shape import SizesAsArrays
from pytensor_onnx.rules import part_of, rewrites_graphs, rewrites_nodes


@rewrites_nodes(
    [NetworkOp],
    family="networks",
    purpose="speed",
    identity="switch(x > 0, route(x, y, g), 0) = route(x, y, switch(y > 0, g, 0))",
    requires="y is the max pool of x",
    measured="benchmarks/NOTES.md",
)
def mask_before_routing(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | list[Variable] | None:
    """Set gradients to zero where a maximum is not positive, in place of its elements.

    A ReLU before a pool makes such a mask. A maximum is positive where its element is.
    """
    client = only_client(fgraph, node.outputs[0])
    if not _is_of_pool(node) or not applies(client, Switch):
        return None
    x, y, gradient = node.inputs
    is_positive, routed, otherwise = client.inputs
    comparison = is_positive.owner
    if routed is not node.outputs[0] or not applies(comparison, GT):
        return None
    zero, masked = comparison.inputs[1], client.outputs[0]
    if comparison.inputs[0] is not x or not (_is_zero(zero) and _is_zero(otherwise)):
        return None
    if masked.type.dtype != gradient.type.dtype:
        return None
    routed = node.op(x, y, switch(gt(y, zero), gradient, otherwise))
    return {masked: masked.type.filter_variable(routed, allow_convert=True)}


def _is_of_pool(node: Apply) -> bool:
    """Return whether a node is the gradient of a max pool with the maxima of that pool."""
    # Pools import onnx_ir, which the import of this package does not wait for.
    from pytensor_onnx.ops.networks.pool_ops import MaxPool, MaxPoolGradient

    if type(node.op) is not MaxPoolGradient:
        return False
    x, y, _ = node.inputs
    pooled = y.owner
    is_pooled = pooled is not None and type(pooled.op) is MaxPool and pooled.inputs[0] is x
    return is_pooled and pooled.op.windows == node.op.windows


def _is_zero(x: Variable) -> bool:
    return all(x.type.broadcastable) and filling_of(x) == 0


OPERATOR_DTYPE = "float32"
"""The dtype in which ONNX Runtime has the operators."""


@rewrites_graphs(
    family="networks",
    purpose="conversion",
    identity="lstm(x) = scan(step, x)",
    requires="its gradient has the same loop, or no operator serves the dtype",
    begins_at=("RecurrentOp",),
)
def loop_over_layers(fgraph: FunctionGraph) -> None:
    """Replace a layer by its loop, if its gradient has the same loop or the dtype no operator.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> from pytensor_onnx import nn
    >>> x = pt.tensor3("x", dtype="float32")
    >>> w, r = (pt.matrix(name, shape=(3, 3), dtype="float32") for name in "wr")
    >>> y, _ = nn.rnn(x, w, r)
    >>> graphs = [[y], [y, pt.grad((y**2).sum(), w)]]
    >>> functions = [pytensor.function([x, w, r], graph, mode="ONNX") for graph in graphs]
    >>> nodes = [f.maker.fgraph.toposort() for f in functions]
    >>> [[type(n.op).__name__ for n in g if isinstance(n.op, RecurrentOp | Scan)] for g in nodes]
    [['RNN'], ['Scan', 'Scan']]
    """
    nodes = fgraph.toposort()
    loops = [node for node in nodes if isinstance(node.op, Scan)]
    for node in nodes:
        if not isinstance(node.op, RecurrentOp):
            continue
        results = inline_ofg_node(node)
        own = _loop(node.inputs, results)
        same = next((loop for loop in loops if _are_equal(own, loop)), None)
        if same is not None:
            # PyTensor would join the two loops as different ones, which computes all steps twice.
            shared = dict(zip(own.outputs, same.outputs, strict=True))
            results = graph_replace(results, shared, strict=False)
        elif node.outputs[0].type.dtype == OPERATOR_DTYPE:
            continue
        replacements = list(zip(node.outputs, results, strict=True))
        fgraph.replace_all(replacements, reason="loop_over_layers", import_missing=True)


def _loop(inputs: list[Variable], results: list[Variable]) -> Apply:
    return next(node for node in applys_between(inputs, results) if isinstance(node.op, Scan))


def _are_equal(loop: Apply, other: Apply) -> bool:
    return loop.op == other.op and equal_computations(list(loop.inputs), list(other.inputs))


# Read sizes after strides from arrays, in place of a formula through all operations of a network.
#
# PyTensor writes the sizes of a result as formulas of the sizes of the inputs. Behind each
# convolution or pool with a stride, the formula has one more division, so that the mean over a last
# feature map would compute dozens of small operators for its divisor. The array is computed anyway,
# and knows its sizes.

_PLAIN = (add, mul, sub)


class SizesOfNetworks(SizesAsArrays):
    """Shape inference that stops at operations of networks whose sizes need a division.

    Operations on one array with one formula, as the two branches of a residual block, have the
    sizes of the first of them, so that their results are known to be of equal size.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Variable, list[tuple[Variable, Variable, int]]] = {}

    def _compute_node_shapes(
        self, node: Apply, recursive: bool
    ) -> tuple[tuple[Variable, ...] | None, ...]:
        shapes = super()._compute_node_shapes(node, recursive)
        if not recursive or not isinstance(node.op, NetworkOp):
            return shapes
        return tuple(
            shape and tuple(self._size(out, i, size) for i, size in enumerate(shape))
            for out, shape in zip(node.outputs, shapes, strict=True)
        )

    def _size(self, out: Variable, axis: int, formula: Variable) -> Variable:
        """Return a size of a result as an array knows it, or its formula if that is short."""
        if _is_short(formula):
            return formula
        infer_sizes.rule.note()
        known = self._known.setdefault(out.owner.inputs[0], [])
        for other, array, position in known:
            if self._is_live(array) and equal_computations([other], [formula]):
                return self._shape_i_var(array, position)
        # Else the array might become an operand of what computes the filters of another.
        if all(filters.owner is None for filters in out.owner.inputs[1:]):
            known.append((formula, out, axis))
        return self._shape_i_var(out, axis)

    def _is_live(self, array: Variable) -> bool:
        return self.fgraph is not None and array in self.fgraph.variables

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        """Forget all sizes, which may be read from the results of the node."""
        super().on_prune(fgraph, node, reason)
        if isinstance(node.op, NetworkOp):
            self._cache.clear()
            self._known.clear()

    def on_detach(self, fgraph: FunctionGraph) -> None:
        """Forget all sizes."""
        super().on_detach(fgraph)
        self._known.clear()


class InferSizes(GraphRewriter):
    """Attach `SizesOfNetworks` to the graph for all rewrites."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the feature first, so that PyTensor's rewriters use it."""
        fgraph.attach_feature(SizesOfNetworks())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Change nothing."""


infer_sizes = rewrites_graphs(
    name="infer_sizes",
    family="networks",
    purpose="size",
    identity="size behind a stride = size read from the array",
    requires="an operation of networks with a stride, whose elements are read",
    ensures="features of the graph only",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)(InferSizes())


@part_of(infer_sizes.rule, [Shape_i])
def infer_unread(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the size of an array by its formula if the elements of the array are never read."""
    (array,) = node.inputs
    feature = getattr(fgraph, "shape_feature", None)
    if feature is None or made_by(array, NetworkOp) is None:
        return None
    if not all(_reads_size(user) for user, _ in fgraph.clients[array]):
        return None
    return [feature.get_non_recursive_shape(array, node.op.i)]


def _reads_size(user: Apply) -> bool:
    return isinstance(user.op, Shape_i)


def _is_short(formula: Variable) -> bool:
    """Return whether a size is a sum of products of sizes that arrays know."""
    waiting, seen = [formula], set[Variable]()
    while waiting:
        size = waiting.pop()
        if size in seen or size.owner is None or made_by(size, Shape_i):
            continue
        if size.owner.op not in _PLAIN:
            return False
        seen.add(size)
        waiting += size.owner.inputs
    return True
