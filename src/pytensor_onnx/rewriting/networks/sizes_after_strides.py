"""Read sizes after strides from arrays, in place of a formula through all operations of a network.

PyTensor writes the sizes of a result as formulas of the sizes of the inputs. Behind each
convolution or pool with a stride, the formula has one more division, so that the mean over a last
feature map would compute dozens of small operators for its divisor. The array is computed anyway,
and knows its sizes.
"""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.math import add, mul, sub
from pytensor.tensor.shape import Shape_i

from pytensor_onnx.ops.networks.network_op import NetworkOp
from pytensor_onnx.rewriting.engine.predicates import made_by
from pytensor_onnx.rewriting.shape.sizes_as_arrays import SizesAsArrays
from pytensor_onnx.rules import part_of, rewrites_graphs

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
