"""Compare imports of PyTorch's networks with ONNX Runtime, and their gradients with PyTorch's.

uv run --all-extras --with torch --with onnxscript python -m tests.importing.torch_networks [NAME]
    --page writes the table of docs/how-to/import.md
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import torch
import torch.nn.functional as tf
from torch import nn

from pytensor_onnx import from_onnx
from tests.importing.models import by_runtime
from tests.page_parts import write_part

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"


class Applied(nn.Module):
    """Layers, and a function that applies them."""

    def __init__(self, function: Callable[..., torch.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers)
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Apply the function to the layers and the inputs."""
        return self.function(self.layers, *inputs)


type Network = tuple[nn.Module, tuple[torch.Tensor, ...]]


def dense() -> Network:
    """Return dense layers with a layer norm."""
    layers = (nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8), nn.ELU())
    return nn.Sequential(*layers, nn.Linear(8, 3), nn.LogSoftmax(-1)), (torch.randn(5, 6),)


def convolutional() -> Network:
    """Return a classifier of images with batch norms and two kinds of pools."""
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 12, 3, stride=2), nn.BatchNorm2d(12), nn.LeakyReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48, 4)), (torch.randn(2, 3, 20, 20),)


def residual() -> Network:
    """Return two convolutions in groups with a sum over them, and group norms."""
    return Applied(
        lambda m, x: m["last"](tf.silu(x + m["second"](tf.silu(m["norm"](m["first"](x)))))),
        first=nn.Conv2d(8, 8, 3, padding=1, groups=2),
        norm=nn.GroupNorm(4, 8),
        second=nn.Conv2d(8, 8, 3, padding=2, dilation=2),
        last=nn.AdaptiveAvgPool2d(1),
    ), (torch.randn(2, 8, 9, 9),)


def mobile() -> Network:
    """Return a depthwise convolution with weights of channels, as MobileNetV3 has them."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        x = tf.hardswish(m["depthwise"](tf.hardswish(m["wide"](x))))
        shares = m["up"](tf.relu(m["down"](x.mean((2, 3), keepdim=True))))
        return m["narrow"](x * tf.hardsigmoid(shares))

    return Applied(
        apply,
        wide=nn.Conv2d(4, 12, 1),
        depthwise=nn.Conv2d(12, 12, 5, stride=2, padding=2, groups=12),
        down=nn.Conv2d(12, 4, 1),
        up=nn.Conv2d(4, 12, 1),
        narrow=nn.Conv2d(12, 6, 1),
    ), (torch.randn(2, 4, 11, 11),)


def transformer() -> Network:
    """Return an encoder of two layers."""
    layer = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True, norm_first=True)
    network = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return network, (torch.randn(2, 7, 12),)


def decoder() -> Network:
    """Return attention of tokens to those before them, and to another sequence."""

    def apply(m: Any, tokens: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        x = m["tokens"](tokens)
        q, k, v = m["qkv"](x).reshape(2, 6, 3, 3, 4).permute(2, 0, 3, 1, 4)
        own = tf.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = m["norm"](x + own.transpose(1, 2).reshape(2, 6, 12))
        q, k, v = (y[:, None] for y in (m["query"](x), m["key"](other), other))
        return m["head"](x + tf.scaled_dot_product_attention(q, k, v)[:, 0])

    return Applied(
        apply,
        tokens=nn.Embedding(20, 12),
        qkv=nn.Linear(12, 36),
        norm=nn.RMSNorm(12),
        query=nn.Linear(12, 12),
        key=nn.Linear(12, 12, bias=False),
        head=nn.Linear(12, 20),
    ), (torch.randint(0, 20, (2, 6)), torch.randn(2, 5, 12))


def lstm() -> Network:
    """Return two layers of an LSTM in both directions."""
    network = nn.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
    return Applied(lambda m, x: m["lstm"](x)[0], lstm=network), (torch.randn(3, 8, 5),)


def gru() -> Network:
    """Return a GRU over embedded tokens."""
    return Applied(
        lambda m, tokens: m["last"](m["gru"](m["tokens"](tokens))[0][:, -1]),
        tokens=nn.Embedding(15, 6),
        gru=nn.GRU(6, 7, batch_first=True),
        last=nn.Linear(7, 3),
    ), (torch.randint(0, 15, (3, 9)),)


def recurrent() -> Network:
    """Return a recurrence with hyperbolic tangents."""
    network = nn.RNN(4, 6, batch_first=True)
    return Applied(lambda m, x: m["rnn"](x)[1][0], rnn=network), (torch.randn(2, 7, 4),)


def autoencoder() -> Network:
    """Return convolutions and transposed convolutions."""
    layers = [nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2)]
    layers += [nn.ConvTranspose2d(8, 6, 3, stride=2), nn.Softplus()]
    layers += [nn.ConvTranspose2d(6, 1, 3, stride=2, padding=1, output_padding=1), nn.Sigmoid()]
    return nn.Sequential(*layers), (torch.randn(2, 1, 14, 14),)


def segmentation() -> Network:
    """Return a U-Net of one level, which interpolates by lines and by neighbours."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        high = tf.relu(m["norm"](m["first"](x)))
        low = tf.relu(m["deep"](tf.max_pool2d(high, 2)))
        up = tf.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        more = tf.interpolate(low, scale_factor=2, mode="nearest")
        return m["last"](torch.cat([high, up, more], 1))

    return Applied(
        apply,
        first=nn.Conv2d(2, 6, 3, padding=1, padding_mode="reflect", bias=False),
        norm=nn.InstanceNorm2d(6, affine=True),
        deep=nn.Conv2d(6, 6, 3, padding=1),
        last=nn.Conv2d(18, 2, 1),
    ), (torch.randn(2, 2, 12, 12),)


