"""A language model goes on from the keys and values of earlier tokens, with ONNX Runtime alone."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError, export_onnx
from pytensor_onnx.ml import decoding_step
from tests.ml.models import gpt2
from tests.ml.transformers_cases import GPT2, tokens

layers = pytest.importorskip("pytensor_ml.layers")

GENERATED = np.load(Path(__file__).parents[1] / "data" / "transformers_cases.npz")["gpt2_generated"]


def generate(session, ids, steps):
    """Return tokens and their logits, chosen greedily; all that stays is the past."""
    shapes = {value.name: value.shape for value in session.get_inputs()}
    dtype = np.float32 if session.get_inputs()[1].type == "tensor(float)" else np.float64
    past = {
        name: np.zeros((len(ids), shape[1], 0, shape[3]), dtype)
        for name, shape in shapes.items()
        if name != "input_ids"
    }
    names = [value.name for value in session.get_outputs()]
    logits, new = [], ids
    for _ in range(steps):
        found = dict(zip(names, session.run(None, {"input_ids": new, **past}), strict=True))
        past = {name: found[name.replace("past", "present")] for name in past}
        logits.append(found["logits"][:, -1])
        new = logits[-1].argmax(axis=-1)[:, None]
        ids = np.concatenate([ids, new], axis=1)
    return ids, np.stack(logits, axis=1)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.slow
def test_steps_with_a_past_are_the_whole_model(tmp_path, dtype, tolerance):
    model = gpt2(dtype)
    export_onnx(decoding_step(model.tokens, model.outputs[0]), tmp_path / "step.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "step.onnx")
    whole = export_onnx(model.outputs[0])
    prompt = tokens(GPT2["vocab_size"], (3, 4))
    ids, logits = generate(session, prompt, 10)
    expected = whole(ids[:, :-1])[:, 3:]
    np.testing.assert_array_equal(ids[:, 4:], expected.argmax(axis=-1))
    np.testing.assert_allclose(logits, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_steps_generate_the_tokens_of_transformers():
    model = gpt2()
    program = export_onnx(decoding_step(model.tokens, model.outputs[0]))
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    ids, _ = generate(session, tokens(GPT2["vocab_size"], (1, 4)), 10)
    np.testing.assert_array_equal(ids, GENERATED)


@pytest.mark.slow
def test_past_and_new_tokens_have_names_and_the_present_is_both():
    model = gpt2("float32")
    graph = export_onnx(decoding_step(model.tokens, model.outputs[0]), verify=False).model.graph
    shapes = {v.name: [str(d) for d in v.shape] for v in [*graph.inputs, *graph.outputs]}
    assert shapes["input_ids"] == ["batch", "new"]
    assert shapes["past_key_1"] == ["batch", "3", "past", "8"]
    assert shapes["present_value_0"] == ["batch", "3", "new+past", "8"]
    assert shapes["logits"] == ["batch", "new", "61"]


@pytest.mark.slow
def test_a_past_that_is_too_long_is_refused():
    model = gpt2("float32")
    program = export_onnx(decoding_step(model.tokens, model.outputs[0]), verify=False)
    past = [np.zeros((1, 3, 32, 8), "float32") for _ in range(4)]
    with pytest.raises(AssertionError, match="longer than the 32 positions"):
        program(np.zeros((1, 1), "int64"), *past)


def test_layers_without_causal_attention_have_no_steps():
    ids = pt.lmatrix("ids")
    embedded = layers.Embedding("e", n_embeddings=5, n_features=4)(ids)
    with pytest.raises(PyTensorONNXError, match="none found"):
        decoding_step(ids, embedded)
    attended = layers.MultiheadAttention("m", n_embd=4, n_head=2)(embedded)
    with pytest.raises(PyTensorONNXError, match="not causal"):
        decoding_step(ids, attended)
