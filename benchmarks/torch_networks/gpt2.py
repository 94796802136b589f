"""The network of `benchmarks.gpt2`: Radford and others 2019."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_networks.descent import predict, step_of

KeysAndValues = tuple[Any, Any]


class Block(nn.Module):
    """Attention and a network on each position, both beside a shortcut."""

    def __init__(self, width: int, heads: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width, epsilon)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.rest = nn.Sequential(
            nn.LayerNorm(width, epsilon),
            nn.Linear(width, 4 * width),
            nn.GELU("tanh"),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: Any, past: KeysAndValues | None) -> tuple[Any, KeysAndValues]:
        """Return the next features, and keys and values up to here."""
        n, length, width = x.shape
        split = self.query_key_value(self.before_attention(x)).split(width, dim=2)
        query, key, value = (
            z.reshape(n, length, self.heads, width // self.heads).transpose(1, 2) for z in split
        )
        if past is not None:
            key, value = (torch.cat(pair, 2) for pair in zip(past, (key, value), strict=True))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self.projection(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.rest(x), (key, value)


class GPT2(nn.Module):
    """The network, whose last layer shares its weights with the embedding."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, epsilon = config["n_embd"], config["layer_norm_epsilon"]
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["n_positions"], width)
        self.blocks = nn.ModuleList(
            Block(width, config["n_head"], epsilon) for _ in range(config["n_layer"])
        )
        self.norm = nn.LayerNorm(width, epsilon)

    def forward(self, ids: Any, past: list[KeysAndValues] | None = None) -> Any:
        """Return the logits; with keys and values of a past, those of all tokens as well."""
        start = 0 if past is None else past[0][0].shape[2]
        x = self.tokens(ids) + self.positions.weight[start : start + ids.shape[1]]
        present = []
        for i, block in enumerate(self.blocks):
            x, pair = block(x, None if past is None else past[i])
            present.append(pair)
        logits = self.norm(x) @ self.tokens.weight.T
        return logits if past is None else (logits, present)


def calls(
    *, config: dict[str, Any], length: int, batch: int, rate: float
) -> dict[str, Callable[[], Any]]:
    """Return the measured functions."""
    gpt2 = GPT2(config)
    texts = torch.randint(config["vocab_size"], (batch, length))
    heads, width = config["n_head"], config["n_embd"] // config["n_head"]
    past = [
        (torch.randn(1, heads, length, width), torch.randn(1, heads, length, width))
        for _ in range(config["n_layer"])
    ]
    optimizer = torch.optim.SGD(gpt2.parameters(), rate)

    def loss() -> Any:
        logits = gpt2(texts)[:, :-1]
        return functional.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())

    return {
        "text": predict(gpt2, texts[:1]),
        "next token": predict(gpt2, texts[:1, :1], past),
        "training step": step_of(optimizer, loss),
    }
