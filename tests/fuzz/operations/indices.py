"""Indices and updates."""

from typing import Any

import numpy as np

from tests.dispatch.values import FLOATS, INTEGERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import INDEX_DTYPES, operation
from tests.fuzz.terms import Term


@operation
def basic_index(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    return f"{x}[{_basic_index(g, x)[0]}]"


@operation
def basic_update(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    code, index = _basic_index(g, x)
    return _update(g, x, code, x.value[index])


def _basic_index(g: Graph, x: Term) -> tuple[str, Any]:
    parts, values = [], []
    for size in x.shape[: 1 + g.choices.below(x.ndim)]:
        code, value = _basic_entry(g, size)
        parts.append(code)
        values.append(value)
    return ", ".join(parts), tuple(values)


def _basic_entry(g: Graph, size: int) -> tuple[str, int | slice]:
    if size and g.choices.below(3) == 0:
        position = g.choices.below(2 * size) - size
        return g.whole(position), position
    start = g.choices.of((None, 1, -1, 2, -2, 0, 7, -7))
    stop = g.choices.of((None, -1, 2, 1, 3, -2, 0, 9, -9))
    step = g.choices.of((None, -1, 2, 1, -2))
    code = ":".join("" if n is None else g.whole(n) for n in (start, stop, step))
    return code, slice(start, stop, step)


def _update(g: Graph, x: Term, code: str, selected: np.ndarray) -> str:
    """Return an update of the selected elements by a term, a number or something broadcast."""
    verb = g.choices.of(("set", "inc"))
    floats = FLOATS[: FLOATS.index(x.dtype) + 1] if x.is_float else ()
    dtypes = (*floats, "bool", "int8") if x.is_float else (x.dtype,)

    def fits(t: Term) -> bool:
        return t.shape == selected.shape and t.dtype in dtypes

    fitting = [t for t in g.terms if fits(t)]
    if fitting and g.choices.below(2):
        y: Term | str = g.choices.of(fitting)
    elif g.choices.below(2):
        kept = g.choices.below(selected.ndim + 1)
        y = g.leaf(x.dtype, selected.shape[kept:])
    else:
        y = "True" if x.dtype == "bool" else g.choices.of(("0", "1", "2"))
        y = f"np.uint64({y})" if x.dtype == "uint64" else y
    return f"{x}[{code}].{verb}({y})"


@operation
def advanced_index(g: Graph) -> str | None:
    x = g.term(rank=range(1, 5))
    entry = _advanced_index(g, x)
    return entry and f"{x}[{entry[0]}]"


@operation
def advanced_update(g: Graph) -> str | None:
    x = g.term(rank=range(1, 4))
    entry = _advanced_index(g, x)
    return entry and _update(g, x, entry[0], x.value[entry[1]])


def _advanced_index(g: Graph, x: Term) -> tuple[str, Any] | None:
    """Return an index with arrays, slices, numbers and new axes in any order."""
    shape = [g.choices.of((2, 3, 1, 0)) for _ in range(g.choices.of((1, 2, 0)))]
    parts, values, axis = [], [], 0
    depth = 1 + g.choices.below(x.ndim)
    while axis < depth:
        kind = g.choices.below(6)
        if kind == 5:
            code, value = "None", None
        elif kind == 4 and x.ndim > 1:
            code, value = _basic_entry(g, x.shape[axis])
        elif kind == 3:
            mask = np.array([g.choices.below(2) for _ in range(x.shape[axis])], dtype=bool)
            code, value = g.given("bool", mask).name, mask
        elif x.shape[axis] == 0:
            code, value = ":", slice(None)
        else:
            size = x.shape[axis]
            own = shape if g.choices.below(3) else shape[-1:]
            rng = np.random.default_rng(g.choices.below(16))
            value = np.asarray(rng.integers(-size, size, size=own))
            dtype = g.choices.of(INDEX_DTYPES[:3])
            code = g.given(dtype, value).name
        parts.append(code)
        values.append(value)
        axis += value is not None
        if len(parts) > 6:
            return None
    return ", ".join(parts), tuple(values)


@operation
def mask_index(g: Graph) -> str | None:
    x = g.term(rank=range(1, 4))
    masks = [t for t in g.terms if t.dtype == "bool" and t.ndim > 0 and t.exact]
    masks = [t for t in masks if t.shape == x.shape[: t.ndim]]
    mask = g.choices.of(masks) if masks else g.given("bool", x.value.astype("f8") > 0)
    if g.choices.below(2):
        return f"{x}[{mask}]"
    return _update(g, x, str(mask), x.value[mask.value])


@operation
def take(g: Graph) -> str | None:
    x = g.term(rank=range(1, 4))
    axis = g.choices.below(x.ndim)
    size = x.shape[axis]
    indices = [
        t
        for t in g.terms
        if t.exact and t.dtype in INTEGERS and np.all((t.value < size) & (t.value >= -size))
    ]
    if not indices:
        return None
    index = g.choices.of(indices)
    if index.ndim == x.ndim and g.choices.below(2):
        return f"pt.take_along_axis({x}, {index}, axis={axis})"
    return f"pt.take({x}, {index}, axis={axis})"
