"""Arguments of windows as users write them."""

from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.windows import Ints, Padding, Windows

SPATIAL_RANKS = (1, 2, 3)


def make_windows(
    rank: int, window: Ints, stride: Ints | None, padding: Padding, dilation: Ints, ceil_mode: bool
) -> Windows:
    """Check the arguments of a sliding window and expand them to all spatial axes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not made of ints, has another length than the number of spatial axes, is
        out of range, or a window could lie wholly in the padding.

    Examples
    --------
    >>> windows = make_windows(2, 3, None, (1, (0, 2)), 1, False)
    >>> windows.stride, windows.padding
    ((3, 3), ((1, 1), (0, 2)))
    """
    windows = Windows(
        window=per_axis("window", window, rank),
        stride=per_axis("stride", window if stride is None else stride, rank),
        padding=_pairs(padding, rank),
        dilation=per_axis("dilation", dilation, rank),
        ceil_mode=bool(ceil_mode),
    )
    for size, pads in zip(windows.window, windows.padding, strict=True):
        if max(pads) >= size:
            raise ValueError(
                f"padding {pads} must be smaller than the window of {size}: a window could lie "
                "wholly in the padding"
            )
    return windows


def spatial_rank(x: TensorVariable, name: str) -> int:
    """Return the number of spatial axes of an array of shape (N, C, *S).

    Raises
    ------
    TypeError
        If it is not an array of floats.
    ValueError
        If it does not have one to three spatial axes.
    """
    if x.type.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"{name} takes an array of floats; got one of {x.type.dtype}")
    if x.type.ndim - 2 not in SPATIAL_RANKS:
        raise ValueError(
            f"{name} takes an array of shape (batch, channels, *spatial) with one to three spatial "
            f"axes; got one of {x.type.ndim} dimensions"
        )
    return x.type.ndim - 2


def per_axis(name: str, value: Ints, rank: int, smallest: int = 1) -> tuple[int, ...]:
    """Return an argument as one int for each spatial axis.

    Examples
    --------
    >>> per_axis("stride", 2, 3), per_axis("stride", (1, 2), 2)
    ((2, 2, 2), (1, 2))
    """
    values = [value] * rank if isinstance(value, int) else list(value)
    if len(values) != rank:
        raise ValueError(f"{name}={value} must be one int, or {rank}: one for each spatial axis")
    if any(isinstance(v, bool) or not hasattr(v, "__index__") for v in values):
        raise TypeError(f"{name}={value} must be made of ints")
    if any(v < smallest for v in values):
        raise ValueError(f"{name}={value} must not be less than {smallest}")
    return tuple(int(v) for v in values)


def _pairs(padding: Padding, rank: int) -> tuple[tuple[int, int], ...]:
    entries = [padding] * rank if isinstance(padding, int) else list(padding)
    if len(entries) != rank:
        raise ValueError(
            f"padding={padding} must be one int, or {rank} ints or (before, after) pairs: one for "
            "each spatial axis"
        )
    pairs = []
    for entry in entries:
        before, after = per_axis("padding", entry, 2, smallest=0)
        pairs.append((before, after))
    return tuple(pairs)