def waves() -> Network:
    """Return gated convolutions of signals that look back, as WaveNet has them."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        for step, name in ((1, "first"), (2, "second")):
            y = m[name](tf.pad(x, (step, 0)))
            x = x + torch.tanh(y[:, :4]) * torch.sigmoid(y[:, 4:])
        return m["last"](x)

    return Applied(
        apply,
        first=nn.Conv1d(4, 8, 2),
        second=nn.Conv1d(4, 8, 2, dilation=2),
        last=nn.Conv1d(4, 1, 1),
    ), (torch.randn(2, 4, 25),)


def volumes() -> Network:
    """Return convolutions of volumes."""
    layers = [nn.Conv3d(1, 4, 3, padding=1), nn.PReLU(4), nn.AvgPool3d(2), nn.Conv3d(4, 3, 2)]
    return nn.Sequential(*layers, nn.Mish()), (torch.randn(2, 1, 6, 7, 8),)


def flow() -> Network:
    """Return the logarithmic density of a flow of coupled layers."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[:, 0])
        for i in range(2):
            y = m[f"net{i}"](x[:, :3])
            scale = 2 * torch.tanh(y[:, 3:])
            total = total + scale.sum(1)
            x = torch.cat([x[:, 3:] * torch.exp(scale) + y[:, :3], x[:, :3]], 1)
        base = -0.5 * (x**2).sum(1) - 0.5 * x.shape[1] * float(np.log(2 * np.pi))
        return base + total + torch.logsumexp(x, 1) - tf.softplus(x).sum(1)

    nets = {f"net{i}": nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6)) for i in range(2)}
    return Applied(apply, **nets), (torch.randn(5, 6),)


