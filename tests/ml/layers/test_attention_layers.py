import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx.ops.networks.attention_ops import Attention
from pytensor_onnx.rewriting import ONNX_QUERY

layers = pytest.importorskip("pytensor_ml.layers")


def attentions(outputs):
    """Return how many operations of attention a graph holds after the rewrites."""
    fgraph = pytensor.graph.FunctionGraph(outputs=outputs, clone=True)
    Mode("py", ONNX_QUERY).optimizer.rewrite(fgraph)
    return sum(isinstance(node.op, Attention) for node in fgraph.toposort())


def heads(name, batch=None, count=4, length=None):
    return pt.tensor(name, shape=(batch, count, length, 2))


@pytest.mark.slow
def test_layer_becomes_one_operation():
    x = pt.tensor("x", shape=(None, None, 8))
    assert attentions([layers.MultiheadAttention("m", n_embd=8, n_head=4)(x)]) == 1
    attend = layers.scaled_dot_product_attention
    assert attentions([attend(heads("q"), heads("k"), heads("v"), is_causal=True)]) == 1


@pytest.mark.slow
def test_layer_whose_gradient_is_asked_for_shares_its_parts_with_it():
    x = pt.tensor("x", shape=(None, None, 8))
    output = layers.MultiheadAttention("m", n_embd=8, n_head=4)(x)
    assert attentions([output, pt.grad(output.sum(), x)]) == 0


@pytest.mark.parametrize(
    ("q", "k", "mask"),
    [
        (heads("q", batch=1), heads("k"), None),
        (heads("q", length=1), heads("k"), pt.tensor("mask", shape=(5, None))),
        (heads("q"), heads("k"), pt.imatrix("mask")),
    ],
    ids=["batch", "length", "dtype"],
)
def test_layer_that_repeats_or_casts_stays_as_it_is_written(q, k, mask):
    assert attentions([layers.scaled_dot_product_attention(q, k, k * 2, mask=mask)]) == 0
