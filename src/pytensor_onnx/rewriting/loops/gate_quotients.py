"""Divide by ``1 + exp(-x)`` where a step of a loop multiplies by the gate ``sigmoid(x)``.

The gates of a step are parts of one vector, a product with weights. If the weights are inputs of
the loop, they are split before it, and the weights of the gates change sign. A step of an LSTM then
takes 11 operators in place of 15. Results stay the same in the tail: ``1 + exp(-x)`` overflows
where `sigmoid` underflows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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

from pytensor_onnx.rewriting.inner_graphs import core_op
from pytensor_onnx.rewriting.loops.products import with_sequences

OfLeaf = Callable[[Variable, int], Variable]
"""Function that returns the selected parts of a variable along an axis."""


class _NotAnInputError(Exception):
    """Raised where parts of a vector depend on other variables than the inputs of the loop."""


@dataclass(frozen=True)
class _Selection:
    """Selected parts of an axis, which are joined and may be negated.

    Attributes
    ----------
    sizes
        Sizes of all parts.
    positions
        Positions of the selected parts.
    is_negated
        Whether to change the sign.
    """

    sizes: Variable
    positions: Sequence[int]
    is_negated: bool

    def of(self, x: Variable, axis: int) -> TensorVariable:
        """Return the selected parts of a variable along an axis, joined."""
        parts = pt.split(x, self.sizes, n_splits=self.sizes.type.shape[0], axis=axis)
        chosen = [parts[i] for i in self.positions]
        joined = chosen[0] if len(chosen) == 1 else pt.join(axis, *chosen)
        return -joined if self.is_negated else joined


def _from_operands(x: Variable, axis: int, of_leaf: OfLeaf) -> Variable:
    """Select parts of sums and products by selecting parts of their operands.

    A leaf is a variable that is no sum, product or transposition, or a term of size one.
    """
    node = x.owner
    if node is None:
        return of_leaf(x, axis)
    if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add):
        if any(operand.type.broadcastable[axis] for operand in node.inputs):
            return of_leaf(x, axis)
        return pt.add(*(_from_operands(operand, axis, of_leaf) for operand in node.inputs))
    if isinstance(node.op, DimShuffle) and node.op.new_order[axis] != "x":
        source = int(node.op.new_order[axis])
        return node.op(_from_operands(node.inputs[0], source, of_leaf))
    if isinstance(core_op(node.op), Dot) and axis >= x.type.ndim - 2:
        left, right = node.inputs
        if axis == x.type.ndim - 2:
            return node.op(_from_operands(left, axis, of_leaf), right)
        return node.op(left, _from_operands(right, axis, of_leaf))
    return of_leaf(x, axis)


class _NewInputs:
    """Parts of the inputs of a loop, which are selected before it and become its inputs.

    Attributes
    ----------
    sequences, constants
        The variable outside of the loop for each selection of parts in the inner graph.
    """

    def __init__(self, fgraph: FunctionGraph, node: Apply, inner: FunctionGraph) -> None:
        op = node.op
        self._fgraph, self._node = fgraph, node
        self._outer_sequences: Mapping[Variable, Variable] = dict(
            zip(op.inner_seqs(inner.inputs), op.outer_seqs(node.inputs), strict=True)
        )
        self._outer_constants: Mapping[Variable, Variable] = dict(
            zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True)
        )
        self.sequences: dict[Variable, Variable] = {}
        self.constants: dict[Variable, Variable] = {}

    def select(self, selection: _Selection, x: Variable, axis: int) -> Variable:
        """Return parts of a variable of the inner graph, computed from new inputs."""

        def of_input(x: Variable, axis: int) -> Variable:
            parts = selection.of(x, axis)
            if x in self._outer_sequences:
                # The first axis of a sequence counts the steps.
                outer = self._outer_sequences[x]
                self.sequences[parts] = self._select_before_loop(selection, outer, axis + 1)
            elif x in self._outer_constants:
                outer = self._outer_constants[x]
                self.constants[parts] = self._select_before_loop(selection, outer, axis)
            elif isinstance(x, Constant):
                self.constants[parts] = parts
            else:
                raise _NotAnInputError
            return parts

        return _from_operands(x, axis, of_input)

    def _select_before_loop(self, selection: _Selection, x: Variable, axis: int) -> Variable:
        """Return parts of an outer variable, from its operands if only the loop uses it."""
        if all(client is self._node for client, _ in self._fgraph.clients[x]):
            return _from_operands(x, axis, selection.of)
        return selection.of(x, axis)


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
    new_inputs = _NewInputs(fgraph, node, inner)
    for split in inner.toposort():
        if isinstance(split.op, Split):
            try:
                _divide(inner, split, new_inputs)
            except _NotAnInputError:
                continue
    sequences, constants = new_inputs.sequences, new_inputs.constants
    if not sequences and not constants:
        return None
    for parts, outer in (*sequences.items(), *constants.items()):
        copy_stack_trace(parts, outer)
    return with_sequences(node, inner, sequences, constants)


def _divide(inner: FunctionGraph, split: Apply, new_inputs: _NewInputs) -> None:
    """Replace the gates among the parts of a Split if there are two or more."""
    whole, sizes = split.inputs
    clients = inner.clients
    gates = [i for i, part in enumerate(split.outputs) if _is_gate(part, clients)]
    others = [i for i, part in enumerate(split.outputs) if clients[part] and i not in gates]
    if len(gates) < 2 or not isinstance(sizes, Constant) or len(clients[whole]) > 1:
        return
    at = split.op.axis % whole.type.ndim
    opened = new_inputs.select(_Selection(sizes, gates, is_negated=True), whole, at)
    divisors = _parted(pt.add(1, pt.exp(opened)), sizes, gates, at)
    rest = None
    if others:
        rest = new_inputs.select(_Selection(sizes, others, is_negated=False), whole, at)
    copy_stack_trace(whole, [opened, *divisors] if rest is None else [opened, *divisors, rest])
    for i, divisor in zip(gates, divisors, strict=True):
        for gate in [client.outputs[0] for client, _ in clients[split.outputs[i]]]:
            _divide_by(inner, gate, divisor)
    if rest is not None:
        for i, part in zip(others, _parted(rest, sizes, others, at), strict=True):
            inner.replace(split.outputs[i], part, import_missing=True)


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
