"""Network operations with an inner graph, and the sizes of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.configdefaults import config
from pytensor.gradient import pullback
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.type import Type
from pytensor.tensor.variable import TensorVariable

if TYPE_CHECKING:
    import onnx_ir as ir

    from pytensor_onnx.graph.builder import Builder


class NetworkOp(SymbolicOp):
    """Operation with an inner graph, which every backend of PyTensor runs.

    A subclass defines its formula in `build_inner_graph` and its ONNX operators in `emit`. If a
    target lacks the operator in the dtype, the inner graph is converted instead.
    """

    emit: Callable[..., ir.Value | Sequence[ir.Value] | None]
    """Receives a builder and the inputs, which become the first operands of the emitted nodes.

    It returns the results, or None where no operator computes this case.
    """

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply to inputs; equal operations of inputs of equal types share their inner graph."""
        inputs = self.filter_inputs(*inputs)
        types = tuple(v.type for v in inputs)
        if self._init_kwargs or hasattr(self, "fgraph"):
            return super().__call__(*inputs, **options)
        props = tuple(getattr(self, name) for name in self.__props__)
        op_type: Any = type(self)
        try:
            op = _built(op_type, props, repr(props), types, config.floatX)
        except TypeError:  # attributes that cannot be hashed
            return super().__call__(*inputs, **options)
        return OpFromGraph.__call__(op, *inputs, **options)

    def simplified(self, build: Builder, *inputs: ir.Value) -> NetworkOp:
        """Return an Op that computes the same from these inputs and is easier to emit."""
        return self

    def inner_operands(self, operands: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Return the operands of the emitted node that are inputs of the inner graph."""
        given = [operand for operand in operands if operand is not None]
        return given[: len(self.fgraph.inputs)]

    def results_of_node(self, results: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the results of the inner graph for all results of the emitted node."""
        return list(results)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Differentiate the inner graph inline, so that intermediate results are shared.

        One input may be computed from another: each is differentiated independently.
        """
        own = [variable.type() for variable in inputs]
        # Copies, as PyTensor replaces the gradient of a result that another one is computed from.
        results = [pt.tensor_copy(result) for result in self.build_inner_graph(*own)]
        gradients = pullback(
            results,
            own,
            list(output_grads),
            disconnected_inputs="ignore",
            return_disconnected="disconnected",
        )
        return clone_replace(gradients, dict(zip(own, inputs, strict=True)))


@lru_cache(maxsize=512)
def _built(
    op_type: Any,
    props: tuple[Any, ...],
    text: str,
    types: tuple[Type, ...],
    float_x: str,
) -> Any:
    """Return an operation for types of inputs; the text tells apart equal numbers, as 0 and -0."""
    return op_type(input_types=list(types), **dict(zip(op_type.__props__, props, strict=True)))


class KeepsShape(NetworkOp):
    """Operation whose result has the shape of the first input."""

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[Sequence[Variable]]:
        """Return the sizes without computing the result."""
        return [input_shapes[0]]


type Size = int | TensorVariable
type Sizes = Sequence[Size]


def size_of(x: Variable, axis: int) -> Size:
    """Return the size of an axis, an int if it is static."""
    static = x.type.shape[axis]
    return x.shape[axis] if static is None else static


def sizes_of(x: Variable, first: int = 2) -> list[Size]:
    """Return the sizes of the axes from a first one on, by default the spatial ones.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> sizes_of(pt.tensor(shape=(None, 3, 5, 7))), sizes_of(pt.tensor(shape=(4, 2)), first=0)
    ([5, 7], [4, 2])
    """
    return [size_of(x, axis) for axis in range(first, x.type.ndim)]


def window_count(size: Size, room: Size, stride: int) -> Size:
    """Return ``(size + room) // stride + 1``, without operations that change nothing.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> n = pt.lscalar("n")
    >>> window_count(n, -1, 1) is n, window_count(5, -3, 2)
    (True, 2)
    """
    if stride > 1:
        return (size + room) // stride + 1
    more = room + 1
    return size if isinstance(more, int) and more == 0 else size + more


def absolute_power(x: TensorVariable, p: int) -> TensorVariable:
    """Return ``|x| ** p``."""
    return pt.abs(x) if p == 1 else pt.sqr(x) if p == 2 else pt.abs(x) ** p


def root(x: TensorVariable, p: int) -> TensorVariable:
    """Return the p-th root."""
    return x if p == 1 else pt.sqrt(x) if p == 2 else x ** np.asarray(1 / p, x.type.dtype)


def slope(x: TensorVariable, p: int) -> TensorVariable:
    """Return the derivative of ``|x| ** p / p``."""
    return x if p == 2 else pt.sign(x) if p == 1 else pt.sign(x) * pt.abs(x) ** (p - 1)


def over_power(gradient: TensorVariable, y: TensorVariable, p: int) -> TensorVariable:
    """Return ``gradient / y ** (p - 1)``, zero for y of zero."""
    if p == 1:
        return gradient
    return pt.switch(pt.eq(y, 0), pt.zeros_like(y), gradient / (y if p == 2 else y ** (p - 1)))
