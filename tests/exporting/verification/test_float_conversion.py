"""A converted graph computes the results of the same code for float64 inputs."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import nn
from pytensor_onnx.exporting.verification.float_conversion import in_double
from pytensor_onnx.exporting.verification.results import evaluate


def function_of(x):
    inner = x.type()
    return OpFromGraph([inner], [pt.exp(inner) / 3, inner.sum()])(x)[0]


def nested_functions(x):
    outer, inner = x.type(), x.type()
    half = OpFromGraph([inner], [inner / 2])
    return OpFromGraph([outer], [half(outer + 1) * outer])(x)


def loop(x):
    return pytensor.scan(
        lambda row, total: pt.tanh(row / 3) + total,
        sequences=[x],
        outputs_info=[pt.zeros(x.shape[1], dtype=x.dtype)],
        return_updates=False,
    )


GRAPHS = {
    "elementwise": lambda x: pt.exp(x) / 3 + pt.switch(x > 0, x, -x) ** 2,
    "sums": lambda x: (x / 3).sum(axis=0) + (x / 7).mean() + pt.prod(x),
    "extremes": lambda x: pt.max(x / 3, axis=0) + x.std(axis=0),
    "rounding": lambda x: pt.cast(x / 3, x.dtype) + pt.floor(x),
    "indices": lambda x: pt.argmax(x, axis=1) + pt.cast(x[:, 0] * 10, "int64"),
    "selection": lambda x: pt.set_subtensor(x[1:, [0, 2]], 1 / (1 + x[1:, :2] ** 2)),
    "linear algebra": lambda x: pt.dot(x, x.T) / 3,
    "batches": lambda x: pt.matmul(x[None] / 3, x.T[None]),
    "made": lambda x: pt.stack([x[0, 0] / 3, x[1, 1]]) + pt.arange(2, dtype=x.dtype),
    "identity": lambda x: pt.eye(3, dtype=x.dtype) / 3 + pt.full((3, 3), x[0, 0]),
    "softmax": lambda x: pt.special.softmax(x / 3, axis=1),
    "branches": lambda x: ifelse(pt.gt(x[0, 0], 5), x / 3, x / 7),
    "functions": function_of,
    "nested functions": nested_functions,
    "loops": loop,
    "shapes": lambda x: pt.concatenate([x, x / 3]).reshape((-1,)).dimshuffle(0, "x"),
    "sorted": lambda x: pt.sort(x / 3, axis=0) + pt.cumsum(x, axis=0),
    "convolution": lambda x: nn.conv2d(x[None, None], x[None, None, :2, :2]) / 3,
    "layer norm": lambda x: nn.layer_norm(x, x[0], x[1], epsilon=0.5),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_float32_is_computed_in_float64(name):
    values = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    narrow, wide = (pt.matrix("x", dtype=dtype) for dtype in ("float32", "float64"))
    graph = in_double(FunctionGraph([narrow], [GRAPHS[name](narrow)]))
    expected = FunctionGraph([wide], [GRAPHS[name](wide)])
    assert graph.inputs[0].type.dtype == "float64"
    wide_values = [values.astype("float64")]
    (found,), (wanted,) = evaluate(graph, wide_values), evaluate(expected, wide_values)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_casts_to_narrow_floats_round_nothing():
    x = pt.vector("x", dtype="float64")
    y = pt.cast(pt.cast(x / 3, "float32"), "float64") + pt.cast(x, "float16")
    (found,) = evaluate(in_double(FunctionGraph([x], [y])), [np.array([0.1, 7.0])])
    np.testing.assert_allclose(found, np.array([0.1, 7.0]) * 4 / 3, rtol=1e-15)


def test_operations_with_a_single_dtype_keep_it():
    state = pytensor.shared(np.random.default_rng(0))
    x = pt.vector("x", dtype="float32")
    draws = pt.random.normal(x, 1, rng=state, dtype="float32")
    fgraph = FunctionGraph([x, state], [draws, state])
    graph = in_double(fgraph)
    assert graph.outputs[0].type.dtype == "float64"


def test_other_graphs_are_unchanged():
    n, x = pt.lvector("n"), pt.vector("x", dtype="float64")
    graph = in_double(FunctionGraph([n, x], [n + 1, x + 1]))
    assert [v.type.dtype for v in graph.outputs] == ["int64", "float64"]
