"""Layers of pytensor-ml without spatial axes export to what one would write by hand."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import graph_inputs

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types

layers = pytest.importorskip("pytensor_ml.layers")

RNG = np.random.default_rng(0)
PROJECTION = ["MatMul", "Add"]
HEADS = ["Reshape", "Transpose"]
ATTEND = ["MatMul", "Mul", "Softmax", "MatMul", "Transpose", "Reshape", *PROJECTION]


def filled(output):
    """Draw all weights, zeros of biases included, which would leave no node."""
    for v in graph_inputs([output]):
        if isinstance(v, pt.sharedvar.TensorSharedVariable):
            v.set_value(RNG.normal(size=v.get_value().shape).astype(v.type.dtype))
    return output


def variable(name, *shape, dtype=None):
    return pt.tensor(name, shape=shape, dtype=dtype or pytensor.config.floatX)


@pytest.fixture
def float32():
    with pytensor.config.change_flags(floatX="float32"):
        yield


def weights(output):
    return {v.name: v.get_value() for v in graph_inputs([output]) if hasattr(v, "get_value")}


def operators(output):
    """Return the operators of the exported graph, which is verified."""
    return op_types(export_onnx(filled(output)))


def test_dense_layer_is_a_gemm_or_a_product_and_a_bias():
    layer = layers.Linear("fc", n_in=3, n_out=2)
    assert operators(layer(variable("x", None, 3))) == ["Gemm"]
    assert operators(layer(variable("x", None, None, 3))) == PROJECTION
    plain = layers.Linear("fc", n_in=3, n_out=2, bias=False)
    assert operators(plain(variable("x", None, 3))) == ["MatMul"]


def test_embedding_is_one_gather():
    ids = variable("ids", None, None, dtype="int64")
    output = filled(layers.Embedding("e", n_embeddings=9, n_features=4)(ids))
    program = export_onnx(output)
    assert op_types(program) == ["Gather"]
    values = np.array([[0, 8, 3]])
    np.testing.assert_array_equal(program(values), weights(output)["e_W"][values])


def test_changes_of_shape_are_one_operator():
    assert operators(layers.Flatten(variable("x", None, 3, 4, 5))) == ["Reshape"]
    assert operators(layers.Squeeze(variable("x", None, 1), axis=-1)) == ["Squeeze"]
    x = variable("x", None, 3)
    assert operators(layers.Concatenate([x, pt.abs(x)], axis=-1)) == ["Abs", "Concat"]


def test_dropout_leaves_no_node():
    x = variable("x", None, 3)
    output = layers.Dropout("drop", p=0.5)(layers.Linear("fc", n_in=3, n_out=2)(x))
    assert operators(output) == ["Gemm"]


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("length", [None, 7])
def test_attention_is_six_operators_between_its_projections(length):
    x = variable("x", None, length, 12)
    separate = layers.MultiheadAttention("m", n_embd=12, n_head=3)
    assert sorted(operators(separate(x))) == sorted(3 * [*PROJECTION, *HEADS] + ATTEND)
    fused = layers.MultiheadAttention("m", n_embd=12, n_head=3, fused_qkv=True)
    assert operators(fused(x)) == [*PROJECTION, "Split", *3 * HEADS, *ATTEND]


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
def test_mask_of_a_known_length_is_a_constant_and_of_another_is_made_once():
    causal = layers.CausalSelfAttention("m", n_embd=12, n_head=3)
    static = operators(causal(variable("x", None, 7, 12)))
    unmasked = layers.MultiheadAttention("m", n_embd=12, n_head=3)
    plain = operators(unmasked(variable("x", None, 7, 12)))
    assert sorted(static) == sorted([*plain, "Add"])
    x = variable("x", None, None, 12)
    made = ["Shape", "Squeeze", "Range", "Unsqueeze", "LessOrEqual", "Where"]
    assert sorted(operators(causal(x))) == sorted([*static, *made])
    again = layers.CausalSelfAttention("n", n_embd=12, n_head=3)
    assert operators(again(causal(x))).count("Range") == 1


@pytest.mark.usefixtures("float32")
def test_given_mask_is_added():
    x, mask = variable("x", None, None, 12), variable("mask", None, None)
    layer = layers.MultiheadAttention("m", n_embd=12, n_head=3)
    assert sorted(operators(layer(x, mask=mask))) == sorted([*operators(layer(x)), "Add"])


@pytest.mark.slow
def test_sizes_of_two_inputs_are_known_to_be_equal():
    x, kv = variable("x", None, None, 12), variable("kv", None, None, 8)
    output = layers.MultiheadAttention("m", n_embd=12, n_head=3, kv_dim=8)(x, kv=kv)
    program = export_onnx(filled(output))
    assert "If" not in op_types(program)
    assert [str(v.shape[0]) for v in program.model.graph.inputs] == ["batch", "batch"]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.few(1)
@pytest.mark.each_value
@pytest.mark.parametrize("n_kv_head", [6, 2, 1])
@pytest.mark.parametrize("is_causal", [False, True])
def test_multihead_attention_is_its_definition(n_kv_head, is_causal):
    x = variable("x", None, None, 12)
    layer = layers.MultiheadAttention(
        "m", n_embd=12, n_head=6, n_kv_head=n_kv_head, is_causal=is_causal
    )
    output = filled(layer(x))
    w, value = weights(output), RNG.normal(size=(2, 5, 12))
    q, k, v = (
        (value @ w[f"m_{n}_proj_W"] + w[f"m_{n}_proj_b"]).reshape(2, 5, -1, 2).swapaxes(1, 2)
        for n in "qkv"
    )
    later = np.triu(np.ones((5, 5), bool), 1) & is_causal
    heads = []
    for head in range(6):
        group = head // (6 // n_kv_head)
        scores = q[:, head] @ k[:, group].swapaxes(1, 2) / np.sqrt(2)
        heads.append(softmax(np.where(later, -np.inf, scores)) @ v[:, group])
    expected = np.concatenate(heads, axis=-1) @ w["m_out_proj_W"] + w["m_out_proj_b"]
    np.testing.assert_allclose(export_onnx(output)(value), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_grouped_heads_train_as_pytensor_does():
    x = variable("x", None, None, 8)
    layer = layers.CausalSelfAttention("m", n_embd=8, n_head=4, n_kv_head=2)
    output = filled(layer(x))
    gradients = pt.grad((output**2).sum(), [layer.q_proj.W, layer.k_proj.W, layer.v_proj.b])
    value = RNG.normal(size=(2, 3, 8))
    compare_onnx_and_py([x], gradients, [value], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
def test_keys_shared_by_heads_are_not_repeated():
    x = variable("x", None, None, 12)
    layer = layers.MultiheadAttention("m", n_embd=12, n_head=6, n_kv_head=2)
    expected = [*3 * [*PROJECTION, *HEADS], *ATTEND, "Unsqueeze", "Unsqueeze"]
    assert sorted(operators(layer(x))) == sorted(expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("lengths", [(3, 3), (2, 5), (5, 2)])
def test_last_query_has_the_position_of_the_last_key(lengths):
    q, k, v = (variable(n, None, 4, None, 2) for n in "qkv")
    output = layers.scaled_dot_product_attention(q, k, v, is_causal=True)
    s, t = lengths
    values = [RNG.normal(size=(1, 4, length, 2)) for length in (s, t, t)]
    compare_onnx_and_py([q, k, v], output, values, rtol=1e-11)


def test_mask_and_scale_of_attention_are_kept():
    q, k, v = (variable(n, None, 4, None, 2) for n in "qkv")
    k, v = k[:, :2], v[:, :2]
    mask = variable("mask", None, 4, None, None)
    output = layers.scaled_dot_product_attention(q, k, v, mask=mask, is_causal=True, scale=0.7)
    inputs = [q, k.owner.inputs[0], v.owner.inputs[0], mask]
    values = [RNG.normal(size=shape) for shape in ((1, 4, 3, 2),) * 3 + ((1, 4, 3, 3),)]
    compare_onnx_and_py(inputs, output, values, rtol=1e-11)


def test_one_query_for_several_masks_or_keys_is_repeated():
    q = variable("q", 1, 2, 1, 4)
    k, v = (variable(name, None, 2, 3, 4) for name in "kv")
    mask = variable("mask", 5, 3)
    attend = layers.scaled_dot_product_attention
    results = [attend(q, k, v, mask=mask), attend(q, k, v)]
    shapes = ((1, 2, 1, 4), (2, 2, 3, 4), (2, 2, 3, 4), (5, 3))
    values = [RNG.normal(size=shape) for shape in shapes]
    compare_onnx_and_py([q, k, v, mask], results, values, rtol=1e-11)
