"""Sample inputs of several sizes and scales for the comparison of a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.dims import dims_of

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

_EQUAL = ((4,), (5,), (6,), (7,), (8,), (12,), (16,), (24,), (32,))
_LONG = ((64,), (128,), (256,))
_DIFFERENT = ((5, 2, 4, 3, 6), (2, 5, 3, 4, 6))
_SIZES = ((3, 2, 5, 4, 1), *_EQUAL, *_DIFFERENT, *_LONG)
ATTEMPTS = range(len(_SIZES))
"""Numbers of the choices of sizes, in the order in which they are tried."""

LONG_ATTEMPT = _SIZES.index((32,))

OTHER_ATTEMPTS = (*reversed(ATTEMPTS[: -len(_LONG)]), *ATTEMPTS[-len(_LONG) :])
"""The same where a small sample is computed, but gives outputs without an element, or NaN."""

_LARGEST = 2**20
"""Elements of an array of a sample."""

_FLOATS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "between 0 and 1": lambda rng, shape: rng.random(shape),
    "near 0": lambda rng, shape: 0.01 * rng.normal(size=shape),
    "around 100": lambda rng, shape: 100 + 10 * rng.normal(size=shape),
    "around -100": lambda rng, shape: -100 + 10 * rng.normal(size=shape),
    "of many magnitudes": lambda rng, shape: (
        rng.choice([-1.0, 1.0], shape) * 10 ** rng.uniform(-3, 3, shape)
    ),
}
_INTEGERS: dict[str, tuple[int, int]] = {
    "normal": (0, 1),
    "between 0 and 1": (0, 1),
    "near 0": (0, 0),
    "around 100": (70, 120),
    "around -100": (-120, -70),
    "of many magnitudes": (-100, 100),
}
_MIXED = tuple(kind for kind in _FLOATS if kind != "near 0")
KINDS = (*_FLOATS, *(f"mixture {i}" for i in range(len(_MIXED) * (len(_MIXED) - 1))))
"""The values that are tried in turn; a mixture takes one of the others for each input.

Any two inputs that are not a multiple of five apart have all pairs of kinds among the mixtures.
"""


TAILS: dict[str, float] = {
    "at -40": -40.0,
    "at 40": 40.0,
    "at -700": -700.0,
    "at 700": 700.0,
    "tiny": 1e-30,
}
"""Values around which elementwise graphs are compared as well: operators lose small results there.

All elements are about equal, so that results of one size do not hide the loss of smaller ones.
"""


@dataclass(frozen=True)
class Sample:
    """One array for each input of a model.

    Attributes
    ----------
    arrays
        The arrays.
    names
        Names of the inputs.
    values
        Kind of the values, empty for the caller's own.
    """

    arrays: list[np.ndarray]
    names: list[str]
    values: str = ""

    def __str__(self) -> str:
        """Describe the sample, as in ``sampled inputs (x [3], normal)``."""
        listing = ", ".join(
            f"{name} {list(array.shape)}"
            for name, array in zip(self.names, self.arrays, strict=True)
        )
        unusual = f"; values {self.values}" if self.values not in ("", "normal") else ""
        return f"{'sampled' if self.values else 'given'} inputs ({listing or 'none'}{unusual})"


def sample(
    inputs: Sequence[ir.Value],
    attempt: int = 0,
    kind: str = "normal",
    sizes: Mapping[str, int] | None = None,
) -> Sample:
    """Return arrays that fit the inputs of a model.

    Parameters
    ----------
    inputs
        Inputs of the model.
    attempt
        Number of the choice of sizes, one of `ATTEMPTS`; some have different sizes for different
        names, the others equal sizes.
    kind
        Values, one of `KINDS` or `TAILS`.
    sizes
        Sizes of dimensions that are known, such as those of a state.

    Examples
    --------
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("batch", 2))
    >>> str(sample([x])), str(sample([x], 1, "around 100"))
    ('sampled inputs (x [3, 2])', 'sampled inputs (x [4, 2]; values around 100)')
    """
    number = [*KINDS, *TAILS].index(kind)
    rng = np.random.default_rng([attempt, number] if number else attempt)
    step, start = divmod(max(number - len(_FLOATS), 0), len(_MIXED))
    rank = max((_unknown(value) for value in inputs), default=0)
    longest = int(_LARGEST ** (1 / rank)) if rank else 0
    chosen: dict[str, int] = {}
    arrays = []
    for position, value in enumerate(inputs):
        shape = []
        for dim in dims_of(value) or ():
            if isinstance(dim, int):
                shape.append(dim)
            elif sizes and str(dim) in sizes:
                shape.append(sizes[str(dim)])
            else:
                size = min(longest, _SIZES[attempt][len(chosen) % len(_SIZES[attempt])])
                shape.append(chosen.setdefault(str(dim), size))
        mixed = _MIXED[(start + position * (step + 1)) % len(_MIXED)]
        chosen_kind = mixed if kind.startswith("mixture") else kind
        arrays.append(_draw(rng, value, tuple(shape), chosen_kind))
    name = "mixed" if kind.startswith("mixture") else kind
    return Sample(arrays, [str(v.name) for v in inputs], name)


def known_sizes(values: Sequence[ir.Value], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """Return the sizes that arrays give to the named dimensions of values.

    Examples
    --------
    >>> state = ir.val("state", dtype=ir.DataType.FLOAT, shape=("n", 2))
    >>> known_sizes([state], [np.zeros((3, 2))])
    {'n': 3}
    """
    return {
        str(dim): size
        for value, array in zip(values, arrays, strict=True)
        for dim, size in zip(dims_of(value) or (), array.shape, strict=True)
        if not isinstance(dim, int)
    }


def _unknown(value: ir.Value) -> int:
    """Return the number of axes of unknown size."""
    return sum(not isinstance(dim, int) for dim in dims_of(value) or ())


def _draw(
    rng: np.random.Generator, value: ir.Value, shape: tuple[int, ...], kind: str
) -> np.ndarray:
    dtype = np.dtype("float64") if value.dtype is None else value.dtype.numpy()
    if dtype.kind == "f" and kind in TAILS:
        return np.asarray(TAILS[kind] * (1 + 0.02 * rng.random(shape)), dtype=dtype)
    if dtype.kind == "f":
        return np.asarray(_FLOATS[kind](rng, shape), dtype=dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, size=shape), dtype=dtype)
    low, high = _INTEGERS.get(kind, _INTEGERS["normal"])
    low = max(low, int(np.iinfo(dtype).min))
    return np.asarray(rng.integers(low, high + 1, size=shape), dtype=dtype)
