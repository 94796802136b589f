"""Define the Ops of recurrent layers, with the operands and results of ONNX's operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.network_op import NetworkOp, Size, size_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from pytensor_onnx.graph.builder import Builder

Function = Callable[[TensorVariable], TensorVariable]


@dataclass(frozen=True)
class Variant:
    """Options of ONNX's recurrent operators that the Ops do not have; imports write their loops.

    Attributes
    ----------
    functions
        The activations, in the order of the operator; none for the usual ones.
    bounded
        Function that clips the operands of activations.
    peepholes
        Weights from the memory to the input, output and forget gates, in rows.
    is_coupled
        Whether the forget gate is one less the input gate.
    of_reset
        Product of a state with the weights of the candidate, if the reset gate scales the state
        before the product and not the product.
    """

    functions: Sequence[Function] = ()
    bounded: Function = lambda x: x
    peepholes: Sequence[TensorVariable] = ()
    is_coupled: bool = False
    of_reset: Function | None = None


USUAL = Variant()


class RecurrentOp(NetworkOp):
    """Recurrent layer over sequences (time, batch, inputs).

    Further inputs are the weights of the sequences (1, gates * hidden, inputs) and of the state (1,
    gates * hidden, hidden), then optionally biases (1, 2 * gates * hidden), those of the sequences
    first, and the initial states (1, batch, hidden), which are zeros otherwise. The results are the
    outputs of all steps (time, 1, batch, hidden), and the last states.

    Parameters
    ----------
    hidden
        Number of hidden units, None if it is unknown.
    has_bias, has_states
        Whether the optional inputs are present.
    is_reversed
        Whether the first step reads the last element.
    """

    __props__ = ("hidden", "has_bias", "has_states", "is_reversed")
    hidden: int | None
    has_bias: bool
    has_states: bool
    is_reversed: bool

    order: tuple[int, ...]
    """The gates of the operator as positions in PyTorch's order, which users know."""
    n_states = 1

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'reverse' if self.is_reversed else 'forward'}}}"

    @abstractmethod
    def step(
        self,
        of_input: TensorVariable,
        of_state: TensorVariable,
        *states: TensorVariable,
        variant: Variant = USUAL,
    ) -> tuple[TensorVariable, ...]:
        """Return the states after a step, from the two products with weights and the states."""

    def build_inner_graph(
        self, x: TensorVariable, w: TensorVariable, r: TensorVariable, *others: TensorVariable
    ) -> list[Variable]:
        """Run the steps in a loop."""
        bias = others[0][0] if self.has_bias else None
        constants = [w[0].T, r[0].T, *([] if bias is None else self._biases(bias, r))]
        if self.has_states:
            initial = [state[0] for state in others[self.has_bias :]]
        else:
            zeros = pt.zeros((size_of(x, 1), self._hidden_of(r)), dtype=x.type.dtype)
            initial = [zeros] * self.n_states

        def step(element: TensorVariable, *rest: TensorVariable) -> tuple[TensorVariable, ...]:
            states, (w, r, *biases) = rest[: self.n_states], rest[self.n_states :]
            products = [element @ w, states[0] @ r]
            for i, bias in enumerate(biases):
                products[i] = products[i] + bias
            return self.step(*products, *states)

        found = pytensor.scan(
            step,
            sequences=[x],
            outputs_info=initial,
            non_sequences=constants,
            go_backwards=self.is_reversed,
            name=type(self).__name__.lower(),
            strict=True,
            return_updates=False,
        )
        traces = found if isinstance(found, list) else [found]
        # Without steps, the initial states are the last.
        last = [
            pt.concatenate([first[None], trace])[-1][None]
            for first, trace in zip(initial, traces, strict=True)
        ]
        outputs = (traces[0][::-1] if self.is_reversed else traces[0])[:, None]
        return [with_steps_of(outputs, x), *last]

    def _biases(self, bias: TensorVariable, r: TensorVariable) -> list[TensorVariable]:
        """Return the bias of the product with inputs, and of the product with states if needed."""
        half = len(self.order) * self._hidden_of(r)
        return [bias[:half] + bias[half:]]

    def _hidden_of(self, r: TensorVariable) -> Size:
        return self.hidden or size_of(r, 2)

    def _split(
        self, products: TensorVariable, state: TensorVariable, count: int | None = None
    ) -> list[TensorVariable]:
        """Return the part of each gate, or of the first ones."""
        count = count or len(self.order)
        sizes = [self.hidden or size_of(state, 1)] * count
        return pt.split(products, sizes, n_splits=count, axis=1)

    def emit(self, build: Builder, *inputs: ir.Value) -> list[ir.Value] | None:
        """Emit the operator, which stores the number of hidden units."""
        from onnx_ir import Shape

        x = inputs[0]
        if not self.hidden:
            return None
        results = build.op(
            type(self).__name__,
            *self.operands(inputs),
            outputs=1 + self.n_states,
            hidden_size=self.hidden,
            **({"direction": "reverse"} if self.is_reversed else {}),
            **self._attributes(),
        )
        time, batch = build.dims(x)[:2]
        for result, dims in zip(results, [(time, 1), *[(1,)] * self.n_states], strict=True):
            result.shape = Shape([*dims, batch, self.hidden])
        return list(results)

    def operands(self, inputs: Sequence[ir.Value]) -> list[ir.Value | None]:
        """Return the operands of the operator, None where one is left out."""
        x, w, r, *others = inputs
        bias = others[0] if self.has_bias else None
        states = [None, *others[self.has_bias :]] if self.has_states else []
        return [x, w, r, *([bias] if bias or states else []), *states]

    def _attributes(self) -> dict[str, int]:
        return {}

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Infer the sizes of the results from the sizes of the inputs."""
        (time, batch, _), _, (one, _, hidden) = input_shapes[:3]
        return [[time, one, batch, hidden], *[[one, batch, hidden]] * self.n_states]


def with_steps_of(outputs: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return the outputs of a loop over a sequence, with its number of steps if that is static."""
    if x.type.shape[0] is None or outputs.type.shape[0] is not None:
        return outputs
    return pt.specify_shape(outputs, (x.type.shape[0], *[None] * (outputs.type.ndim - 1)))


