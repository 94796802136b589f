"""Draws as the reference sampler makes them, in place of NumPy's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import tensor

from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.random import generator_of, state_of


class ReferenceDraw(Op):
    """Draws as a model makes them, from a generator, a size and parameters.

    Parameters
    ----------
    name
        Name of the distribution.
    dtype
        Dtype that is drawn in.
    out_dtype
        Dtype of the result.
    """

    __props__ = ("dtype", "name", "out_dtype")

    def __init__(self, name: str, dtype: str, out_dtype: str) -> None:
        self.name, self.dtype, self.out_dtype = name, dtype, out_dtype

    def in_float64(self) -> "ReferenceDraw":
        """Return the Op that computes with equal random numbers in float64."""
        return ReferenceDraw(self.name, self.dtype, "float64")

    def make_node(self, rng: Variable, size: Variable, *parameters: Variable) -> Apply:
        """Return a node for a generator, a size, which may be None, and parameters."""
        rank = max([_rank_of(size), *(p.type.ndim for p in parameters)])
        result = tensor(dtype=self.out_dtype, shape=(None,) * rank)
        return Apply(self, [rng, size, *parameters], [rng.type(), result])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw from the state that the generator stands for."""
        generator, size, *parameters = inputs
        shape = np.broadcast_shapes(*(np.shape(p) for p in parameters))
        shape = shape if size is None else tuple(int(n) for n in size)
        n, state = int(np.prod(shape)), state_of(generator)
        if self.name == "bernoulli":
            (p,) = parameters
            if not np.all((p >= 0) & (p <= 1)):
                raise ValueError("p < 0, p > 1 or p is NaN")
            state, numbers = reference.uniform(state, n, str(np.asarray(p).dtype))
            result = numbers.reshape(shape) < p
        elif self.name == "uniform":
            state, numbers = reference.uniform(state, n, self.dtype)
            result = parameters[0] + (parameters[1] - parameters[0]) * numbers.reshape(shape)
        else:
            state, numbers = reference.normal(state, n, self.dtype)
            result = parameters[0] + parameters[1] * numbers.reshape(shape)
        outputs[0][0] = generator_of(state)
        outputs[1][0] = np.asarray(result, dtype=self.out_dtype)


def _rank_of(size: Variable) -> int:
    return 0 if isinstance(size, Constant) and size.data is None else size.type.shape[0]


def with_reference_draws(node: Apply) -> Apply:
    """Return a draw, or a loop with draws, as the reference sampler makes it."""
    if isinstance(node.op, RandomVariable):
        op = ReferenceDraw(node.op.name, node.op.dtype, node.op.dtype)
        return Apply(op, node.inputs, [v.type() for v in node.outputs])
    if not isinstance(node.op, Scan) or not _draws(node.op):
        return node
    inner = node.op.fgraph.unfreeze()
    outputs = as_drawn(inner.outputs)
    return Scan(inner.inputs, outputs, node.op.info, mode=node.op.mode).make_node(*node.inputs)


def as_drawn(variables: Sequence[Variable]) -> list[Variable]:
    """Return variables that are computed from draws as the reference sampler makes them."""
    known = dict[Variable, Variable]()
    for node in toposort(variables):
        operands = [known.get(v, v) for v in node.inputs]
        copy = with_reference_draws(node.clone_with_new_inputs(operands))
        known.update(zip(node.outputs, copy.outputs, strict=True))
    return [known.get(v, v) for v in variables]


def _draws(loop: Scan) -> bool:
    steps = [node.op for node in loop.fgraph.toposort()]
    return any(
        isinstance(op, RandomVariable) or (isinstance(op, Scan) and _draws(op)) for op in steps
    )
