"""Divide by ``1 + exp(-x)`` where a step of a loop multiplies by the gate ``sigmoid(x)``.

The gates of a step are parts of one vector, a product with weights. If the weights are inputs of
the loop, they are split before it, and the weights of the gates change sign. A step of an LSTM then
takes 12 operators in place of 15. Results stay the same in the tail: ``1 + exp(-x)`` overflows
where `sigmoid` underflows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.scalar.basic import Add, Mul
from pytensor.scalar.math import Sigmoid
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Split
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.loops.products import with_sequences

Leaf = Callable[[Variable, int], Variable]
"""Function that returns the parts of a variable along an axis."""


class _NotPartedError(Exception):
    """Raised where the parts of a vector cannot be computed from parts of the loop's inputs."""


@dataclass
class _Parts:
    """A selection of the parts of vectors, which are joined and may be negated.

    Parameters
    ----------
    sizes
        Sizes of all parts.
    wanted
        Positions of the selected parts.
    is_negated
        Whether to change the sign.
    """

    sizes: Variable
    wanted: Sequence[int]
    is_negated: bool

    def of(self, x: Variable, axis: int) -> TensorVariable:
        """Return the selected parts of a variable along an axis, joined."""
        parts = pt.split(x, self.sizes, n_splits=self.sizes.type.shape[0], axis=axis)
        chosen = [parts[i] for i in self.wanted]
        joined = chosen[0] if len(chosen) == 1 else pt.join(axis, *chosen)
        return -joined if self.is_negated else joined

    def of_operands(self, x: Variable, axis: int, leaf: Leaf) -> Variable:
        """Return the selected parts of a sum or product, computed from parts of its operands."""
        node = x.owner
        if node is None:
            return leaf(x, axis)
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add):
            if any(operand.type.broadcastable[axis] for operand in node.inputs):
                return leaf(x, axis)
            return pt.add(*(self.of_operands(operand, axis, leaf) for operand in node.inputs))
        if isinstance(node.op, DimShuffle) and node.op.new_order[axis] != "x":
            source = int(node.op.new_order[axis])
            return node.op(self.of_operands(node.inputs[0], source, leaf))
        if isinstance(getattr(node.op, "core_op", node.op), Dot) and axis >= x.type.ndim - 2:
            left, right = node.inputs
            if axis == x.type.ndim - 2:
                return node.op(self.of_operands(left, axis, leaf), right)
            return node.op(left, self.of_operands(right, axis, leaf))
        return leaf(x, axis)


@dataclass
class _Loop:
    """The inner graph of a loop, and the outer variables for its new inputs."""

    fgraph: FunctionGraph
    node: Apply
    inner: FunctionGraph
    sequences: dict[Variable, Variable] = field(default_factory=dict)
    constants: dict[Variable, Variable] = field(default_factory=dict)

    def parts(self, parts: _Parts, x: Variable, axis: int) -> Variable:
        """Return parts of an inner variable, from inputs that are split outside of the loop."""
        op, inputs = self.node.op, self.inner.inputs
        outer_sequences: Mapping = dict(
            zip(op.inner_seqs(inputs), op.outer_seqs(self.node.inputs), strict=True)
        )
        outer_constants: Mapping = dict(
            zip(op.inner_non_seqs(inputs), op.outer_non_seqs(self.node.inputs), strict=True)
        )

        def outside(x: Variable, axis: int) -> Variable:
            return (
                parts.of_operands(x, axis, parts.of) if self._is_read_here(x) else parts.of(x, axis)
            )

        def leaf(x: Variable, axis: int) -> Variable:
            own = parts.of(x, axis)
            if x in outer_sequences:
                self.sequences[own] = outside(outer_sequences[x], axis + 1)
            elif x in outer_constants:
                self.constants[own] = outside(outer_constants[x], axis)
            elif isinstance(x, Constant):
                self.constants[own] = own
            else:
                raise _NotPartedError
            return own

        return parts.of_operands(x, axis, leaf)

    def _is_read_here(self, x: Variable) -> bool:
        """Return whether an outer variable has no other use than the loop."""
        return all(client is self.node for client, _ in self.fgraph.clients[x])


