"""Resizing of the spatial axes of arrays of shape ``(N, C, *S)``."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.resize import COORDINATES, MODES, ROUNDINGS, Interpolation, Resize
from pytensor_onnx.ops.networks.windows import Ints, per_axis, spatial_rank

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
        Floats of shape ``(N, C, *S)`` with one to three spatial axes.
    sizes
        The sizes of the result, one int for each spatial axis or one for all.
    scales
        Factors of the sizes, in place of ``sizes``; the result has size ``floor(size * scale)``.
    mode
        ``"nearest"``, ``"linear"`` or ``"cubic"``, along each axis.
    coordinates
        Coordinate ``p`` in the input of element ``i`` of the result:

        - ``"half_pixel"``: ``(i + 0.5) / scale - 0.5``, with elements centred in their pixels,
        - ``"pytorch_half_pixel"``: the same, but 0 if the result has one element,
        - ``"align_corners"``: ``i * (size - 1) / (result - 1)``, with the outer elements aligned,
        - ``"asymmetric"``: ``i / scale``.
    rounding
        Rounding of a coordinate to the nearest element: ``"round_prefer_floor"``,
        ``"round_prefer_ceil"``, ``"floor"`` or ``"ceil"``.
    cubic_coefficient
        Parameter of Keys' cubic interpolation, usually -0.75 or -0.5.
    antialias
        Whether to widen the interpolation filter by the factor by which an axis shrinks, so that
        every element of the input contributes. Linear and cubic only.
    exclude_outside
        Whether elements beyond the edges have no weight, with the other weights normalised to sum
        1, as in image libraries with antialiasing; else the outer elements are repeated.

    Returns
    -------
    TensorVariable
        Array of the same dtype.

    Raises
    ------
    TypeError, ValueError
        If the array does not have these axes, an argument is unknown, or ``antialias`` is combined
        with ``"nearest"``.

    Notes
    -----
    The formulas are those of the operator Resize in the ONNX standard. Runtimes compute
    coordinates in float32. Where that could select another nearest element, gathers are exported.
    With antialiasing, ONNX Runtime also returns NaN for an element next to those with a NaN.

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
    """Enlarge the spatial axes of an array by a factor, exported as one ``Resize``.

    Parameters
    ----------
    input
        Floats of shape ``(N, C, *S)`` with one to three spatial axes.
    scale
        The factor, or one for each spatial axis.
    mode
        ``"nearest"`` repeats each element; ``"linear"`` and ``"cubic"`` interpolate between the
        centres of pixels.

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
