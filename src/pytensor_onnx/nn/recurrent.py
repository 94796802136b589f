"""Recurrent layers over sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv import shape_of
from pytensor_onnx.ops.networks import recurrent_ops as ops

_GATES = "gates * hidden"


def lstm(
    x: TensorLike,
    w_ih: TensorLike,
    w_hh: TensorLike,
    b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None,
    h0: TensorLike | None = None,
    c0: TensorLike | None = None,
    *,
    reverse: bool = False,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Run a long short-term memory over sequences, exported as one ``LSTM`` in float32.

    Parameters
    ----------
    x
        Sequences (batch, time, inputs), or one sequence (time, inputs).
    w_ih
        Weights of the inputs (inputs, 4 * hidden), of the gates i, f, g and o in this order. They
        are PyTorch's ``weight_ih_l0`` transposed, and the ``W_ih`` of pytensor-ml.
    w_hh
        Weights of the state (hidden, 4 * hidden).
    b_ih, b_hh
        Biases (4 * hidden,), which are added.
    h0, c0
        Initial output and memory (batch, hidden), or (hidden,) for one sequence; zeros by default.
    reverse
        Whether to read the sequences from the last step to the first. Outputs stay at the position
        of their input.

    Returns
    -------
    y, h, c : TensorVariable
        The outputs (batch, time, hidden), and output and memory (batch, hidden) after the step
        that is computed last::

            i, f, g, o = split(x[:, t] @ w_ih + b_ih + h @ w_hh + b_hh)
            c = sigmoid(f) * c + sigmoid(i) * tanh(g)
            h = sigmoid(o) * tanh(c)

    Raises
    ------
    TypeError, ValueError
        If the dtype of an array is not a float, or ranks or known sizes do not fit.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.tensor("x", shape=(1, 5, 3), dtype="float32")
    >>> w, r = np.ones((3, 8), "float32"), np.ones((2, 8), "float32")
    >>> program = export_onnx(x, lstm(x, w, r)[0], assume_finite=True)
    >>> [node.op_type for node in program.model.graph]
    ['Transpose', 'LSTM', 'Squeeze', 'Transpose']
    """
    y, h, c = _recur(ops.LSTM, x, (w_ih, w_hh), (b_ih, b_hh), (h0, c0), reverse)
    return y, h, c


def gru(
    x: TensorLike,
    w_ih: TensorLike,
    w_hh: TensorLike,
    b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None,
    h0: TensorLike | None = None,
    *,
    reverse: bool = False,
) -> tuple[TensorVariable, TensorVariable]:
    """Run a gated recurrent unit over sequences, exported as one ``GRU`` in float32.

    Parameters
    ----------
    x, reverse
        As for `lstm`.
    w_ih, w_hh
        Weights (inputs, 3 * hidden) and (hidden, 3 * hidden) of the gates r, z and n.
    b_ih, b_hh
        Biases (3 * hidden,). The reset gate scales the last third of ``b_hh``.
    h0
        Initial state (batch, hidden), or (hidden,) for one sequence; zeros by default.

    Returns
    -------
    y, h : TensorVariable
        The states after all steps (batch, time, hidden), and the one (batch, hidden) after the step
        that is computed last::

            r, z, n = split(x[:, t] @ w_ih + b_ih)
            r_h, z_h, n_h = split(h @ w_hh + b_hh)
            z = sigmoid(z + z_h)
            h = (1 - z) * tanh(n + sigmoid(r + r_h) * n_h) + z * h

    Raises
    ------
    TypeError, ValueError
        As for `lstm`.

    Examples
    --------
    >>> x = np.ones((1, 2, 1), "float32")
    >>> y, h = gru(x, np.zeros((1, 3), "float32"), np.zeros((1, 3), "float32"), h0=[[8.0]])
    >>> y.eval(mode="ONNX").ravel(), h.eval(mode="ONNX").ravel()
    (array([4., 2.], dtype=float32), array([2.], dtype=float32))
    """
    y, h = _recur(ops.GRU, x, (w_ih, w_hh), (b_ih, b_hh), (h0,), reverse)
    return y, h


