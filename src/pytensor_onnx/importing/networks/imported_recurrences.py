"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.tensor.type import TensorType
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


LONG_MEMORY = _Layer(ops.LSTM, 4, 2, ("Sigmoid", "Tanh", "Tanh"))
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
    of_state: Callable[[TensorVariable], TensorVariable] | None = None


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


def types_of_layer(
    layer: _Layer, hidden: int | None, x: TensorVariable, attributes: Mapping[str, Any]
) -> list[TensorType]:
    """Return the types of the results of a layer with the batch behind the steps.

    Raises
    ------
    UnsupportedCase
        If an activation is not one of the standard.
    """
    names = ("activations", "activation_alpha", "activation_beta")
    given = [attributes.get(name, ()) for name in names]
    options = _Options(attributes.get("direction", "forward"), 0, None, *given)
    count, (time, batch, _) = len(_directions(layer, options)), x.type.shape
    last = TensorType(x.type.dtype, (count, batch, hidden))
    return [TensorType(x.type.dtype, (time, *last.shape)), *[last] * layer.states]


def _types_of(layer: _Layer) -> Callable[..., list[TensorType]]:
    def types(
        x: TensorVariable, w: TensorVariable, r: TensorVariable, *_: Any, **attributes: Any
    ) -> list[TensorType]:
        return types_of_layer(layer, r.type.shape[2], x, attributes)

    return types


@onnx_import("LSTM", types=_types_of(LONG_MEMORY))
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
    of_state: Callable[[TensorVariable], TensorVariable] | None = None,
) -> list[TensorVariable]:
    """Run a long short-term memory; a function may change the state before its product."""
    options = _Options(
        direction,
        layout,
        clip,
        activations,
        activation_alpha,
        activation_beta,
        input_forget=bool(input_forget),
        of_state=of_state,
    )
    return _run(LONG_MEMORY, options, _Operands(x, w, r, bias, lengths, [h, c], peepholes))


@onnx_import("GRU", types=_types_of(_GRU))
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


@onnx_import("RNN", types=_types_of(_RNN))
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
    is_plain = is_plain and options.of_state is None
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


_ACTIVATIONS: dict[str, tuple[tuple[float, ...], Callable[..., Any]]] = {
    "affine": ((1.0, 0.0), lambda x, a, b: a * x + b),
    "elu": ((1.0,), lambda x, a: pt.switch(x > 0, x, a * pt.expm1(pt.minimum(x, like(x, 0))))),
    "hardsigmoid": ((0.2, 0.5), lambda x, a, b: pt.clip(a * x + b, like(x, 0), like(x, 1))),
    "leakyrelu": ((0.01,), lambda x, a: pt.switch(x < 0, a * x, x)),
    "relu": ((), lambda x: pt.maximum(x, like(x, 0))),
    "scaledtanh": ((1.0, 1.0), lambda x, a, b: a * pt.tanh(b * x)),
    "sigmoid": ((), pt.sigmoid),
    "softplus": ((), pt.softplus),
    "softsign": ((), lambda x: x / (1 + pt.abs(x))),
    "tanh": ((), pt.tanh),
    "thresholdedrelu": ((1.0,), lambda x, a: pt.switch(x > a, x, like(x, 0))),
}
"""Parameters by default, alpha before beta, and the function of an operand and the parameters."""


def _function(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Callable[..., Any]:
    """Return an activation, with the next of the given parameters if it has some."""
    if name not in _ACTIVATIONS:
        raise UnsupportedCase(f"its activation {name} is not one of the standard")
    defaults, function = _ACTIVATIONS[name]
    values = [next(given, x) for given, x in zip((alphas, betas), defaults, strict=False)]
    return lambda x: function(x, *(like(x, value) for value in values))


def _loop(
    layer: _Layer, options: _Options, direction: _Direction, of: _Operands
) -> list[TensorVariable]:
    """Run the steps of the standard in a scan; steps beyond a length keep the state."""
    x, r, is_reversed = of.x, of.r, direction.is_reversed
    hidden = size(r, 2)
    op = layer.op(
        hidden=r.type.shape[-1],
        has_bias=of.bias is not None,
        has_states=True,
        is_reversed=is_reversed,
    )
    zeros = filled(like(x, 0), [size(x, 1), hidden])
    initial = [zeros if s is None else s[0] for s in of.states]
    half = layer.gates * hidden
    present = [] if of.bias is None else [of.bias[0, :half], of.bias[0, half:]]
    points = []
    if of.peepholes is not None:
        points = pt.split(of.peepholes[0], [hidden] * 3, n_splits=3)
    ends = [] if of.lengths is None else [of.lengths]

    def bounded(v: TensorVariable) -> TensorVariable:
        clip = options.clip
        return v if clip is None else pt.clip(v, like(v, -clip), like(v, clip))

    def step(index: Any, element: Any, *rest: Any) -> Any:
        own, (w, r, *others) = rest[: layer.states], rest[layer.states :]
        biases, others = others[: len(present)], others[len(present) :]
        # The first gates of a unit whose reset gate scales the state: the candidate comes after it.
        count = (2 if layer is _GRU and not options.is_reset_late else layer.gates) * hidden
        state = own[0] if options.of_state is None else options.of_state(own[0])
        of_input, of_state = element @ w, state @ r[:, :count]
        if biases:
            of_input, of_state = of_input + biases[0], of_state + biases[1][:count]

        def of_reset(state: TensorVariable) -> TensorVariable:
            product = state @ r[:, count:]
            return product + biases[1][count:] if biases else product

        variant = ops.Variant(
            functions=direction.functions,
            bounded=bounded,
            peepholes=others[: len(points)],
            is_coupled=options.input_forget,
            of_reset=None if options.is_reset_late else of_reset,
        )
        new = op.step(of_input, of_state, *own, variant=variant)
        if ends:
            is_on = (index < others[-1])[:, None]
            output = pt.switch(is_on, new[0], pt.zeros_like(new[0]))
            new = tuple(pt.switch(is_on, a, b) for a, b in zip(new, own, strict=True))
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
