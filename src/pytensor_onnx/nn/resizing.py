"""Resizing of the spatial axes of arrays of shape (N, C, *S)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.interpolation import COORDINATES, MODES, ROUNDINGS, Interpolation
from pytensor_onnx.nn.resize_op import Resize
from pytensor_onnx.nn.windows import Ints, per_axis, spatial_rank

LARGEST_DENOMINATOR = 2**20
type Scales = float | Sequence[float]


def resize(
    input: Any,
    sizes: Ints | None = None,
    scales: Scales | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    antialias: bool = False,
    exclude_outside: bool = False,
) -> TensorVariable:
    """Resize the spatial axes of an array, exported as one ``Resize``.

    Parameters
    ----------
    input
        Floats of shape (N, C, *S) with one to three spatial axes.
    sizes
        The sizes of the result, one int for each spatial axis or one for all.
    scales
        How many times larger the result is instead: ``floor(size * scale)`` cells.
    mode
        ``"nearest"``, ``"linear"`` or ``"cubic"``, along each axis.
    coordinates
        Which place ``p`` in the input belongs to cell ``i`` of the result:

        - ``"half_pixel"``: ``(i + 0.5) / scale - 0.5``, the centres of cells on each other,
        - ``"pytorch_half_pixel"``: the same, but 0 where the result has one cell only,
        - ``"align_corners"``: ``i * (size - 1) / (result - 1)``, the outer cells on each other,
        - ``"asymmetric"``: ``i / scale``.
    rounding
        Which cell is nearest to a place: ``"round_prefer_floor"``, ``"round_prefer_ceil"``,
        ``"floor"`` or ``"ceil"``.
    cubic_coefficient
        Parameter of the cubic kernel of Keys, -0.75 or -0.5 as a rule.
    antialias
        Whether, along an axis that becomes shorter, the kernel becomes wider by the same factor, so
        that every cell of the input has its share. Linear and cubic only.
    exclude_outside
        Whether cells beyond the edges have no weight, and those of the others are made to sum to 1;
        else the outer cells are repeated. Image libraries that have antialiasing exclude them.

    Returns
    -------
    TensorVariable
        Array of the same dtype.

    Raises
    ------
    TypeError, ValueError
        If the array does not have these axes, an argument is none of these, or nearest cells are
        to be antialiased.

    Notes
    -----
    The formulas are those of the operator Resize in the ONNX standard. Runtimes compute the places
    in float32. Where that could take a neighbour for the nearest cell, gathers are exported.
    Antialiased, ONNX Runtime gives NaN also to a neighbour of the cells that a NaN has a share in.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> resize(x, sizes=5, mode="linear").eval({x: np.array([[[0.0, 5.0]]])}, mode="ONNX")
    array([[[0. , 0.5, 2.5, 4.5, 5. ]]])
    """
    x = pt.as_tensor(input)
    rank = spatial_rank(x, "resize")
    for name, value, known in (
        ("mode", mode, MODES),
        ("coordinates", coordinates, COORDINATES),
        ("rounding", rounding, ROUNDINGS),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, known))}")
    if (sizes is None) == (scales is None):
        raise ValueError("resize takes either sizes or scales")
    if antialias and mode == "nearest":
        raise ValueError("antialias=True goes with mode='linear' or mode='cubic' only")
    return Resize(
        sizes=None if sizes is None else per_axis("sizes", sizes, rank),
        scales=None if scales is None else _fractions(scales, rank),
        interpolation=Interpolation(
            mode,
            coordinates,
            rounding,
            float(cubic_coefficient),
            antialias=bool(antialias),
            exclude_outside=bool(exclude_outside) and (mode == "cubic" or bool(antialias)),
        ),
    )(x)


def upsample(input: Any, scale: Scales, mode: str = "nearest") -> TensorVariable:
    """Make the spatial axes of an array larger by a factor, exported as one ``Resize``.

    Parameters
    ----------
    input
        Floats of shape (N, C, *S) with one to three spatial axes.
    scale
        The factor, or one for each spatial axis.
    mode
        ``"nearest"`` repeats each cell; ``"linear"`` and ``"cubic"`` interpolate between the
        centres of cells.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> upsample(x, 2).eval({x: np.array([[[1.0, 5.0]]])}, mode="ONNX")
    array([[[1., 1., 5., 5.]]])
    """
    if mode == "nearest":
        return resize(input, scales=scale, mode=mode, coordinates="asymmetric", rounding="floor")
    return resize(input, scales=scale, mode=mode)


def _fractions(scales: Scales, rank: int) -> tuple[Fraction, ...]:
    values = [scales] * rank if isinstance(scales, int | float) else list(scales)
    if len(values) != rank:
        raise ValueError(
            f"scales={scales} must be one number, or {rank}: one for each spatial axis"
        )
    if any(not 0 < value < float("inf") for value in values):
        raise ValueError(f"scales={scales} must be positive and finite")
    return tuple(Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in values)