@node_rewriter([Scan])
def divide_by_gates(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Replace products with sigmoids of the parts of one vector by quotients.

    Examples
    --------
    >>> import pytensor
    >>> x, w = pt.matrix("x", shape=(None, 6)), pt.matrix("w", shape=(2, 6))
    >>> def step(e, h, w):
    ...     keep, add, new = pt.split(e + h @ w, [2, 2, 2], n_splits=3)
    ...     return pt.sigmoid(keep) * h + pt.sigmoid(add) * pt.tanh(new)
    >>> h = pytensor.scan(step, [x], [pt.ones(2)], [w], return_updates=False)
    >>> f = pytensor.function([x, w], h, mode="ONNX")
    >>> (scan,) = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> operations = [str(node.op) for node in scan.fgraph.toposort()]
    >>> operations.count("Sigmoid"), operations.count("True_div")
    (0, 2)
    """
    inner = node.op.fgraph.unfreeze()
    loop = _Loop(fgraph, node, inner)
    for split in inner.toposort():
        if isinstance(split.op, Split):
            try:
                _divide(loop, split)
            except _NotPartedError:
                continue
    if not loop.sequences and not loop.constants:
        return None
    for own, outer in (*loop.sequences.items(), *loop.constants.items()):
        copy_stack_trace(own, outer)
    return with_sequences(node, inner, loop.sequences, loop.constants)


def _divide(loop: _Loop, split: Apply) -> None:
    """Replace the gates among the parts of a Split if there are two or more."""
    whole, sizes = split.inputs
    clients = loop.inner.clients
    gates = [i for i, part in enumerate(split.outputs) if _is_gate(part, clients)]
    others = [i for i, part in enumerate(split.outputs) if clients[part] and i not in gates]
    if len(gates) < 2 or not isinstance(sizes, Constant) or len(clients[whole]) > 1:
        return
    at = split.op.axis % whole.type.ndim
    opened = loop.parts(_Parts(sizes, gates, is_negated=True), whole, at)
    divisors = _parted(pt.add(1, pt.exp(opened)), sizes, gates, at)
    rest = loop.parts(_Parts(sizes, others, is_negated=False), whole, at) if others else None
    copy_stack_trace(whole, [opened, *divisors] if rest is None else [opened, *divisors, rest])
    for i, divisor in zip(gates, divisors, strict=True):
        for gate in [client.outputs[0] for client, _ in clients[split.outputs[i]]]:
            _divide_by(loop.inner, gate, divisor)
    if rest is not None:
        for i, part in zip(others, _parted(rest, sizes, others, at), strict=True):
            loop.inner.replace(split.outputs[i], part, import_missing=True)


def _is_gate(part: Variable, clients: Mapping) -> bool:
    """Return whether a part of a vector has sigmoids as its only uses."""
    return (
        part.type.dtype in ("float32", "float64")
        and bool(clients[part])
        and all(
            isinstance(client.op, Elemwise) and isinstance(client.op.scalar_op, Sigmoid)
            for client, _ in clients[part]
        )
    )


def _parted(
    x: Variable, sizes: Constant, positions: Sequence[int], axis: int
) -> list[TensorVariable]:
    """Split an array of joined parts."""
    if len(positions) == 1:
        return [x]
    return pt.split(x, sizes.data[list(positions)], n_splits=len(positions), axis=axis)


def _divide_by(inner: FunctionGraph, gate: Variable, divisor: Variable) -> None:
    """Replace the uses of a gate, which is the reciprocal of a divisor."""
    products = [client for client, _ in inner.clients[gate]]
    if not all(_is_product_with(client, gate) for client in products):
        inner.replace(gate, pt.reciprocal(divisor), import_missing=True)
        return
    for client in products:
        factors = [x for x in client.inputs if x is not gate]
        factor = factors[0] if len(factors) == 1 else pt.mul(*factors)
        quotient = pt.true_div(factor, divisor)
        copy_stack_trace(client.outputs[0], quotient)
        inner.replace(client.outputs[0], quotient, import_missing=True)


def _is_product_with(client: Apply, gate: Variable) -> bool:
    """Return whether a node multiplies a gate, which occurs once, by other factors."""
    return (
        isinstance(client.op, Elemwise)
        and isinstance(client.op.scalar_op, Mul)
        and client.inputs.count(gate) == 1
        and all(x.type.dtype == gate.type.dtype for x in client.inputs)
    )
