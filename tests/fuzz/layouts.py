"""Arrays that lie in memory in other ways than row by row."""

import numpy as np

LAYOUTS = ("reversed", "transposed", "spaced", "repeated")
LONGEST_LITERAL = 1000


def laid_out(value: np.ndarray, layout: str) -> np.ndarray:
    """Return equal elements in another layout: a view of a larger, turned or reversed array.

    Examples
    --------
    >>> laid_out(np.arange(3), "reversed").strides
    (-8,)
    """
    if value.ndim == 0 or not layout:
        return value
    if layout == "reversed":
        return value[..., ::-1].copy()[..., ::-1]
    if layout == "transposed":
        return value.T.copy().T
    if layout == "spaced":
        return np.repeat(value, 2, axis=-1)[..., ::2]
    return np.broadcast_to(value[:1], value.shape) if _is_repeated(value) else value


def literal_of(value: np.ndarray, layout: str = "") -> str:
    """Return code for an array in a layout.

    Examples
    --------
    >>> literal_of(np.arange(2), "reversed")
    "np.array([1, 0], dtype='int64')[..., ::-1]"
    """
    if value.ndim == 0 or not layout:
        return _literal(value)
    if layout == "reversed":
        return f"{_literal(value[..., ::-1])}[..., ::-1]"
    if layout == "transposed":
        return f"{_literal(value.T)}.T"
    if layout == "spaced":
        return f"np.repeat({_literal(value)}, 2, axis=-1)[..., ::2]"
    if _is_repeated(value):
        return f"np.broadcast_to({_literal(value[:1])}, {value.shape})"
    return _literal(value)


def _is_repeated(value: np.ndarray) -> bool:
    return value.shape[0] > 1 and np.array_equal(value, value[:1].repeat(len(value), axis=0))


def _literal(value: np.ndarray) -> str:
    dtype = repr(str(value.dtype))
    if value.size == 0 and value.shape != (0,):
        return f"np.zeros({value.shape}, dtype={dtype})"
    if value.size > LONGEST_LITERAL:
        period = 64
        return f"np.resize({_literal(value.ravel()[:period])}, {value.shape})"
    return f"np.array({value.tolist()!r}, dtype={dtype})"
