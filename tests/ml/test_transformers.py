"""Whole transformers of pytensor-ml compute what `transformers` computes with the same weights."""

from collections import Counter
from math import erf
from pathlib import Path

import numpy as np
import pytest
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import graph_inputs

from pytensor_onnx import export_onnx
from pytensor_onnx.ml import decoding_step
from tests.conftest import op_types, sweep_rest
from tests.ml.models import clip, gpt2
from tests.ml.transformers_cases import CLIP, GPT2, tokens

CASES = np.load(Path(__file__).parents[1] / "data" / "transformers_cases.npz")
NAMES = {"input_ids": {0: "batch", 1: "length"}}


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-5)])
def test_gpt2_agrees_with_transformers(dtype, tolerance):
    model = gpt2(dtype)
    program = export_onnx([model.tokens], model.outputs[:2], dynamic_axes=NAMES)
    logits, hidden = program(tokens(GPT2["vocab_size"], (2, 7)))
    np.testing.assert_allclose(logits, CASES["gpt2_logits"], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(hidden, CASES["gpt2_hidden"], rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-5)])
def test_clip_text_encoder_agrees_with_transformers(dtype, tolerance):
    model = clip(dtype)
    program = export_onnx([model.tokens], model.outputs[:2], dynamic_axes=NAMES)
    embeds, hidden = program(tokens(CLIP["vocab_size"], (2, 7)))
    np.testing.assert_allclose(embeds, CASES["clip_text_embeds"], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(hidden, CASES["clip_hidden"], rtol=tolerance, atol=tolerance)


def layer_norm(x, w, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(x, w, name):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


def gelu(x):
    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def define_gpt2(ids, w, n_layer, n_head):
    """GPT-2 with the exact GELU, one head after the other."""
    x = w["wte.weight"][ids] + w["wpe.weight"][np.arange(ids.shape[1])]
    later = np.triu(np.ones((ids.shape[1],) * 2, dtype=bool), k=1)
    for i in range(n_layer):
        q, k, v = np.split(linear(layer_norm(x, w, f"h.{i}.ln_1"), w, f"h.{i}.attn.c_attn"), 3, -1)
        heads = []
        for part in np.split(np.arange(q.shape[-1]), n_head):
            scores = q[..., part] @ k[..., part].swapaxes(1, 2) / np.sqrt(part.size)
            weights = np.exp(np.where(later, -np.inf, scores))
            heads.append(weights / weights.sum(axis=-1, keepdims=True) @ v[..., part])
        x = x + linear(np.concatenate(heads, axis=-1), w, f"h.{i}.attn.c_proj")
        hidden = gelu(linear(layer_norm(x, w, f"h.{i}.ln_2"), w, f"h.{i}.mlp.c_fc"))
        x = x + linear(hidden, w, f"h.{i}.mlp.c_proj")
    return layer_norm(x, w, "ln_f") @ w["wte.weight"].T


@pytest.mark.slow
def test_gpt2_agrees_with_its_definition_in_numpy():
    model = gpt2(n_layer=3, n_head=4, n_inner=48, activation_function="gelu")
    program = export_onnx(model.outputs[0], dynamic_axes=NAMES)
    for shape in ((1, 1), (3, 5), (2, 32)):
        ids = tokens(GPT2["vocab_size"], shape)
        expected = define_gpt2(ids, model.weights, n_layer=3, n_head=4)
        np.testing.assert_allclose(program(ids), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_text_that_is_too_long_is_refused():
    model = gpt2()
    program = export_onnx(model.outputs[0])
    with pytest.raises(AssertionError, match="longer than the 32 positions"):
        program(tokens(GPT2["vocab_size"], (1, 33)))


PROJECTION = ["MatMul", "Add"]
HEADS = ["Reshape", "Transpose"]
ATTEND = ["MatMul", "Mul", "Add", "Softmax", "MatMul", "Transpose", "Reshape", *PROJECTION]
GATED = [*PROJECTION, "Gelu", *PROJECTION, "Add"]
GPT2_BLOCK = [
    *("LayerNormalization", *PROJECTION, "Split", *3 * HEADS, *ATTEND, "Add"),
    *("LayerNormalization", *GATED),
]
EMBEDDING = ["Gather", "Gather", "Add", "Shape", "Squeeze", "Range", "Max", "LessOrEqual", "If"]
MASK = ["Range", "Unsqueeze", "LessOrEqual", "Where"]
TIED_HEAD = ["LayerNormalization", "Transpose", "MatMul"]


@pytest.mark.slow
@pytest.mark.parametrize("n_layer", [1, 3])
def test_gpt2_is_the_graph_that_one_would_write_by_hand(n_layer):
    program = export_onnx(gpt2("float32", n_layer=n_layer).outputs[0], verify=False)
    expected = [*EMBEDDING, *MASK, *n_layer * GPT2_BLOCK, *TIED_HEAD]
    assert sorted(op_types(program)) == sorted(expected)
    assert not program.model.functions


@pytest.mark.slow
def test_a_step_with_a_past_adds_two_concatenations_to_each_block():
    model = gpt2("float32")
    program = export_onnx(decoding_step(model.tokens, model.outputs[0]), verify=False)
    positions = ["Shape", "Squeeze", "Add", "Sub", "Add", "Add"]
    whole = [*EMBEDDING, *MASK, *2 * GPT2_BLOCK, *TIED_HEAD]
    # Keys are kept as they are and transposed where they are used.
    # The number of past positions gets axes beside the column of new ones.
    steps = [*positions, "Reshape", *4 * ["Concat"], *2 * ["Transpose"]]
    found, expected = Counter(op_types(program)), Counter([*whole, *steps])
    # The positions are copied only where the runtime could take their Gather for a Slice.
    assert found == expected - Counter(["Max"])


@pytest.mark.slow
def test_text_encoder_is_the_graph_that_one_would_write_by_hand():
    program = export_onnx(clip("float32", hidden_act="gelu").outputs[1], verify=False)
    block = [
        *("LayerNormalization", *3 * [*PROJECTION, *HEADS], *ATTEND, "Add"),
        *("LayerNormalization", *GATED),
    ]
    expected = [*EMBEDDING, *MASK, *2 * block, "LayerNormalization"]
    assert sorted(op_types(program)) == sorted(expected)


@pytest.mark.slow
@pytest.mark.parametrize("make", [gpt2, clip])
def test_weights_have_the_names_of_their_parameters_and_are_stored_once(make):
    model = make("float32")
    initializers = export_onnx(model.outputs[0], verify=False).model.graph.initializers
    stored = sum(value.const_value.size for value in initializers.values())
    parameters = sum(array.size for array in model.weights.values())
    # What comes on top are numbers and shapes.
    assert parameters <= stored < parameters + 64
    names = {v.name for v in graph_inputs(model.outputs[:1]) if isinstance(v, SharedVariable)}
    assert names <= set(initializers)


@pytest.mark.slow
@pytest.mark.parametrize("make", sweep_rest([gpt2, clip], [gpt2]))
def test_attention_is_one_operator_from_opset_23_on(make):
    model = make("float32")
    ids = tokens(61, (2, 7))
    old, new = (
        export_onnx([model.tokens], model.outputs[:2], opset_version=opset, verify=False)
        for opset in (21, 23)
    )
    assert op_types(new).count("Attention") == 2
    assert not {"Softmax", "Range", "Where"} & set(op_types(new)[len(EMBEDDING) :])
    for a, b in zip(new(ids), old(ids), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
