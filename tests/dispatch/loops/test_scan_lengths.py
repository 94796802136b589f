"""Every kind of loop gives PyTensor's values and gradients for no, one, two and many steps."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.scan.utils import until

from pytensor_onnx import export_onnx
from tests.conftest import PY, assert_same
from tests.dispatch.loops.loop_cases import scan

# Sums of a whole loop: rounding errors of the steps add up.
RTOL = 1e-9
LENGTHS = (0, 1, 2, 300)


def inner_loop(row, w):
    return scan(lambda e, y: e * w + 0.5 * y, [row], [pt.zeros(())])[-1]


def scaled(e, y):
    a, b = pt.scalars("a", "b")
    return OpFromGraph([a, b], [pt.tanh(a) * 0.5 + b * 0.1])(e, y)


KINDS = {
    "state": lambda x, m, s, n: scan(lambda e, y: pt.tanh(e + y), [x], [s]),
    "state without sequence": lambda x, m, s, n: scan(pt.sin, None, [s], n_steps=n),
    "several taps": lambda x, m, s, n: scan(
        lambda e, a, b: pt.tanh(a * e - b), [x], [{"initial": m[0, :3], "taps": [-3, -1]}]
    ),
    "taps without sequence": lambda x, m, s, n: scan(
        lambda a, b: pt.sin(a) * b, None, [{"initial": m[0, :2], "taps": [-2, -1]}], n_steps=n
    ),
    "taps of a sequence": lambda x, m, s, n: scan(
        lambda a, b, y: a * b + 0.5 * y,
        [{"input": pt.concatenate([x, m[0, :1]]), "taps": [0, 1]}],
        [s],
    ),
    "vector state": lambda x, m, s, n: scan(
        lambda e, h, m: pt.tanh(e + h @ m), [x], [pt.zeros(4)], [m]
    ),
    "several outputs": lambda x, m, s, n: scan(
        lambda e, y, z: (y * 0.5 + e, z * y, e * z), [x], [s, s, None]
    )[2],
    "reversed": lambda x, m, s, n: scan(
        lambda e, y: pt.tanh(e * y + e), [x], [s], go_backwards=True
    ),
    "truncated": lambda x, m, s, n: scan(
        lambda e, y: pt.tanh(e * y + e), [x], [s], truncate_gradient=2
    ),
    "fewer steps than elements": lambda x, m, s, n: scan(
        lambda e, y: pt.tanh(e * y + e), [pt.concatenate([x, x + 1, m[0]])], [s], n_steps=n
    ),
    "sum": lambda x, m, s, n: scan(lambda e, y: y + e * e, [x], [s]),
    "product": lambda x, m, s, n: scan(lambda e, y: y * pt.cos(e * 0.01), [x], [s]),
    "map": lambda x, m, s, n: scan(lambda e: pt.exp(e) * e, [x]),
    "condition": lambda x, m, s, n: scan(
        lambda e, y: (y * 0.9 + e, until(y > 1e9)), [pt.concatenate([x, m[0, :1]])], [s]
    ),
    "nested": lambda x, m, s, n: scan(lambda e, y, m: inner_loop(m[0], e) + 0.1 * y, [x], [s], [m]),
    "strict": lambda x, m, s, n: scan(
        lambda e, y, s: e * s + y * 0.5, [x], [pt.zeros(())], [s], strict=True
    ),
    "batched operation": lambda x, m, s, n: scan(
        lambda e, h, m: pt.vectorize(pt.sort, "(n)->(n)")(m * e) * 0.5 + 0.1 * h,
        [x],
        [pt.zeros((4, 4))],
        [m],
    ),
    "function": lambda x, m, s, n: scan(scaled, [x], [s]),
    "branch": lambda x, m, s, n: scan(lambda e, y: ifelse(e > 0, e + y * 0.5, pt.sin(y)), [x], [s]),
    "updates of elements": lambda x, m, s, n: scan(
        lambda e, h: pt.inc_subtensor(pt.set_subtensor(h[1], e)[0], h[2] * 0.1 + e), [x], [m[1]]
    ),
}


@pytest.fixture
def inputs():
    return [pt.vector("x"), pt.matrix("m"), pt.scalar("s"), pt.iscalar("n")]


def compare_for_all_lengths(inputs, outputs, lengths=LENGTHS):
    """Compare one compiled function, and one exported model, with PyTensor for every length."""
    with pytensor.config.change_flags(cxx=""):
        reference = pytensor.function(inputs, outputs, mode=PY, on_unused_input="ignore")
    in_mode = pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    program = export_onnx(inputs, outputs, verify=False)
    rng = np.random.default_rng(0)
    for length in lengths:
        arrays = [rng.normal(size=length), rng.normal(size=(4, 4)) * 0.5, 0.7, length]
        expected = reference(*arrays)
        for found in (in_mode(*arrays), program(*arrays)):
            for a, b in zip(found, expected, strict=True):
                assert_same(a, b, rtol=RTOL, atol=1e-12)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.few(2)
def test_values_and_gradients(inputs, make):
    y = make(*inputs)
    gradients = pt.grad((y**2).sum(), inputs[:3], disconnected_inputs="ignore")
    compare_for_all_lengths(inputs, [y, y.sum(), *gradients])


@pytest.mark.parametrize("kind", ["state", "several taps", "vector state", "reversed", "map"])
@pytest.mark.slow
def test_second_order_gradients(inputs, kind):
    x, m, s, _ = inputs
    first = pt.grad((KINDS[kind](*inputs) ** 2).sum(), x)
    second = pt.grad((first**2).sum(), [x, m, s], disconnected_inputs="ignore")
    # PyTensor's own second gradient of a loop of no steps loses the size of a row.
    compare_for_all_lengths(inputs, second, LENGTHS[kind == "vector state" :])


@pytest.mark.parametrize("n_steps", [0, 1, 2, 100])
def test_states_that_are_not_kept(n_steps):
    count = pytensor.shared(np.int64(1), name="count")
    n = pt.iscalar("n")
    with pytest.warns(DeprecationWarning, match="Updates dict"):
        _, updates = pytensor.scan(lambda: {count: count * 3}, n_steps=n)
    pytensor.function([n], [], updates=updates, mode="ONNX")(n_steps)
    with np.errstate(over="ignore"):
        expected = np.multiply.reduce(np.full(n_steps, 3, "int64"))
    assert count.get_value() == expected