class LSTM(RecurrentOp):
    """Long short-term memory; the states are the output and the memory."""

    order = (0, 3, 1, 2)
    n_states = 2

    def step(
        self,
        of_input: TensorVariable,
        of_state: TensorVariable,
        *states: TensorVariable,
        variant: Variant = USUAL,
    ) -> tuple[TensorVariable, ...]:
        """Keep a part of the memory, add a part of a candidate and return a part of the sum."""
        f, g, h = variant.functions or (pt.sigmoid, pt.tanh, pt.tanh)
        bounded, memory = variant.bounded, states[1]
        i, o, forget, candidate = self._split(of_input + of_state, states[0])
        if variant.peepholes:
            i, forget = i + variant.peepholes[0] * memory, forget + variant.peepholes[2] * memory
        i = f(bounded(i))
        forget = 1 - i if variant.is_coupled else f(bounded(forget))
        memory = forget * memory + i * g(bounded(candidate))
        if variant.peepholes:
            # The output gate sees the new memory.
            o = o + variant.peepholes[1] * memory
        return f(bounded(o)) * h(memory), memory


class GRU(RecurrentOp):
    """Gated recurrent unit, whose reset gate scales the product with the state."""

    order = (1, 0, 2)

    def step(
        self,
        of_input: TensorVariable,
        of_state: TensorVariable,
        *states: TensorVariable,
        variant: Variant = USUAL,
    ) -> tuple[TensorVariable, ...]:
        """Move the state towards a candidate."""
        f, g = variant.functions or (pt.sigmoid, pt.tanh)
        bounded, of_reset, (state,) = variant.bounded, variant.of_reset, states
        input_z, input_r, input_n = self._split(of_input, state)
        # Without the candidate, whose product waits for the reset gate if that scales states.
        state_z, state_r, *rest = self._split(of_state, state, 2 if of_reset else 3)
        z, r = f(bounded(input_z + state_z)), f(bounded(input_r + state_r))
        scaled = of_reset(r * state) if of_reset else r * rest[0]
        return ((1 - z) * g(bounded(input_n + scaled)) + z * state,)

    def _biases(self, bias: TensorVariable, r: TensorVariable) -> list[TensorVariable]:
        half = len(self.order) * self._hidden_of(r)
        return [bias[:half], bias[half:]]

    def _attributes(self) -> dict[str, int]:
        return {"linear_before_reset": 1}


class RNN(RecurrentOp):
    """Hyperbolic tangent of the products with input and state.

    With ReLU, the operator of ONNX Runtime makes zeros of NaN.
    """

    order = (0,)

    @property
    def largest_batch(self) -> int:
        """Number of sequences up to which the operator takes less time than the loop."""
        return 64 // self.hidden if self.hidden else 0

    def step(
        self,
        of_input: TensorVariable,
        of_state: TensorVariable,
        *states: TensorVariable,
        variant: Variant = USUAL,
    ) -> tuple[TensorVariable, ...]:
        """Apply the function to the sum."""
        (f,) = variant.functions or (pt.tanh,)
        return (f(variant.bounded(of_input + of_state)),)


def recur(
    op: type[RecurrentOp],
    x: TensorVariable,
    weights: tuple[TensorVariable, TensorVariable],
    biases: Sequence[TensorVariable | None],
    states: Sequence[TensorVariable],
    *,
    hidden: int | None,
    reverse: bool = False,
) -> list[TensorVariable]:
    """Apply an Op to arrays in the layout of PyTensor, with the gates in PyTorch's order.

    Parameters
    ----------
    op
        Class of the Op.
    x
        Sequences (time, batch, inputs).
    weights
        Matrices (inputs, gates * hidden) and (hidden, gates * hidden).
    biases
        Vectors (gates * hidden,) that are added to the products of the sequences and of the state,
        None for zeros.
    states
        Initial states (batch, hidden), none for zeros.
    hidden
        Number of hidden units, None if it is unknown.
    reverse
        Whether the first step reads the last element.

    Returns
    -------
    list of TensorVariable
        Outputs of all steps (time, batch, hidden), and the last states (batch, hidden).
    """
    matrices = [_in_order(op, w, hidden).T[None] for w in weights]
    given = [None if b is None else _in_order(op, b, hidden) for b in biases]
    present = [b for b in given if b is not None]
    bias = []
    if present:
        both = [pt.zeros_like(present[0]) if b is None else b for b in given]
        bias.append(pt.concatenate(both)[None])
    options = {"has_bias": bool(present), "has_states": bool(states), "is_reversed": reverse}
    make = op(hidden=hidden, **options)
    outputs, *last = make(x, *matrices, *bias, *(state[None] for state in states))
    return [outputs[:, 0], *(state[0] for state in last)]


def _in_order(op: type[RecurrentOp], weights: TensorVariable, hidden: int | None) -> TensorVariable:
    """Return weights (..., gates * hidden) with the gates in the order of the operator."""
    if len(op.order) == 1:
        return weights
    size = hidden or weights.shape[-1] // len(op.order)
    return pt.concatenate([weights[..., i * size : (i + 1) * size] for i in op.order], axis=-1)