def messages() -> Network:
    """Return a network of a graph that adds up the messages of edges."""

    def apply(m: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        sent = m["message"](torch.cat([x[edges[0]], x[edges[1]]], 1))
        target = edges[1][:, None].expand_as(sent)
        total = torch.zeros(6, 5).scatter_add(0, target, sent)
        return m["change"](torch.cat([x, tf.elu(total)], 1)).cumsum(0)

    return Applied(apply, message=nn.Linear(8, 5), change=nn.Linear(9, 4)), (
        torch.randn(6, 4),
        torch.randint(0, 6, (2, 14)),
    )


def vision_transformer() -> Network:
    """Return a transformer of patches with a class token."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        patches = m["patches"](x).flatten(2).transpose(1, 2)
        tokens = torch.cat([m["token"].weight.expand(2, 1, 12), patches], 1) + m["places"].weight
        return m["head"](m["layer"](tokens)[:, 0])

    return Applied(
        apply,
        patches=nn.Conv2d(3, 12, 4, stride=4),
        token=nn.Embedding(1, 12),
        places=nn.Embedding(10, 12),
        layer=nn.TransformerEncoderLayer(12, 2, 16, batch_first=True, activation="gelu"),
        head=nn.Linear(12, 3),
    ), (torch.randn(2, 3, 12, 12),)


def spatial_transformer() -> Network:
    """Return an image that is turned by a network."""

    def apply(m: Any, x: torch.Tensor) -> torch.Tensor:
        turn = 0.3 * m["turn"](x.flatten(1)).reshape(-1, 2, 3)
        grid = tf.affine_grid(turn + torch.eye(2, 3), list(x.shape), align_corners=False)
        return tf.grid_sample(x, grid, align_corners=False)

    return Applied(apply, turn=nn.Linear(72, 6)), (torch.randn(2, 2, 6, 6),)


NETWORKS = {
    function.__name__.replace("_", " "): function
    for function in (
        *(dense, convolutional, residual, mobile, transformer, decoder, lstm, gru, recurrent),
        *(autoencoder, segmentation, waves, volumes, flow, messages, vision_transformer),
        spatial_transformer,
    )
}


@dataclass(frozen=True)
class Comparison:
    """Largest differences of an import, relative to the largest number of each array.

    Attributes
    ----------
    nodes
        Nodes in the file of `torch.onnx`.
    value
        Difference of the results to ONNX Runtime's on the file.
    gradient
        Difference of the gradients by weights and inputs to PyTorch's.
    arrays
        Number of arrays whose gradients are compared.
    """

    nodes: int
    value: float
    gradient: float
    arrays: int


def compared(name: str) -> Comparison:
    """Return the differences of one network."""
    torch.manual_seed(0)
    network, inputs = NETWORKS[name]()
    network.eval()
    model = exported(network, inputs)
    arrays = [x.numpy() for x in inputs]
    graph = from_onnx(model, trainable=True)
    gradients = by_torch(network, inputs)
    wanted = {str(v.name): v for v in graph.inputs} | dict(graph.weights)
    missing = gradients.keys() - wanted.keys()
    if missing:
        raise AssertionError(f"the graph has no weights {sorted(missing)}")
    y = graph.outputs[0]
    total = pt.sum(y * weights_of(tuple(by_runtime(model, *arrays)[0].shape)))
    slopes = pytensor.grad(total, [wanted[key] for key in gradients])
    function = pytensor.function(graph.inputs, [y, *slopes], mode="ONNX")
    value, *found = function(*arrays)
    return Comparison(
        len(model.graph.node),
        difference(value, by_runtime(model, *arrays)[0]),
        max(map(difference, found, gradients.values())),
        len(found),
    )


def exported(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> onnx.ModelProto:
    """Return the model that `torch.onnx` writes, with the names of parameters."""
    with redirect_stdout(io.StringIO()):
        names = [f"input{i}" for i in range(len(inputs))]
        program = torch.onnx.export(
            network, inputs, input_names=names, dynamo=True, optimize=False, verbose=False
        )
    return program.model_proto


def by_torch(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, np.ndarray]:
    """Return gradients of the weighted sum of results by inputs of floats and by weights."""
    moved = {f"input{i}": x for i, x in enumerate(inputs) if x.is_floating_point()}
    moved |= dict(network.named_parameters())
    for x in moved.values():
        x.requires_grad_()
    y = network(*inputs)
    total = (y * torch.from_numpy(weights_of(tuple(y.shape)))).sum()
    return dict(
        zip(
            moved,
            (g.numpy() for g in torch.autograd.grad(total, list(moved.values()))),
            strict=True,
        )
    )


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    """Return the weights of results, so that the gradient of a softmax is not zero."""
    return np.cos(1 + np.arange(np.prod(shape))).reshape(shape).astype("float32")


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest number."""
    if found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-3))


def main() -> None:
    """Print the differences of networks, or write their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NETWORKS), help="networks")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    options = parser.parse_args()
    lines = [
        f"Networks of PyTorch {torch.__version__.split('+')[0]}, exported by `torch.onnx`:\n",
        "| network | nodes | results, to ONNX Runtime | gradients, to PyTorch | arrays |",
        "|---|---|---|---|---|",
    ]
    for name in options.names:
        c = compared(name)
        lines.append(f"| {name} | {c.nodes} | {c.value:.1e} | {c.gradient:.1e} | {c.arrays} |")
        print(lines[-1], flush=True)
    if options.page:
        write_part(PAGE, "networks", "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
