"""Steps of recurrent cells in NumPy, as PyTorch documents RNN, LSTM and GRU."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, h, _, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih + b_ih + h @ w_hh + b_hh), None


def lstm_step(x, h, c, w_ih, w_hh, b_ih, b_hh):
    i, f, g, o = np.split(x @ w_ih + b_ih + h @ w_hh + b_hh, 4, axis=-1)
    memory = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(memory), memory


def gru_step(x, h, _, w_ih, w_hh, b_ih, b_hh):
    input_r, input_z, input_n = np.split(x @ w_ih + b_ih, 3, axis=-1)
    state_r, state_z, state_n = np.split(h @ w_hh + b_hh, 3, axis=-1)
    r, z = sigmoid(input_r + state_r), sigmoid(input_z + state_z)
    return (1 - z) * np.tanh(input_n + r * state_n) + z * h, None


STEPS = {"rnn": rnn_step, "lstm": lstm_step, "gru": gru_step}
GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def recurrence(kind, x, w_ih, w_hh, b_ih=0.0, b_hh=0.0, h=0.0, c=0.0, *, mask=None, reverse=False):
    """Return the outputs of a layer for sequences (batch, time, inputs), and its last states."""
    shape = (x.shape[0], len(w_hh))
    b_ih, b_hh = (np.broadcast_to(b, w_hh.shape[1]) for b in (b_ih, b_hh))
    h, c = (np.broadcast_to(state, shape) for state in (h, c))
    outputs = np.zeros((*x.shape[:2], shape[1]))
    order = range(x.shape[1])
    for t in reversed(order) if reverse else order:
        new_h, new_c = STEPS[kind](x[:, t], h, c, w_ih, w_hh, b_ih, b_hh)
        if mask is not None:
            keep = mask[:, t, None]
            new_h = np.where(keep, new_h, h)
            new_c = None if new_c is None else np.where(keep, new_c, c)
        h, c = new_h, new_c
        outputs[:, t] = h
    return [outputs, h, c] if kind == "lstm" else [outputs, h]
