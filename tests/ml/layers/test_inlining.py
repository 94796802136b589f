import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.traversal import apply_ancestors
from pytensor.tensor.special import Softmax

from pytensor_onnx.ml.layers.inlining import is_layer
from pytensor_onnx.rewriting import ONNX_QUERY


def rewritten(outputs):
    mode = pytensor.compile.mode.Mode("py", ONNX_QUERY)
    fgraph = pytensor.graph.FunctionGraph(outputs=outputs, clone=True)
    mode.optimizer.rewrite(fgraph)
    return fgraph


def test_a_layer_is_inlined_for_later_rewrites():
    layers = pytest.importorskip("pytensor_ml.layers")
    x = pt.matrix("x", shape=(None, 3))
    y = layers.Linear("fc", n_in=3, n_out=2)(x)
    assert any(is_layer(node.op) for node in apply_ancestors([y]))
    fgraph = rewritten([y])
    assert not any(isinstance(node.op, OpFromGraph) for node in fgraph.toposort())
    assert fgraph.outputs[0].name == "fc_output"


def test_a_function_of_the_user_is_not_inlined():
    x = pt.matrix("x")
    op = OpFromGraph([x], [pt.exp(x) * 2], name="f")
    (node,) = rewritten([op(x)]).toposort()
    assert isinstance(node.op, OpFromGraph)


def test_a_symbolic_op_of_pytensor_is_not_inlined():
    x = pt.matrix("x")
    (node,) = rewritten([pt.special.softmax(x, axis=1)]).toposort()
    assert isinstance(node.op, Softmax)


def test_an_inlined_layer_computes_the_same():
    layers = pytest.importorskip("pytensor_ml.layers")
    x = pt.matrix("x", shape=(None, 3))
    layer = layers.Linear("fc", n_in=3, n_out=2)
    value = np.arange(6.0).reshape(2, 3)
    result = pytensor.function([x], layer(x), mode="ONNX")(value)
    expected = value @ layer.W.get_value() + layer.b.get_value()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_gradients_of_layers_are_inlined():
    layers = pytest.importorskip("pytensor_ml.layers")
    activations = pytest.importorskip("pytensor_ml.activations")
    x = pt.matrix("x", shape=(None, 3))
    first, second = (layers.Linear(name, n_in=3, n_out=3) for name in ("first", "second"))
    y = second(activations.SoftPlus()(first(x)))
    fgraph = rewritten(pt.grad((y**2).sum(), [first.W, second.W]))
    assert not any(isinstance(node.op, OpFromGraph) for node in fgraph.toposort())
    assert sum("dot" in str(node.op).lower() for node in fgraph.toposort()) == 5


def test_second_derivatives_of_layers_are_inlined():
    layers = pytest.importorskip("pytensor_ml.layers")
    x = pt.matrix("x", shape=(None, 3))
    gradient = pt.grad((layers.Linear("fc", n_in=3, n_out=3)(x) ** 2).sum(), x)
    fgraph = rewritten([pt.grad((gradient**2).sum(), x)])
    assert not any(isinstance(node.op, OpFromGraph) for node in fgraph.toposort())


@pytest.mark.slow
def test_gradients_of_functions_and_of_padding_are_inlined():
    x = pt.matrix("x")
    f = OpFromGraph([x], [pt.exp(x) * 2], name="f")
    y = f(pt.pad(x, ((1, 1), (0, 2)), mode="constant"))
    fgraph = rewritten([pt.grad((y**2).sum(), x)])
    (function,) = (node for node in fgraph.toposort() if type(node.op) is OpFromGraph)
    assert len(function.outputs) == 1


@pytest.mark.parametrize("function", [pt.logsumexp, pt.special.softmax, pt.logaddexp])
def test_the_gradient_of_a_symbolic_op_is_inlined(function):
    x = pt.matrix("x")
    y = function(x, x**2) if function is pt.logaddexp else function(x, axis=1)
    fgraph = rewritten([pt.grad((y**2).sum(), x)])
    allowed = (Softmax, pt.special.LogSumExp, pt.special.LogAddExp)
    others = [n.op for n in fgraph.toposort() if isinstance(n.op, OpFromGraph)]
    assert all(isinstance(op, allowed) for op in others)
