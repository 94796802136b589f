"""Give numbers the dtype and rank of their operands before equal constants are merged.

PyTensor does the same in its canonical form, in quadratic time: when all zeros of a graph are one
constant, a change of one use visits all others, and each new node copies the set of all variables.
So it is done first, and in place. An operand changes once, and equal numbers share a constant.
"""

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.rewriting.elemwise import local_upcast_elemwise_constant_inputs
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.rewriting.engine.predicates import applies, made_by
from pytensor_onnx.rules import rewrites_graphs

REASON = "fit_numbers"


@rewrites_graphs(
    family="elementwise",
    purpose="compile time",
    identity="cast(2) and expand(2) = constants of the operand's dtype and rank",
    requires="numbers beside arrays",
    measured="benchmarks/NOTES.md, Compilation",
    begins_at=("Elemwise",),
)
def fit_numbers(fgraph: FunctionGraph) -> None:
    """Constant-fold casts and expansions of numbers.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> graph = FunctionGraph([x], [pt.maximum(x, 0)], clone=False)
    >>> fit_numbers.rewrite(graph)
    >>> graph.outputs[0].owner.inputs[1].type
    TensorType(float64, shape=(1, 1))
    """
    constants = _Constants()
    nodes = fgraph.toposort()
    for node in nodes:
        if applies(node):
            constants.fit_operands(fgraph, node)
    for node in nodes:
        if isinstance(node.op, DimShuffle) and node in fgraph.apply_nodes:
            data = _data(node.outputs[0])
            if data is not None and data.size == 1:
                fgraph.replace(node.outputs[0], constants.make(data), reason=REASON)


class _Constants:
    """The constants made for a graph, and the Elemwise nodes whose constants PyTensor upcasts."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, tuple[int, ...], bytes], TensorConstant] = {}
        self._upcast: dict[tuple[object, ...], bool] = {}

    def make(self, data: np.ndarray) -> TensorConstant:
        """Return a constant, the same for equal numbers."""
        if data.size != 1:
            return constant(data)
        key = (data.dtype.str, data.shape, data.tobytes())
        if key not in self._made:
            self._made[key] = constant(data)
        return self._made[key]

    def fit_operands(self, fgraph: FunctionGraph, node: Apply) -> None:
        """Give each constant operand the dtype of the result, and numbers the rank."""
        data = [_data(x) for x in node.inputs]
        if all(value is None for value in data):
            return
        upcast = self._is_upcast(fgraph, node, data)
        for i, (x, value) in enumerate(zip(node.inputs, data, strict=True)):
            if value is None:
                continue
            fitted = value.astype(node.outputs[0].type.dtype, copy=False) if upcast else value
            if x.owner is not None or fitted.dtype != value.dtype:
                # The type of the node stays, and only that of this operand changes.
                fgraph.change_node_input(node, i, self.make(fitted), reason=REASON, check=False)

    def _is_upcast(self, fgraph: FunctionGraph, node: Apply, data: list[np.ndarray | None]) -> bool:
        """Return whether PyTensor gives constants the dtype of the result of a node."""
        if all(value is None or value.dtype == node.outputs[0].type.dtype for value in data):
            return False
        operands = [
            (x.type.dtype, value is None) for x, value in zip(node.inputs, data, strict=True)
        ]
        key = (node.op, *operands)
        if key not in self._upcast:
            inputs = [
                x if value is None else constant(value)
                for x, value in zip(node.inputs, data, strict=True)
            ]
            twin = node.clone_with_new_inputs(inputs)
            self._upcast[key] = bool(local_upcast_elemwise_constant_inputs.transform(fgraph, twin))
        return self._upcast[key]


def _data(x: Variable) -> np.ndarray | None:
    """Return the values of a constant, or of a number that was given further axes."""
    if isinstance(x, TensorConstant):
        return x.data
    if added := made_by(x, DimShuffle):
        data = _data(added.inputs[0])
        if data is not None and data.size == 1:
            return data.reshape((1,) * x.type.ndim)
    return None
