"""Checks of the arguments of norms."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.static_sizes import sizes_of


def named(gamma: Any, beta: Any) -> list[tuple[str, Any]]:
    """Return the two parameters with their names."""
    return [("gamma", gamma), ("beta", beta)]


def check_rank(x: TensorVariable, name: str, least: int) -> None:
    """Raise if an array has fewer axes than a norm needs."""
    if x.type.ndim < least:
        axes = ["batch", "channels", "*spatial"][:least]
        raise ValueError(f"{name} takes an array ({', '.join(axes)}); got {x.type.ndim} dimensions")


def count_axes(x: TensorVariable, axis: int, name: str) -> int:
    """Return the number of axes from one on, for an axis counted from either end."""
    rank = x.type.ndim
    if not -rank <= axis < rank:
        raise ValueError(f"{name} along axis {axis} of an array of {rank} dimensions")
    return rank - axis % rank


def scale_or_ones(gamma: Any, x: TensorVariable, n_axes: int) -> TensorVariable:
    """Return a scale for the last axes, ones where none is given."""
    if gamma is not None:
        return over_axes(gamma, "gamma", x, n_axes)
    sizes = sizes_of(x, x.type.ndim - n_axes)
    if all(isinstance(size, int) for size in sizes):
        return pt.constant(np.ones(sizes, x.type.dtype))
    return pt.ones(sizes, dtype=x.type.dtype)


def over_axes(value: Any, name: str, x: TensorVariable, n_axes: int) -> TensorVariable:
    """Return a parameter of the shape of the last axes, in the dtype of the array."""
    parameter = pt.as_tensor(value)
    own, wanted = parameter.type.shape, x.type.shape[x.type.ndim - n_axes :]
    if len(own) != n_axes or any(
        None not in pair and len(set(pair)) > 1 for pair in zip(own, wanted, strict=True)
    ):
        raise ValueError(f"{name} has the shape {own}; it must have that of the axes, {wanted}")
    return parameter.astype(x.type.dtype)


def channel_vector(value: Any, name: str, size: int | None, dtype: str) -> TensorVariable:
    """Return a parameter with one number for each channel."""
    vector = pt.as_tensor(value)
    if vector.type.ndim != 1:
        raise ValueError(
            f"{name} must be a vector with a number for each channel; got {vector.type.ndim} "
            "dimensions"
        )
    length = vector.type.shape[0]
    if None not in (size, length) and size != length:
        raise ValueError(f"{name} has {length} numbers, but there are {size} channels")
    return vector.astype(dtype)
