"""The building blocks of the network: each holds its parameters and is called with a tensor."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.special import softmax
from pytensor.tensor.variable import TensorVariable
from weights import State

from pytensor_onnx import nn

EPSILON = 1e-3
MOMENTUM = 0.03


class BatchNorm:
    """Normalisation by the running statistics, or in training by those of the batch."""

    def __init__(self, state: State, path: str, channels: int) -> None:
        self.state = state
        self.scale = state.add(f"{path}.weight", channels)
        self.shift = state.add(f"{path}.bias", channels)
        self.mean = state.add(f"{path}.running_mean", channels)
        self.variance = state.add(f"{path}.running_var", channels)
        state.add_counter(f"{path}.num_batches_tracked")

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Normalise, and in training note the new running statistics."""
        parameters = (self.scale, self.shift, self.mean, self.variance)
        if not self.state.training:
            return nn.batch_norm(x, *parameters, epsilon=EPSILON)
        y, mean, variance = nn.batch_norm_train(x, *parameters, momentum=MOMENTUM, epsilon=EPSILON)
        self.state.updates |= {self.mean: mean, self.variance: variance}
        return y


class Conv:
    """Convolution without bias, batch norm, and SiLU unless it is switched off."""

    def __init__(
        self,
        state: State,
        path: str,
        c_in: int,
        c_out: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        activation: bool = True,
    ) -> None:
        self.path, self.stride, self.groups, self.activation = path, stride, groups, activation
        self.weight = state.add(f"{path}.conv.weight", c_out, c_in // groups, kernel, kernel)
        self.norm = BatchNorm(state, f"{path}.bn", c_out)

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Convolve with zeros around that keep the size at stride 1."""
        y = nn.conv2d(
            x,
            self.weight,
            border_mode="half",
            subsample=(self.stride, self.stride),
            filter_flip=False,
            num_groups=self.groups,
        )
        y = self.norm(y)
        y = nn.silu(y) if self.activation else y
        y.name = self.path
        return y


class PlainConv:
    """Convolution 1x1 with bias, without norm and activation."""

    def __init__(self, state: State, path: str, c_in: int, c_out: int) -> None:
        self.path = path
        self.weight = state.add(f"{path}.weight", c_out, c_in, 1, 1)
        self.bias = state.add(f"{path}.bias", c_out)

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Convolve."""
        y = nn.conv2d(x, self.weight, filter_flip=False, bias=self.bias)
        y.name = self.path
        return y


class Bottleneck:
    """Two convolutions 3x3 beside a shortcut."""

    def __init__(self, state: State, path: str, channels: int, hidden: int) -> None:
        self.cv1 = Conv(state, f"{path}.cv1", channels, hidden, 3)
        self.cv2 = Conv(state, f"{path}.cv2", hidden, channels, 3)

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Add the convolutions' output to the input."""
        return x + self.cv2(self.cv1(x))


class C3k:
    """Two bottlenecks beside a convolution 1x1, each on half the channels."""

    def __init__(self, state: State, path: str, channels: int) -> None:
        half = channels // 2
        self.cv1 = Conv(state, f"{path}.cv1", channels, half)
        self.cv2 = Conv(state, f"{path}.cv2", channels, half)
        self.cv3 = Conv(state, f"{path}.cv3", 2 * half, channels)
        self.m = [Bottleneck(state, f"{path}.m.{i}", half, half) for i in range(2)]

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Join both branches."""
        a = self.cv1(x)
        for block in self.m:
            a = block(a)
        return self.cv3(pt.concatenate([a, self.cv2(x)], axis=1))


class C3k2:
    """A block on half of the channels, joined with both halves."""

    def __init__(
        self, state: State, path: str, c_in: int, c_out: int, hidden: int, *, deep: bool = False
    ) -> None:
        self.cv1 = Conv(state, f"{path}.cv1", c_in, 2 * hidden)
        self.cv2 = Conv(state, f"{path}.cv2", 3 * hidden, c_out)
        inner = f"{path}.m.0"
        self.m = (
            C3k(state, inner, hidden) if deep else Bottleneck(state, inner, hidden, hidden // 2)
        )

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Join the halves and the block's output for the second half."""
        u, v = halves(self.cv1(x))
        return self.cv2(pt.concatenate([u, v, self.m(v)], axis=1))


class SPPF:
    """Maxima over windows of 5, 9 and 13, as three pools in a row."""

    def __init__(self, state: State, path: str, channels: int) -> None:
        self.cv1 = Conv(state, f"{path}.cv1", channels, channels // 2)
        self.cv2 = Conv(state, f"{path}.cv2", 2 * channels, channels)

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Join the input of the pools with the results of each."""
        levels = [self.cv1(x)]
        for _ in range(3):
            levels.append(nn.max_pool(levels[-1], (5, 5), stride=(1, 1), padding=(2, 2)))
        return self.cv2(pt.concatenate(levels, axis=1))


class Attention:
    """Self-attention of all positions, with a depthwise convolution for where they are."""

    def __init__(
        self, state: State, path: str, channels: int, *, heads: int = 2, d_key: int = 32
    ) -> None:
        self.heads, self.d_key, self.d_value = heads, d_key, channels // heads
        self.qkv = Conv(
            state, f"{path}.qkv", channels, channels + 2 * heads * d_key, activation=False
        )
        self.proj = Conv(state, f"{path}.proj", channels, channels, activation=False)
        self.pe = Conv(
            state, f"{path}.pe", channels, channels, 3, groups=channels, activation=False
        )

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Mix the values of all positions, each head by its own keys and queries."""
        z = self.qkv(x)
        sizes = [self.d_key, self.d_key, self.d_value]
        positions = x.shape[2] * x.shape[3]
        z = z.reshape((z.shape[0], self.heads, sum(sizes), positions))
        query, key, value = pt.split(z, sizes, n_splits=3, axis=2)
        scores = (query.mT @ key) * np.float32(self.d_key**-0.5)
        mixed = value @ softmax(scores, axis=-1).mT
        return self.proj(mixed.reshape(x.shape) + self.pe(value.reshape(x.shape)))


class PSABlock:
    """Attention and a network on each position, both beside a shortcut."""

    def __init__(self, state: State, path: str, channels: int) -> None:
        self.attn = Attention(state, f"{path}.attn", channels)
        self.ffn = [
            Conv(state, f"{path}.ffn.0", channels, 2 * channels),
            Conv(state, f"{path}.ffn.1", 2 * channels, channels, activation=False),
        ]

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Add what each makes of its input to it."""
        x = x + self.attn(x)
        return x + self.ffn[1](self.ffn[0](x))


class C2PSA:
    """Attention on half of the channels."""

    def __init__(self, state: State, path: str, channels: int) -> None:
        self.cv1 = Conv(state, f"{path}.cv1", channels, channels)
        self.cv2 = Conv(state, f"{path}.cv2", channels, channels)
        self.m = PSABlock(state, f"{path}.m.0", channels // 2)

    def __call__(self, x: TensorVariable) -> TensorVariable:
        """Join the first half with what attention makes of the second."""
        a, b = halves(self.cv1(x))
        return self.cv2(pt.concatenate([a, self.m(b)], axis=1))


def halves(x: TensorVariable) -> list[TensorVariable]:
    """Return the first and the second half of the channels."""
    half = x.type.shape[1] // 2
    return pt.split(x, [half, half], n_splits=2, axis=1)
