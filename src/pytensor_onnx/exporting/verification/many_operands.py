"""Compute elementwise operations of more operands than NumPy's functions take, in Python."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.rewriting.engine.inner_graphs import inner_nodes, with_inner_graph

LARGEST = 32
"""Operands and results of a NumPy function."""

_IN_PAIRS: dict[type, Callable] = {Add: np.add, Mul: np.multiply}


class ElemwiseOfMany(Elemwise):
    """Elementwise operation of any number of operands, computed by the Op of its elements."""

    def prepare_node(self, node: Apply, storage_map: Any, compute_map: Any, impl: Any) -> None:
        """Do nothing, in place of building a NumPy function."""

    def perform(self, node: Apply, inputs: list[Any], output_storage: list[list[Any]]) -> None:
        """Combine the arrays in pairs if the operation has a NumPy function, else by element."""
        self._check_runtime_broadcast(node, inputs)
        in_pairs = _IN_PAIRS.get(type(self.scalar_op))
        with np.errstate(all="ignore"):
            if in_pairs is not None:
                dtype = node.outputs[0].type.dtype
                results = [reduce(in_pairs, [np.asarray(x, dtype) for x in inputs])]
            else:
                results = _by_element(self.scalar_op.impl, inputs, len(node.outputs))
        for i, (result, variable) in enumerate(zip(results, node.outputs, strict=True)):
            array = np.array(result, dtype=variable.type.dtype)
            if i in self.inplace_pattern:
                inputs[self.inplace_pattern[i]][...] = array
                array = inputs[self.inplace_pattern[i]]
            output_storage[i][0] = array


def _by_element(function: Callable, arrays: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """Return the results of a function of scalars on each element of broadcast arrays."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    columns = [np.broadcast_to(array, shape).ravel().tolist() for array in arrays]
    found = [function(*elements) for elements in zip(*columns, strict=True)]
    results = [np.empty(len(found), dtype=object) for _ in range(count)]
    for i, result in enumerate(found):
        for array, element in zip(results, (result,) if count == 1 else result, strict=True):
            array[i] = element
    return [array.reshape(shape) for array in results]


class TakeManyOperands(GraphRewriter):
    """Replace elementwise operations that PyTensor's Python mode refuses, in inner graphs as well.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> graph = FunctionGraph([x], [pt.add(*[x] * 40)], clone=False)
    >>> TakeManyOperands().rewrite(graph)
    >>> type(graph.outputs[0].owner.op).__name__
    'ElemwiseOfMany'
    """

    def apply(self, fgraph: FunctionGraph) -> None:
        """Replace the operations of a graph, in place."""
        self.replace(fgraph)

    def replace(self, fgraph: FunctionGraph) -> dict[Variable, Variable]:
        """Replace the operations of a graph, in place, and return the new results by the old."""
        replaced: dict[Variable, Variable] = {}
        for node in fgraph.toposort():
            if _has_too_many(node):
                new = ElemwiseOfMany(node.op.scalar_op, node.op.inplace_pattern)
            elif any(map(_has_too_many, inner_nodes(node.op))):
                new = with_inner_graph(node.op, self.apply)
            else:
                continue
            results = new.make_node(*node.inputs).outputs
            replaced.update(zip(node.outputs, results, strict=True))
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)), import_missing=True)
        return replaced


def _has_too_many(node: Apply) -> bool:
    is_native = isinstance(node.op, Elemwise) and not isinstance(node.op, ElemwiseOfMany)
    return is_native and len(node.inputs) + len(node.outputs) > LARGEST
