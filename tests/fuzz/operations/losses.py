"""Losses as they are written in practice, with their gradients, at moderate and extreme logits."""

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, operation

LARGEST_LOGITS = (1.0, 10.0, 40.0, 100.0, 1000.0)
_P = "pt.sigmoid(x)"
_S = "pt.special.softmax(x, axis=-1)"
_LOG_S = "pt.special.log_softmax(x, axis=-1)"

# Of logits x and targets y in [0, 1], both of one shape.
BINARY = (
    f"-(y * pt.log({_P}) + (1 - y) * pt.log1p(-{_P}))",
    f"-(y * pt.log({_P}) + (1 - y) * pt.log(1 - {_P}))",
    f"-y * pt.log({_P}) - (1 - y) * pt.log1p(-{_P})",
    f"-pt.switch(pt.gt(y, 0.5), pt.log({_P}), pt.log1p(-{_P}))",
    f"-(y * pt.log({_P} + 1e-12) + (1 - y) * pt.log(1 - {_P} + 1e-12))",
    f"-(y * pt.log(pt.clip({_P}, 1e-7, 1 - 1e-7)))",
    f"-(y * (1 - {_P}) ** 2 * pt.log({_P}) + (1 - y) * {_P} ** 2 * pt.log1p(-{_P}))",
    f"-(2 * pt.log({_P}) + 3 * pt.log1p(-{_P}))",
    f"y * (pt.log(y + 1e-3) - pt.log({_P}))",
    "pt.softplus(x) - x * y",
    "pt.log1p(pt.exp(x)) - x * y",
    "pt.log(1 + pt.exp(x)) - x * y",
    "pt.maximum(x, 0) - x * y + pt.log1p(pt.exp(-pt.abs(x)))",
    "pt.log1p(pt.exp(-(2 * y - 1) * x))",
    "pt.maximum(0, 1 - (2 * y - 1) * x)",
    "pt.maximum(0, 1 - (2 * y - 1) * x) ** 2",
    "pt.switch(pt.le(pt.abs(x - y), 1), 0.5 * (x - y) ** 2, pt.abs(x - y) - 0.5)",
    "pt.log(pt.cosh(x - y))",
    "pt.exp(x) - y * x",
    "pt.softplus(x) - y * pt.log(pt.softplus(x))",
    "0.5 * (y - x) ** 2 * pt.exp(-x) + 0.5 * x",
    "pt.log1p(-pt.tanh(x) ** 2)",
    "pt.logaddexp(0, x) - x * y",
)
# Of logits x and weights y of the classes, both matrices of one shape.
CATEGORICAL = (
    f"-(y * pt.log({_S})).sum(axis=-1)",
    f"-(y * {_LOG_S}).sum(axis=-1)",
    "pt.logsumexp(x, axis=-1) - (x * y).sum(axis=-1)",
    "pt.log(pt.exp(x).sum(axis=-1)) - (x * y).sum(axis=-1)",
    "-(y * pt.log(pt.exp(x) / pt.exp(x).sum(axis=-1, keepdims=True))).sum(axis=-1)",
    "pt.log(pt.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1)) + x.max(axis=-1)",
    f"-pt.log({_S})[pt.arange(x.shape[0]), pt.argmax(y, axis=-1)]",
    f"-{_LOG_S}[pt.arange(x.shape[0]), pt.argmax(y, axis=-1)]",
    f"-pt.log({_S}[pt.arange(x.shape[0]), pt.argmax(y, axis=-1)])",
    f"(y * (pt.log(y + 1e-6) - {_LOG_S})).sum(axis=-1)",
    f"-(y * pt.log({_S} + np.finfo(x.dtype).tiny)).sum(axis=-1)",
    f"-({_S} * pt.log({_S})).sum(axis=-1)",
    f"-({_S} * {_LOG_S}).sum(axis=-1)",
    f"(({_S} - y) ** 2).sum(axis=-1)",
)
FORMS = (
    "[{loss}, pt.grad(pt.mean({loss}), {wrt})]",
    "pt.grad(pt.sum({loss}), {wrt})",
    "pt.mean({loss})",
    "(lambda c: pt.grad((c * ({loss})).sum(), {wrt}))(0.5)",
)


@operation
def loss(g: Graph) -> str | None:
    if any(t.is_loss for t in g.ends):
        return None
    is_binary = g.choices.below(2) == 0
    code = g.choices.of(BINARY if is_binary else CATEGORICAL)
    form = g.choices.of(FORMS)
    dtype = g.choices.of(WIDE)
    shape = [2, 3] if not is_binary or g.choices.below(2) else [5]
    rng = np.random.default_rng(g.choices.below(256))
    largest = g.choices.of(LARGEST_LOGITS)
    kind = g.choices.below(3)
    x = (
        rng.uniform(-largest, largest, size=shape)
        if kind
        else rng.choice([-largest, 0.0, largest], shape)
    )
    y = rng.random(shape) if kind == 1 else rng.integers(0, 2, size=shape)
    if not is_binary:
        y = np.eye(shape[-1])[rng.integers(0, shape[-1], size=shape[0])] if kind != 1 else y
    targets = g.given(dtype, y)
    if g.choices.one_in(4) and len(shape) == 2:
        weights = g.given(dtype, x.T.copy())
        features = g.given(dtype, np.eye(2))
        names = f"{weights}, {features}, {targets}"
        result = form.format(loss=code, wrt="w")
        g.add(f"(lambda w, u, y: (lambda x: {result})(u @ w.T))({names})", is_loss=True)
    else:
        logits = g.given(dtype, x)
        result = form.format(loss=code, wrt="x")
        g.add(f"(lambda x, y: {result})({logits}, {targets})", is_loss=True)
    return ""
