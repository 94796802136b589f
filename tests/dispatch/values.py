"""The dtypes of PyTensor, and the values that go wrong most easily in each of them."""

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
DISCRETE = ("bool", *INTEGERS)
FLOATS = ("float16", "float32", "float64")
DTYPES = (*DISCRETE, *FLOATS)
NUMBERS = (*INTEGERS, *FLOATS)

_RNG = np.random.default_rng(0)


def special_values(dtype: str) -> np.ndarray:
    """Return zeros, small numbers and the extremes of a dtype; for floats NaN and infinities."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True, True, False])
    if kind == "f":
        limits = np.finfo(dtype)
        small = [0.0, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, 0.3, 0.49999, 7.7, 20.5, limits.eps]
        large = [limits.max, limits.tiny, limits.smallest_subnormal, np.inf]
        return np.array([s * x for x in (*small, *large) for s in (1, -1)] + [np.nan], dtype)
    limits = np.iinfo(dtype)
    around = [0, 1, 2, 3, 7, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1]
    extremes = [limits.max, limits.max - 1, limits.max // 2, limits.min, limits.min + 1]
    candidates = {*around, *(-x for x in around), *extremes}
    return np.array(sorted(x for x in candidates if limits.min <= x <= limits.max), dtype)


def elements(dtype: str) -> st.SearchStrategy:
    """Draw elements of a dtype, special ones often."""
    return st.one_of(st.sampled_from(special_values(dtype)), hnp.from_dtype(np.dtype(dtype)))


def shapes(min_dims: int = 0, max_dims: int = 4, max_side: int = 4) -> st.SearchStrategy:
    """Draw shapes with zeros and ones among their sizes."""
    return hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=0, max_side=max_side)


def some(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return moderate numbers, so that sums neither overflow nor cancel."""
    if dtype == "bool":
        return _RNG.random(shape) < 0.7
    low = -5 if np.dtype(dtype).kind == "i" else 0
    if dtype in INTEGERS:
        return _RNG.integers(low, 6, shape).astype(dtype)
    return _RNG.uniform(0.5, 2, shape).astype(dtype)


def dynamic(name: str, array: np.ndarray):
    return pt.tensor(name, dtype=array.dtype, shape=(None,) * array.ndim)
