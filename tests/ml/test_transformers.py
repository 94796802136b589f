"""Whole transformers of pytensor-ml compute what `transformers` computes with the same weights."""

from math import erf
from pathlib import Path

import numpy as np
import pytest

from pytensor_onnx import export_onnx
from tests.ml.models import clip, gpt2
from tests.ml.transformers_cases import CLIP, GPT2, tokens

CASES = np.load(Path(__file__).parents[1] / "data" / "transformers_cases.npz")
NAMES = {"input_ids": {0: "batch", 1: "length"}}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-5)])
def test_gpt2_agrees_with_transformers(dtype, tolerance):
    model = gpt2(dtype)
    program = export_onnx([model.tokens], model.outputs[:2], dynamic_axes=NAMES)
    logits, hidden = program(tokens(GPT2["vocab_size"], (2, 7)))
    np.testing.assert_allclose(logits, CASES["gpt2_logits"], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(hidden, CASES["gpt2_hidden"], rtol=tolerance, atol=tolerance)


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


def test_gpt2_agrees_with_its_definition_in_numpy():
    model = gpt2(n_layer=3, n_head=4, n_inner=48, activation_function="gelu")
    program = export_onnx(model.outputs[0], dynamic_axes=NAMES)
    for shape in ((1, 1), (3, 5), (2, 32)):
        ids = tokens(GPT2["vocab_size"], shape)
        expected = define_gpt2(ids, model.weights, n_layer=3, n_head=4)
        np.testing.assert_allclose(program(ids), expected, rtol=1e-10, atol=1e-10)


def test_text_that_is_too_long_is_refused():
    model = gpt2()
    program = export_onnx(model.outputs[0])
    with pytest.raises(AssertionError, match="longer than the 32 positions"):
        program(tokens(GPT2["vocab_size"], (1, 33)))
