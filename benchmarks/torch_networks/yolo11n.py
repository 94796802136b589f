"""The network of `examples/yolo11n`, and its loss."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_networks.descent import predict, step_of

STRIDES, CLASSES, BINS = (8, 16, 32), 80, 16


class Conv(nn.Sequential):
    """Convolution, batch norm, and SiLU unless it is switched off."""

    def __init__(
        self,
        c_in: int,
        c_out: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        activation: bool = True,
    ) -> None:
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(c_out, eps=1e-3, momentum=0.03),
            nn.SiLU() if activation else nn.Identity(),
        )


class Shortcut(nn.Sequential):
    """Layers in a row beside a shortcut."""

    def forward(self, x: Any) -> Any:
        """Add the layers' output to the input."""
        return x + super().forward(x)


def bottleneck(channels: int, hidden: int) -> Shortcut:
    """Return two convolutions of 3x3 beside a shortcut."""
    return Shortcut(Conv(channels, hidden, 3), Conv(hidden, channels, 3))


class C3k(nn.Module):
    """Two bottlenecks beside a convolution 1x1, each on half the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.deep = nn.Sequential(
            Conv(channels, half), bottleneck(half, half), bottleneck(half, half)
        )
        self.flat, self.last = Conv(channels, half), Conv(2 * half, channels)

    def forward(self, x: Any) -> Any:
        """Join both branches."""
        return self.last(torch.cat([self.deep(x), self.flat(x)], 1))


class C3k2(nn.Module):
    """A block on half of the channels, joined with both halves."""

    def __init__(self, c_in: int, c_out: int, hidden: int, *, deep: bool = False) -> None:
        super().__init__()
        self.first, self.last = Conv(c_in, 2 * hidden), Conv(3 * hidden, c_out)
        self.inner = C3k(hidden) if deep else bottleneck(hidden, hidden // 2)

    def forward(self, x: Any) -> Any:
        """Join the halves and the block's output for the second half."""
        u, v = self.first(x).chunk(2, 1)
        return self.last(torch.cat([u, v, self.inner(v)], 1))


class SPPF(nn.Module):
    """Maxima over windows of 5, 9 and 13, as three pools in a row."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = Conv(channels, channels // 2), Conv(2 * channels, channels)

    def forward(self, x: Any) -> Any:
        """Join the input of the pools with the results of each."""
        levels = [self.first(x)]
        for _ in range(3):
            levels.append(functional.max_pool2d(levels[-1], 5, 1, 2))
        return self.last(torch.cat(levels, 1))


class Attention(nn.Module):
    """Self-attention of all positions, with a depthwise convolution for where they are."""

    def __init__(self, channels: int, heads: int = 2, d_key: int = 32) -> None:
        super().__init__()
        self.heads, self.sizes = heads, (d_key, d_key, channels // heads)
        self.qkv = Conv(channels, channels + 2 * heads * d_key, activation=False)
        self.projection = Conv(channels, channels, activation=False)
        self.position = Conv(channels, channels, 3, groups=channels, activation=False)

    def forward(self, x: Any) -> Any:
        """Mix the values of all positions, each head by its own keys and queries."""
        n, _, height, width = x.shape
        z = self.qkv(x).reshape(n, self.heads, sum(self.sizes), height * width)
        query, key, value = z.split(self.sizes, 2)
        scores = query.transpose(2, 3) @ key * self.sizes[0] ** -0.5
        mixed = value @ scores.softmax(-1).transpose(2, 3)
        return self.projection(mixed.reshape(x.shape) + self.position(value.reshape(x.shape)))


class C2PSA(nn.Module):
    """Attention on half of the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.first, self.last = Conv(channels, channels), Conv(channels, channels)
        self.inner = nn.Sequential(
            Shortcut(Attention(half)),
            Shortcut(Conv(half, channels), Conv(channels, half, activation=False)),
        )

    def forward(self, x: Any) -> Any:
        """Join the first half with what attention makes of the second."""
        a, b = self.first(x).chunk(2, 1)
        return self.last(torch.cat([a, self.inner(b)], 1))


