"""Small models of `transformers`: their configs, weights and tokens, by a formula of names."""

import math
import zlib

import numpy as np

GPT2 = {
    "vocab_size": 61,
    "n_positions": 32,
    "n_embd": 24,
    "n_head": 3,
    "n_layer": 2,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new",
}
CLIP = {
    "vocab_size": 61,
    "max_position_embeddings": 16,
    "hidden_size": 24,
    "intermediate_size": 96,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "layer_norm_eps": 1e-5,
    "hidden_act": "quick_gelu",
    "projection_dim": 8,
    "eos_token_id": 2,
}


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values of a parameter under its public name."""
    draws = np.random.RandomState(zlib.crc32(name.encode()))
    if len(shape) == 2:
        return draws.standard_normal(shape) / math.sqrt(shape[0])
    centre = 1.0 if "ln_" in name or "norm" in name else 0.0
    centre = 0.0 if name.endswith("bias") else centre
    return centre + 0.2 * draws.standard_normal(shape)


def tokens(vocab_size: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return token ids."""
    return np.random.RandomState(0).randint(0, vocab_size, shape)