def rnn(
    x: TensorLike,
    w_ih: TensorLike,
    w_hh: TensorLike,
    b_ih: TensorLike | None = None,
    b_hh: TensorLike | None = None,
    h0: TensorLike | None = None,
    *,
    reverse: bool = False,
) -> tuple[TensorVariable, TensorVariable]:
    """Run an Elman network over sequences, exported as ``RNN`` or as a loop in float32.

    Parameters
    ----------
    x, h0, reverse
        As for `gru`.
    w_ih, w_hh
        Weights (inputs, hidden) and (hidden, hidden).
    b_ih, b_hh
        Biases (hidden,), which are added.

    Returns
    -------
    y, h : TensorVariable
        The states after all steps (batch, time, hidden), and the one (batch, hidden) after the step
        that is computed last: ``h = tanh(x[:, t] @ w_ih + b_ih + h @ w_hh + b_hh)``.

    Raises
    ------
    TypeError, ValueError
        As for `lstm`.

    Examples
    --------
    >>> one = np.ones((1, 1), "float32")
    >>> y, h = rnn(np.zeros((1, 2, 1), "float32"), one, one, b_ih=[1.0])
    >>> y.eval(mode="ONNX").ravel().round(3)
    array([0.762, 0.943], dtype=float32)
    """
    y, h = _recur(ops.RNN, x, (w_ih, w_hh), (b_ih, b_hh), (h0,), reverse)
    return y, h


def _recur(
    op: type[ops.RecurrentOp],
    x: TensorLike,
    weights: Sequence[TensorLike],
    biases: Sequence[TensorLike | None],
    states: Sequence[TensorLike | None],
    reverse: bool,
) -> list[TensorVariable]:
    """Check the arguments, and apply an Op to them with the axis of time first."""
    name, sequences = op.__name__.lower(), pt.as_tensor(x)
    batch = () if sequences.type.ndim == 2 else ("batch",)
    arguments = {"x": (sequences, (*batch, "time", "inputs"))}
    for what, values, axes in (
        (("w_ih",), weights[:1], ("inputs", _GATES)),
        (("w_hh",), weights[1:], ("hidden", _GATES)),
        (("b_ih", "b_hh"), biases, (_GATES,)),
        (("h0", "c0"), states, (*batch, "hidden")),
    ):
        for one, value in zip(what, values, strict=False):
            if value is not None:
                arguments[one] = (_like(sequences, value), axes)
    sizes = _sizes(name, len(op.order), arguments)
    dtype = str(np.result_type(*(value.type.dtype for value, _ in arguments.values())))
    arrays = {what: value.astype(dtype) for what, (value, _) in arguments.items()}
    sequences = arrays["x"].dimshuffle(*((1, 0, 2) if batch else (0, "x", 1)))
    names = ("h0", "c0")[: len(states)]
    given = [arrays[what] for what in names if what in arrays]
    initial = [arrays.get(what, pt.zeros_like(given[0])) for what in names] if given else []
    y, *last = ops.recur(
        op,
        sequences,
        (arrays["w_ih"], arrays["w_hh"]),
        (arrays.get("b_ih"), arrays.get("b_hh")),
        initial if batch else [state[None] for state in initial],
        hidden=sizes.get("hidden"),
        reverse=reverse,
    )
    return [y.dimshuffle(1, 0, 2), *last] if batch else [y[:, 0], *(state[0] for state in last)]


def _like(x: TensorVariable, value: TensorLike) -> TensorVariable:
    """Return an argument as a tensor, numbers of Python in the dtype of another."""
    has_dtype = isinstance(value, Variable | np.ndarray | np.generic)
    return pt.as_tensor(value) if has_dtype else pt.as_tensor(np.asarray(value, x.type.dtype))


def _sizes(
    name: str, gates: int, arguments: Mapping[str, tuple[TensorVariable, Sequence[str]]]
) -> dict[str, int]:
    """Return the known sizes by the names of the axes.

    Raises
    ------
    TypeError, ValueError
        If an argument does not consist of floats, or sizes differ.
    """
    found: dict[str, int] = {}
    for what, (value, axes) in arguments.items():
        if value.type.dtype not in ("float16", "float32", "float64"):
            raise TypeError(f"{name}: {what} must be an array of floats; got {value.type.dtype}")
        wanted = f"({', '.join(axes)})"
        if value.type.ndim != len(axes):
            raise ValueError(f"{name}: {what} must have the axes {wanted}; got {value.type}")
        for axis, length in zip(axes, shape_of(value), strict=True):
            if length is None:
                continue
            is_of_gates = axis == _GATES
            size, rest = divmod(length, gates if is_of_gates else 1)
            if rest or found.setdefault("hidden" if is_of_gates else axis, size) != size:
                sizes = ", ".join(f"{known} = {number}" for known, number in found.items())
                raise ValueError(
                    f"{name}: {what} has the shape {shape_of(value)}; it must be {wanted} with "
                    f"gates = {gates}, {sizes}"
                )
    return found
