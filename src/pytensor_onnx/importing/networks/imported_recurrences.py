"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import filled, like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks import recurrent_ops as ops

type Optional = TensorVariable | None


@dataclass(frozen=True)
class _Layer:
    """A recurrent operator: its Op, numbers of gates and states, and activations by default."""

    op: type[ops.RecurrentOp]
    gates: int
    states: int
    functions: tuple[str, ...]


_LSTM = _Layer(ops.LSTM, 4, 2, ("Sigmoid", "Tanh", "Tanh"))
_GRU = _Layer(ops.GRU, 3, 1, ("Sigmoid", "Tanh"))
_RNN = _Layer(ops.RNN, 1, 1, ("Tanh",))


@dataclass(frozen=True)
class _Options:
    """The attributes of a recurrent operator."""

    direction: str
    layout: int
    clip: float | None
    activations: tuple[str, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    input_forget: bool = False
    is_reset_late: bool = True


@dataclass(frozen=True)
class _Operands:
    """The operands of a recurrent operator."""

    x: TensorVariable
    w: TensorVariable
    r: TensorVariable
    bias: Optional
    lengths: Optional
    states: Sequence[Optional]
    peepholes: Optional = None

    def of_direction(self, i: int) -> _Operands:
        """Return the operands of one direction: its part of the weights and states."""
        w, r, bias, *states, peepholes = (
            None if v is None else v[i : i + 1]
            for v in (self.w, self.r, self.bias, *self.states, self.peepholes)
        )
        return _Operands(self.x, w, r, bias, self.lengths, states, peepholes)

    def batch_last(self) -> _Operands:
        """Return operands whose first axis is the batch with the batch behind the steps."""
        states = [None if s is None else s.dimshuffle(1, 0, 2) for s in self.states]
        return replace(self, x=self.x.dimshuffle(1, 0, 2), states=states)


@dataclass(frozen=True)
class _Direction:
    """One pass over a sequence: its activations by name, and as functions."""

    is_reversed: bool
    names: tuple[str, ...]
    functions: Sequence[Callable[..., Any]]


@onnx_import("LSTM")
def lstm(
    x: TensorVariable,
    w: TensorVariable,
    r: TensorVariable,
    bias: Optional = None,
    lengths: Optional = None,
    h: Optional = None,
    c: Optional = None,
    peepholes: Optional = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> list[TensorVariable]:
    """Run a long short-term memory."""
    options = _Options(
        direction,
        layout,
        clip,
        activations,
        activation_alpha,
        activation_beta,
        input_forget=bool(input_forget),
    )
    return _run(_LSTM, options, _Operands(x, w, r, bias, lengths, [h, c], peepholes))


@onnx_import("GRU")
def gru(
    x: TensorVariable,
    w: TensorVariable,
    r: TensorVariable,
    bias: Optional = None,
    lengths: Optional = None,
    h: Optional = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> list[TensorVariable]:
    """Run a gated recurrent unit."""
    options = _Options(
        direction,
        layout,
        clip,
        activations,
        activation_alpha,
        activation_beta,
        is_reset_late=bool(linear_before_reset),
    )
    return _run(_GRU, options, _Operands(x, w, r, bias, lengths, [h]))


@onnx_import("RNN")
def rnn(
    x: TensorVariable,
    w: TensorVariable,
    r: TensorVariable,
    bias: Optional = None,
    lengths: Optional = None,
    h: Optional = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> list[TensorVariable]:
    """Run an Elman network."""
    options = _Options(direction, layout, clip, activations, activation_alpha, activation_beta)
    return _run(_RNN, options, _Operands(x, w, r, bias, lengths, [h]))


def _run(layer: _Layer, options: _Options, operands: _Operands) -> list[TensorVariable]:
    """Run each direction; return all outputs and the last states."""
    if options.layout:
        operands = operands.batch_last()
    directions = _directions(layer, options)
    found = [
        _run_direction(
            layer, options, direction, operands.of_direction(i) if len(directions) > 1 else operands
        )
        for i, direction in enumerate(directions)
    ]
    y, *last = (
        parts[0] if len(parts) == 1 else pt.concatenate(parts, axis=1 - (n > 0))
        for n, parts in enumerate(zip(*found, strict=True))
    )
    if options.layout:
        y, last = y.dimshuffle(2, 0, 1, 3), [s.dimshuffle(1, 0, 2) for s in last]
    return [y, *last]


def _directions(layer: _Layer, options: _Options) -> list[_Direction]:
    """Return the passes over a sequence; all activations take their parameters in order."""
    reverses = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    alphas, betas = iter(options.alphas), iter(options.betas)
    count = len(layer.functions)
    found = []
    for i, is_reversed in enumerate(reverses[options.direction]):
        names = tuple(options.activations[i * count : (i + 1) * count]) or layer.functions
        functions = [_function(name.lower(), alphas, betas) for name in names]
        found.append(_Direction(is_reversed, names, functions))
    return found


def _run_direction(
    layer: _Layer, options: _Options, direction: _Direction, of: _Operands
) -> list[TensorVariable]:
    """Run one direction, by the package's Op where it computes this case."""
    of = replace(of, states=of.states[: layer.states])
    is_plain = direction.names == layer.functions and of.lengths is None and of.peepholes is None
    is_plain = is_plain and options.clip is None and not options.input_forget
    if not (is_plain and options.is_reset_late):
        return _loop(layer, options, direction, of)
    given = [s for s in of.states if s is not None]
    filled = [pt.zeros_like(given[0]) if s is None else s for s in of.states] if given else []
    op = layer.op(
        hidden=of.r.type.shape[-1],
        has_bias=of.bias is not None,
        has_states=bool(filled),
        is_reversed=direction.is_reversed,
    )
    biases = [] if of.bias is None else [of.bias]
    return list(op(of.x, of.w, of.r, *biases, *filled, return_list=True))


def _function(name: str, alphas: Any, betas: Any) -> Callable[..., Any]:
    simple: dict[str, Callable[..., Any]] = {
        "sigmoid": pt.sigmoid,
        "tanh": pt.tanh,
        "relu": lambda x: pt.maximum(x, like(x, 0)),
        "softsign": lambda x: x / (like(x, 1) + pt.abs(x)),
        "softplus": pt.softplus,
    }
    if name in simple:
        return simple[name]
    if name == "affine":
        a, b = next(alphas, 1.0), next(betas, 0.0)
        return lambda x: like(x, a) * x + like(x, b)
    if name == "leakyrelu":
        a = next(alphas, 0.01)
        return lambda x: pt.switch(x < like(x, 0), like(x, a) * x, x)
    if name == "thresholdedrelu":
        a = next(alphas, 1.0)
        return lambda x: pt.switch(x > like(x, a), x, like(x, 0))
    if name == "scaledtanh":
        a, b = next(alphas, 1.0), next(betas, 1.0)
        return lambda x: like(x, a) * pt.tanh(like(x, b) * x)
    if name == "hardsigmoid":
        a, b = next(alphas, 0.2), next(betas, 0.5)
        return lambda x: pt.clip(like(x, a) * x + like(x, b), like(x, 0), like(x, 1))
    if name == "elu":
        a = next(alphas, 1.0)
        return lambda x: pt.switch(
            x > like(x, 0), x, like(x, a) * pt.expm1(pt.minimum(x, like(x, 0)))
        )
    raise UnsupportedCase(f"its activation {name} is not one of the standard")


def _loop(
    layer: _Layer, options: _Options, direction: _Direction, of: _Operands
) -> list[TensorVariable]:
    """Run the steps of the standard in a scan; steps beyond a length keep the state."""
    x, r, is_reversed = of.x, of.r, direction.is_reversed
    hidden = size(r, 2)
    zeros = filled(like(x, 0), [size(x, 1), hidden])
    initial = [zeros if s is None else s[0] for s in of.states]
    half = layer.gates * hidden
    of_input = None if of.bias is None else of.bias[0, :half]
    of_state = None if of.bias is None else of.bias[0, half:]
    present = [v for v in (of_input, of_state) if v is not None]
    points = [] if of.peepholes is None else [of.peepholes[0]]
    ends = [] if of.lengths is None else [of.lengths]
    step_of = {_LSTM.op: _lstm_step, _GRU.op: _gru_step, _RNN.op: _rnn_step}[layer.op]

    def bounded(v: TensorVariable) -> TensorVariable:
        clip = options.clip
        return v if clip is None else pt.clip(v, like(v, -clip), like(v, clip))

    def step(index: Any, element: Any, *rest: Any) -> Any:
        own, (w, r, *others) = rest[: layer.states], rest[layer.states :]
        biases = others[: len(present)]
        more = others[len(present) :]
        product = element @ w
        weights = _Weights(r, biases, hidden, more[0] if points else None)
        if biases:
            product = product + biases[0]
        new = step_of(product, own, weights, direction.functions, bounded, options)
        if ends:
            is_on = (index < more[-1])[:, None]
            output = pt.switch(is_on, new[0], pt.zeros_like(new[0]))
            new = [pt.switch(is_on, a, b) for a, b in zip(new, own, strict=True)]
            return [*new, output]
        return list(new)

    traces = pytensor.scan(
        step,
        sequences=[pt.arange(size(x, 0)), x],
        outputs_info=[*initial, *([None] if ends else [])],
        non_sequences=[of.w[0].T, r[0].T, *present, *points, *ends],
        go_backwards=is_reversed,
        return_list=True,
        return_updates=False,
        strict=False,
    )
    outputs = traces[-1] if ends else traces[0]
    outputs = outputs[::-1] if is_reversed else outputs
    last = [
        pt.concatenate([first[None], trace])[-1][None]
        for first, trace in zip(initial, traces, strict=False)
    ]
    return [ops.with_steps_of(outputs[:, None], x), *last]


@dataclass(frozen=True)
class _Weights:
    """The weights of the state in a step."""

    matrix: Any
    biases: Sequence[Any]
    hidden: Any
    peepholes: Any

    def product(self, state: Any, first: int, count: int) -> Any:
        """Return the product of a state with the weights of some gates, and their bias."""
        part = slice(first * self.hidden, (first + count) * self.hidden)
        result = state @ self.matrix[:, part]
        return result + self.biases[1][part] if self.biases else result

    def gate(self, values: Any, position: int) -> Any:
        """Return the part of a gate."""
        return values[:, position * self.hidden : (position + 1) * self.hidden]

    def peephole(self, position: int) -> Any:
        """Return the weights from the memory to a gate, zero by default."""
        return (
            0
            if self.peepholes is None
            else self.peepholes[position * self.hidden : (position + 1) * self.hidden]
        )


def _lstm_step(
    product: Any, states: Any, weights: _Weights, functions: Any, bounded: Any, options: _Options
) -> list[Any]:
    f, g, h = functions
    hidden, memory = states
    total = product + weights.product(hidden, 0, 4)
    i, o, forget, c = (weights.gate(total, n) for n in range(4))
    if weights.peepholes is not None:
        i = i + weights.peephole(0) * memory
        forget = forget + weights.peephole(2) * memory
    i = f(bounded(i))
    forget = like(i, 1) - i if options.input_forget else f(bounded(forget))
    memory = forget * memory + i * g(bounded(c))
    if weights.peepholes is not None:
        o = o + weights.peephole(1) * memory
    return [f(bounded(o)) * h(memory), memory]


def _gru_step(
    product: Any, states: Any, weights: _Weights, functions: Any, bounded: Any, options: _Options
) -> list[Any]:
    f, g = functions
    (hidden,) = states
    gates = weights.product(hidden, 0, 2)
    z = f(bounded(weights.gate(product, 0) + weights.gate(gates, 0)))
    r = f(bounded(weights.gate(product, 1) + weights.gate(gates, 1)))
    if options.is_reset_late:
        candidate = r * weights.product(hidden, 2, 1)
    else:
        candidate = weights.product(r * hidden, 2, 1)
    new = g(bounded(weights.gate(product, 2) + candidate))
    return [(like(z, 1) - z) * new + z * hidden]


def _rnn_step(
    product: Any, states: Any, weights: _Weights, functions: Any, bounded: Any, options: _Options
) -> list[Any]:
    return [functions[0](bounded(product + weights.product(states[0], 0, 1)))]