class Yolo11n(nn.Module):
    """The network: logits of boxes (N, 64, A) and of classes (N, 80, A), for A cells."""

    def __init__(self) -> None:
        super().__init__()
        self.sources = {12: (-1, 6), 15: (-1, 4), 18: (-1, 13), 21: (-1, 10)}
        upsample, join = nn.Upsample(scale_factor=2), nn.Identity()
        self.layers = nn.ModuleList(
            [
                Conv(3, 16, 3, stride=2),
                Conv(16, 32, 3, stride=2),
                C3k2(32, 64, 16),
                Conv(64, 64, 3, stride=2),
                C3k2(64, 128, 32),
                Conv(128, 128, 3, stride=2),
                C3k2(128, 128, 64, deep=True),
                Conv(128, 256, 3, stride=2),
                C3k2(256, 256, 128, deep=True),
                SPPF(256),
                C2PSA(256),
                upsample,
                join,
                C3k2(384, 128, 64),
                upsample,
                join,
                C3k2(256, 64, 32),
                Conv(64, 64, 3, stride=2),
                join,
                C3k2(192, 128, 64),
                Conv(128, 128, 3, stride=2),
                join,
                C3k2(384, 256, 128, deep=True),
            ]
        )
        width, channels = 4 * BINS, (64, 128, 256)
        self.boxes = nn.ModuleList(
            nn.Sequential(Conv(c, width, 3), Conv(width, width, 3), nn.Conv2d(width, width, 1))
            for c in channels
        )
        self.classes = nn.ModuleList(
            nn.Sequential(
                Conv(c, c, 3, groups=c),
                Conv(c, CLASSES),
                Conv(CLASSES, CLASSES, 3, groups=CLASSES),
                Conv(CLASSES, CLASSES),
                nn.Conv2d(CLASSES, CLASSES, 1),
            )
            for c in channels
        )

    def forward(self, images: Any) -> tuple[Any, Any]:
        """Return the logits for images (N, 3, H, W)."""
        features, x = [], images
        for i, layer in enumerate(self.layers):
            if i in self.sources:
                x = torch.cat([features[source] for source in self.sources[i]], 1)
            x = layer(x)
            features.append(x)
        scales = [features[i] for i in (16, 19, 22)]
        boxes = [b(f).flatten(2) for b, f in zip(self.boxes, scales, strict=True)]
        classes = [c(f).flatten(2) for c, f in zip(self.classes, scales, strict=True)]
        return torch.cat(boxes, 2), torch.cat(classes, 2)


class Decoded(nn.Module):
    """The network with its logits decoded: boxes in pixels and scores (N, 84, A)."""

    def __init__(self, yolo: Yolo11n, size: int) -> None:
        super().__init__()
        self.yolo, self.size = yolo, size

    def forward(self, images: Any) -> Any:
        """Return the detections in images."""
        boxes, classes = self.yolo(images)
        cells, strides = anchors(self.size)
        sides = distances(boxes)
        first, last = cells - sides[:, :2], cells + sides[:, 2:]
        box = torch.cat([(first + last) / 2, last - first], 1) * strides
        return torch.cat([box, classes.sigmoid()], 1)


def anchors(size: int) -> tuple[Any, Any]:
    """Return x and y of all cells in cells (2, A), and their strides (A,)."""
    centres, strides = [], []
    for stride in STRIDES:
        along = torch.arange(size // stride) + 0.5
        y, x = torch.meshgrid(along, along, indexing="ij")
        centres.append(torch.stack([x.flatten(), y.flatten()]))
        strides.append(torch.full((x.numel(),), float(stride)))
    return torch.cat(centres, 1), torch.cat(strides)


def distances(boxes: Any) -> Any:
    """Return the expected distances of the sides from their cell, in cells: (N, 4, A)."""
    weights = boxes.unflatten(1, (4, BINS)).softmax(2)
    return torch.einsum("b,nsba->nsa", torch.arange(float(BINS)), weights)


def detection_loss(yolo: Yolo11n, images: Any, size: int, *, assigned: Any, corners: Any) -> Any:
    """Return the loss of `examples/yolo11n/loss.py`, for bins and classes that are all zero."""
    boxes, classes = yolo(images)
    cells, strides = anchors(size)
    sides = distances(boxes) * strides
    first, last = cells * strides - sides[:, :2], cells * strides + sides[:, 2:]
    overlap = torch.minimum(last, corners[:, 2:]) - torch.maximum(first, corners[:, :2])
    intersection = overlap.clamp(min=0).prod(1)
    areas = (last - first).prod(1) + (corners[:, 2:] - corners[:, :2]).prod(1)
    iou = intersection / (areas - intersection + 1e-7)
    box_loss = ((1 - iou) * assigned).sum()
    class_loss = (functional.softplus(classes) - torch.zeros_like(classes) * classes).sum()
    log_bins = boxes.unflatten(1, (4, BINS)).log_softmax(2)
    bin_loss = -(torch.zeros_like(log_bins) * log_bins).sum() / 4
    return (7.5 * box_loss + 0.5 * class_loss + 1.5 * bin_loss) / assigned.sum().clamp(min=1)


def calls(
    *, size: int, trained_size: int, batch: int, rate: float, momentum: float
) -> dict[str, Callable[[], Any]]:
    """Return the measured functions."""
    yolo, trained = Yolo11n().eval(), Yolo11n().train()
    images = torch.rand(batch, 3, trained_size, trained_size)
    n_cells = sum((trained_size // stride) ** 2 for stride in STRIDES)
    assigned = torch.zeros(batch, n_cells)
    assigned[:, :2] = 1
    corners = torch.rand(batch, 4, n_cells) * trained_size
    optimizer = torch.optim.SGD(trained.parameters(), rate, momentum)
    return {
        "prediction": predict(Decoded(yolo, size), torch.rand(1, 3, size, size)),
        "training step": step_of(
            optimizer,
            lambda: detection_loss(
                trained, images, trained_size, assigned=assigned, corners=corners
            ),
        ),
    }
