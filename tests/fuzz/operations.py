"""Operations that a random graph is made of: each returns the code that applies it, or None."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pytensor.scalar.basic import upcast

from tests.dispatch.values import DISCRETE, DTYPES, FLOATS, INTEGERS, NUMBERS
from tests.fuzz.graphs import Graph, Term

Operation = Callable[[Graph], str | None]
OPERATIONS: list[Operation] = []

WIDE = ("float64", "float32")
MATRIX = range(1, 5)
INDEX_DTYPES = ("int64", "int32", "int8", "uint8")


def operation(function: Operation) -> Operation:
    """Let graphs contain an operation."""
    OPERATIONS.append(function)
    return function


@operation
def leaf(g: Graph) -> str:
    g.leaf(g.choices.of(DTYPES), [g.choices.of((3, 2, 1, 0, 4)) for _ in range(g.choices.below(4))])
    return ""


# Elementwise.


@operation
def exact_unary(g: Graph) -> str:
    name = g.choices.of(("neg", "abs", "sqr", "identity"))
    x = g.term(NUMBERS if name == "neg" else DTYPES)
    return f"pt.tensor_copy({x})" if name == "identity" else f"pt.{name}({x})"


@operation
def rounding_unary(g: Graph) -> str:
    name = g.choices.of(
        (
            "floor",
            "ceil",
            "trunc",
            "round_half_to_even",
            "round_half_away_from_zero",
            "sgn",
            "isnan",
            "isinf",
        )
    )
    floats_only = name.startswith("round")
    dtypes = FLOATS if floats_only else (NUMBERS if name == "sgn" else DTYPES)
    return f"pt.{name}({g.term(dtypes, exact=True)})"


@operation
def smooth_unary(g: Graph) -> str:
    names = (
        *(
            "exp",
            "tanh",
            "sqrt",
            "sin",
            "cos",
            "sigmoid",
            "softplus",
            "erf",
            "log1p",
            "expm1",
            "log",
        ),
        *("erfc", "exp2", "log2", "log10", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh"),
        *("arcsinh", "arccosh", "arctanh", "reciprocal", "log1mexp", "deg2rad"),
    )
    name = g.choices.of(names)
    x = g.term(NUMBERS if g.choices.one_in(6) else WIDE)
    return f"pt.{name}({x})"


@operation
def arithmetic(g: Graph) -> str:
    x = g.term(DTYPES if g.choices.one_in(3) else FLOATS)
    y = g.partner(x, DTYPES if g.choices.one_in(3) else (x.dtype,))
    symbol = g.choices.of(("+", "*", "-", "/"))
    if g.choices.one_in(4):
        x, y = y, x
    if g.choices.one_in(4):
        return f"{x} {symbol} {g.choices.of((2, 0.5, 1, -1, 3, 0))}"
    return f"{x} {symbol} {y}"


@operation
def integer_arithmetic(g: Graph) -> str:
    x = g.term(DISCRETE)
    y = g.partner(x, DISCRETE)
    return f"{x} {g.choices.of(('+', '*', '-', '//', '%', '/'))} {y}"


@operation
def floor_division(g: Graph) -> str:
    x = g.term(exact=True)
    return f"{x} {g.choices.of(('//', '%'))} {g.partner(x, exact=True)}"


@operation
def power(g: Graph) -> str:
    x = g.term()
    if g.choices.below(3) < 2:
        return f"{x} ** {g.choices.of((2, 3, 0.5, -1, 0, 1, 4, 1.5, -2))}"
    return f"{x} ** {g.partner(x)}"


@operation
def extremum(g: Graph) -> str:
    x = g.term()
    return f"pt.{g.choices.of(('maximum', 'minimum'))}({x}, {g.partner(x)})"


@operation
def rectifier(g: Graph) -> str:
    x = g.term(NUMBERS)
    return g.choices.of((f"pt.maximum({x}, 0)", f"pt.minimum({x}, 1)", f"pt.maximum(0, {x})"))


@operation
def arctan2(g: Graph) -> str:
    x = g.term(WIDE)
    # The sign of a zero, which sums do not keep alike, would tell 0 from pi.
    return f"pt.arctan2(pt.switch(pt.eq({x}, 0), 1, {x}), {g.partner(x, WIDE)})"


@operation
def comparison(g: Graph) -> str:
    x = g.term(exact=True)
    name = g.choices.of(("lt", "gt", "le", "ge", "eq", "neq"))
    if g.choices.one_in(3):
        return f"pt.{name}({x}, {g.choices.of((0, 1, 2))})"
    return f"pt.{name}({x}, {g.partner(x, exact=True)})"


@operation
def bitwise(g: Graph) -> str:
    x = g.term(DISCRETE)
    if g.choices.one_in(4):
        return f"~{x}"
    # No dtype has the bits of uint64 and of a signed integer.
    dtypes = [d for d in DISCRETE if upcast(d, x.dtype) in DISCRETE]
    return f"{x} {g.choices.of(('&', '|', '^'))} {g.partner(x, dtypes)}"


@operation
def switch(g: Graph) -> str:
    condition = g.term(("bool",) if g.choices.below(2) == 0 else DISCRETE)
    x = g.partner(condition)
    y = g.partner(x)
    return f"pt.switch({condition}, {x}, {y})"


@operation
def clip(g: Graph) -> str:
    x = g.term(NUMBERS)
    if g.choices.below(2):
        return f"pt.clip({x}, 0, 2)"
    return f"pt.clip({x}, {g.partner(x, (x.dtype,))}, {g.partner(x, (x.dtype,))})"


@operation
def fill(g: Graph) -> str:
    x = g.term()
    return f"pt.fill({x}, {g.partner(x)})"


@operation
def cast(g: Graph) -> str | None:
    dtype = g.choices.of(("float64", "float32", *DTYPES))
    x = g.term(exact=dtype in DISCRETE)
    if x.is_float and dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if not np.all((x.value >= limits.min) & (x.value <= limits.max / 2)):
            return None
    return f"pt.cast({x}, {dtype!r})"


@operation
def nan_to_num(g: Graph) -> str:
    return f"pt.nan_to_num({g.term(WIDE, exact=True)})"


@operation
def logarithms(g: Graph) -> str:
    x = g.term(WIDE)
    return g.choices.of(
        (
            f"pt.logaddexp({x}, {g.partner(x, WIDE)})",
            f"pt.log(1 + pt.exp({x}))",
            f"pt.log(pt.sigmoid({x}))",
            f"pt.xlogx.xlogx(pt.abs({x}))",
            f"pt.log(1 - pt.sigmoid({x}))",
            f"pt.exp({x}) / (1 + pt.exp({x}))",
        )
    )


# Reductions.


@operation
def reduction(g: Graph) -> str:
    x = g.term()
    name = g.choices.of(("sum", "max", "min", "prod", "mean"))
    keepdims = ", keepdims=True" if g.choices.one_in(3) else ""
    return f"pt.{name}({x}, axis={g.axes(x)}{keepdims})"


@operation
def statistic(g: Graph) -> str:
    x = g.term(WIDE)
    name = g.choices.of(("var", "std", "logsumexp", "ptp", "median"))
    axis = g.axis(x) if x.ndim else None
    return f"pt.{name}({x}, axis={axis})"


@operation
def typed_sum(g: Graph) -> str:
    x = g.term()
    dtype = g.choices.of(("float64", "int64", x.dtype, "float32", "int8", "uint16"))
    return f"pt.{g.choices.of(('sum', 'prod'))}({x}, axis={g.axes(x)}, dtype={dtype!r})"


@operation
def logical_reduction(g: Graph) -> str:
    x = g.term(exact=True)
    return f"pt.{g.choices.of(('any', 'all'))}({x}, axis={g.axes(x)})"


@operation
def arg_extremum(g: Graph) -> str:
    x = g.term(exact=True)
    return f"pt.{g.choices.of(('argmax', 'argmin'))}({x}, axis={g.axes(x)})"


@operation
def max_and_argmax(g: Graph) -> str:
    x = g.term(exact=True, rank=range(1, 5))
    return f"pt.max_and_argmax({x}, axis={g.axis(x)})"


@operation
def cumulative(g: Graph) -> str:
    x = g.term()
    axis = g.axis(x) if x.ndim and not g.choices.one_in(3) else None
    return f"pt.{g.choices.of(('cumsum', 'cumprod'))}({x}, axis={axis})"


@operation
def difference(g: Graph) -> str:
    x = g.term(NUMBERS, rank=range(1, 5))
    return f"pt.diff({x}, axis={g.axis(x)})"


@operation
def softmax(g: Graph) -> str | None:
    x = g.term(WIDE if g.choices.below(3) else FLOATS, rank=range(1, 5))
    if x.value.size == 0:
        return None  # PyTensor's Python implementation fails, its others and ONNX do not.
    axis = "None" if g.choices.one_in(4) else g.axis(x)
    return f"pt.special.{g.choices.of(('softmax', 'log_softmax'))}({x}, axis={axis})"


# Shapes.


@operation
def transpose(g: Graph) -> str:
    x = g.term(rank=range(1, 6))
    order = list(range(x.ndim))
    permuted = [order.pop(g.choices.below(len(order))) for _ in range(x.ndim)]
    return g.choices.of(
        (
            f"{x}.T",
            f"{x}.transpose({permuted})",
            f"pt.moveaxis({x}, {g.axis(x)}, {g.axis(x)})",
            f"pt.swapaxes({x}, {g.axis(x)}, {g.axis(x)})",
        )
    )


@operation
def reshape(g: Graph) -> str:
    x = g.term()
    shape = _factors(g, x.value.size)
    sizes = [g.whole(size) for size in shape]
    if shape and np.prod(shape) > 0 and g.choices.one_in(3):
        sizes[g.choices.below(len(sizes))] = "-1"
    return f"pt.reshape({x}, ({''.join(size + ', ' for size in sizes)}), ndim={len(sizes)})"


def _factors(g: Graph, size: int) -> list[int]:
    factors = []
    for _ in range(g.choices.below(4)):
        divisors = [d for d in range(1, size + 1) if size % d == 0][:6] or [0, 1, 2, 3]
        factors.append(g.choices.of(divisors))
        size //= max(factors[-1], 1)
    return [*factors, size] if size != 1 or not factors else factors


@operation
def flatten(g: Graph) -> str:
    x = g.term(rank=range(1, 6))
    return g.choices.of((f"{x}.flatten()", f"{x}.flatten(ndim={1 + g.choices.below(x.ndim)})"))


@operation
def expand_dims(g: Graph) -> str:
    x = g.term(rank=range(5))
    return f"pt.expand_dims({x}, {g.choices.below(x.ndim + 1)})"


@operation
def squeeze(g: Graph) -> str:
    x = g.term(where=lambda t: 1 in t.static)
    axes = [i for i, size in enumerate(x.static) if size == 1]
    return f"pt.squeeze({x}, axis={g.choices.of(axes)})" if axes else f"pt.squeeze({x})"


@operation
def broadcast_to(g: Graph) -> str:
    x = g.term(rank=range(4))
    sizes = [
        g.whole(g.choices.of((2, 1, 3, 0)) if static == 1 else size)
        for static, size in zip(x.static, x.shape, strict=True)
    ]
    if g.choices.below(2):
        sizes.insert(0, g.whole(g.choices.of((2, 1, 0))))
    shape = f"({''.join(size + ', ' for size in sizes)})"
    return g.choices.of((f"pt.broadcast_to({x}, {shape})", f"pt.alloc({x}, *{shape})"))


@operation
def join_and_split_dims(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    axis = g.choices.below(x.ndim)
    if g.choices.below(2):
        count = g.choices.below(x.ndim - axis + 1)
        return f"pt.join_dims({x}, start_axis={axis}, n_axes={count})"
    sizes = [g.whole(size) for size in _factors(g, x.shape[axis])]
    return f"pt.split_dims({x}, axis={axis}, shape=({''.join(size + ', ' for size in sizes)}))"


@operation
def specify_shape(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    sizes = [str(size) if g.choices.below(2) else "None" for size in x.shape]
    return f"pt.specify_shape({x}, ({''.join(size + ', ' for size in sizes)}))"


@operation
def size_of(g: Graph) -> str:
    x = g.term(rank=range(1, 6))
    return g.choices.of((f"{x}.shape", f"{x}.size", f"{x}.shape[{g.axis(x)}]"))


@operation
def new_like(g: Graph) -> str:
    x = g.term()
    return g.choices.of(
        (
            f"pt.zeros_like({x})",
            f"pt.ones_like({x})",
            f"pt.full_like({x}, 3)",
            f"pt.zeros({x}.shape)",
        )
    )


@operation
def new(g: Graph) -> str:
    m, n = g.whole(g.choices.of((2, 3, 1, 0))), g.whole(g.choices.of((3, 2, 1, 0)))
    dtype = g.choices.of(("float64", *DTYPES))
    return g.choices.of(
        (
            f"pt.ones(({m}, {n}), dtype={dtype!r})",
            f"pt.eye({m}, {n}, {g.choices.of((0, 1, -1))}, dtype={dtype!r})",
            f"pt.tri({m}, {n}, {g.choices.of((0, 1, -1))}, dtype={dtype!r})",
            f"pt.full(({m}, {n}), 2, dtype={dtype!r})",
        )
    )


@operation
def arange(g: Graph) -> str:
    start, step = g.choices.of((0, 1, -2, 5)), g.choices.of((1, 2, -1))
    stop = start + step * g.choices.below(6)
    dtype = g.choices.of(("int64", "float64", "int32", "int8", "float32"))
    if g.choices.below(2):
        return f"pt.arange({g.whole(abs(stop))})"
    return f"pt.arange({g.whole(start)}, {g.whole(stop)}, {g.whole(step)}, dtype={dtype!r})"


@operation
def linspace(g: Graph) -> str:
    return f"pt.linspace({g.choices.of((0, -1))}, 2, {g.whole(g.choices.of((4, 1, 2)))})"


@operation
def join(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    axis = g.choices.below(x.ndim)

    def fits(t: Term) -> bool:
        return t.ndim == x.ndim and _without(t.shape, axis) == _without(x.shape, axis)

    others = [g.term(rank=range(x.ndim, x.ndim + 1), where=fits)]
    if g.choices.below(2):
        others.append(g.choices.of([t for t in g.terms if fits(t)]))
    parts = [x, *others]
    if g.choices.below(2):
        parts.reverse()
    return f"pt.join({axis}, {', '.join(map(str, parts))})"


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@operation
def stack(g: Graph) -> str:
    x = g.term(rank=range(4))
    others = [t for t in g.terms if t.shape == x.shape and t.static == x.static]
    parts = [x, g.choices.of(others)] + ([x] if g.choices.below(2) else [])
    return f"pt.stack([{', '.join(map(str, parts))}], axis={g.choices.below(x.ndim + 1)})"


@operation
def split(g: Graph) -> str:
    x = g.term(rank=range(1, 5))
    axis = g.choices.below(x.ndim)
    rest, sizes = x.shape[axis], []
    for _ in range(g.choices.below(3)):
        sizes.append(g.choices.below(rest + 1))
        rest -= sizes[-1]
    sizes.append(rest)
    given = ", ".join(g.whole(size) for size in sizes)
    return f"pt.split({x}, [{given}], n_splits={len(sizes)}, axis={axis})"


@operation
def repeat_and_tile(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    count = g.whole(g.choices.of((2, 1, 0, 3)))
    axis = g.choices.below(x.ndim)
    each = [g.choices.below(3) for _ in range(x.shape[axis])]
    given = g.given("int64", np.array(each, dtype="int64")) if g.choices.below(2) else each
    return g.choices.of(
        (
            f"pt.repeat({x}, {count}, axis={axis})",
            f"pt.tile({x}, ({count}, 2))",
            f"pt.repeat({x}, {given}, axis={axis})",
        )
    )


@operation
def move_along(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    return g.choices.of(
        (
            f"pt.roll({x}, {g.choices.of((1, -1, 2, 0))}, axis={g.choices.below(x.ndim)})",
            f"pt.flip({x}, axis={g.choices.below(x.ndim)})",
        )
    )


@operation
def pad(g: Graph) -> str | None:
    x = g.term(rank=range(1, 4))
    if x.value.size == 0:
        return None  # NumPy refuses most modes, where PyTensor returns memory as it was.
    mode = g.choices.of(("constant", "edge", "reflect", "wrap", "symmetric", "mean", "maximum"))
    widths = [(g.choices.below(3), g.choices.below(3)) for _ in range(x.ndim)]
    return f"pt.pad({x}, {widths}, mode={mode!r})"


@operation
def diagonals(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    k = g.choices.of((0, 1, -1, 2))
    if x.ndim == 1:
        return f"pt.diag({x}, {k})"
    return g.choices.of(
        (
            f"pt.diagonal({x}, {k})",
            f"pt.tril({x}, {k})",
            f"pt.triu({x}, {k})",
            f"pt.trace({x})",
            f"pt.fill_diagonal({x}, {g.choices.of((2, 0))})",
        )
    )


# Indices.


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
    """Return an update of what an index selects by a term, a number or something broadcast."""
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


# Products.


@operation
def product(g: Graph) -> str:
    x = g.term(NUMBERS if g.choices.one_in(5) else WIDE, rank=MATRIX)
    y = _matrix(g, x)
    if max(x.ndim, y.ndim) <= 2 and g.choices.below(2):
        return f"pt.dot({x}, {y})"
    return f"{x} @ {y}"


def _matrix(g: Graph, x: Term) -> Term:
    """Return a term whose product with another is defined, and static where that is."""

    def fits(t: Term) -> bool:
        inner = t.shape[0] if t.ndim == 1 else t.shape[-2]
        batch = zip(reversed(t.shape[:-2]), reversed(x.shape[:-2]), strict=False)
        return inner == x.shape[-1] and all(m == n for m, n in batch)

    dtypes = (x.dtype,) if g.choices.below(3) else NUMBERS
    fitting = [t for t in g.terms if t.dtype in dtypes and t.ndim in MATRIX and fits(t)]
    if fitting and g.choices.below(4):
        return g.choices.of(fitting)
    columns = [g.choices.of((2, 3, 1, 0))] if g.choices.below(2) or x.ndim > 2 else []
    return g.leaf(x.dtype, [*x.shape[:-2], x.shape[-1], *columns])


@operation
def tensordot(g: Graph) -> str:
    x = g.term(WIDE, rank=range(1, 4))
    y = g.term((x.dtype,), rank=range(1, 4), where=lambda t: t.shape[0] == x.shape[-1])
    return g.choices.of((f"pt.tensordot({x}, {y}, axes=1)", f"pt.outer({x}, {y})"))


@operation
def einsum(g: Graph) -> str:
    x = g.term(WIDE, rank=range(2, 4))
    letters = "abc"[: x.ndim]
    kept = "".join(c for c in letters if g.choices.below(2))
    y = g.term((x.dtype,), rank=range(1, 3), where=lambda t: t.shape[0] == x.shape[-1])
    other = letters[-1] + "z" * (y.ndim - 1)
    out = kept + "z" * (y.ndim - 1)
    return g.choices.of(
        (f"pt.einsum('{letters},{other}->{out}', {x}, {y})", f"pt.einsum('{letters}->{kept}', {x})")
    )


# Sorting and searching.


@operation
def sort(g: Graph) -> str:
    x = g.term(rank=range(1, 4), where=lambda t: t.dtype != "bool")
    axis = "None" if g.choices.one_in(4) else g.axis(x)
    # Of equal numbers, NumPy's quicksort gives the gradients in an order of its own.
    return f"pt.sort({x}, axis={axis}, kind='stable')"


@operation
def argsort(g: Graph) -> str:
    x = g.term(NUMBERS, rank=range(1, 4), exact=True)
    return f"pt.argsort({x}, axis={g.axis(x)}, kind='stable')"


@operation
def unique(g: Graph) -> str:
    x = g.term(NUMBERS, exact=True, rank=range(1, 4))
    options = ("", ", return_counts=True", ", return_inverse=True", ", return_index=True")
    return f"pt.unique({x}{g.choices.of(options)})"


@operation
def searchsorted(g: Graph) -> str:
    x = g.term(("float64", "int64", "float32"), rank=range(1, 2), exact=True)
    v = g.term((x.dtype,), exact=True)
    return f"pt.searchsorted(pt.sort({x}), {v}, side={g.choices.of(('left', 'right'))!r})"


@operation
def nonzero(g: Graph) -> str:
    x = g.term(exact=True, rank=range(1, 4))
    return g.choices.of((f"pt.nonzero({x})", f"pt.flatnonzero({x})", f"pt.nonzero_values({x})"))


@operation
def bincount(g: Graph) -> str | None:
    # Counts of uint64 are incremented by an int8, which is refused.
    x = g.term([d for d in INTEGERS if d != "uint64"], rank=range(1, 2))
    if np.any(np.abs(x.value - 5.0) > 5):
        return None
    return f"pt.bincount({x})"


@operation
def choose(g: Graph) -> str:
    x = g.term()
    index = g.given("int64", (np.arange(x.value.size) % 2).reshape(x.shape))
    return f"pt.choose({index}, pt.stack([{x}, {x} * 2]))"


@operation
def flat_index(g: Graph) -> str:
    x = g.term(INTEGERS, exact=True, where=lambda t: bool(np.all((t.value >= 0) & (t.value < 6))))
    m, n = g.whole(2), g.whole(3)
    if g.choices.below(2):
        return f"pt.unravel_index({x}, ({m}, {n}))"
    return f"pt.ravel_multi_index(pt.unravel_index({x}, ({m}, {n})), ({m}, {n}))"


# What fails in PyTensor, for some or all sizes.


@operation
def invalid(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    size = x.shape[0]
    wrong = g.whole(size + 2)
    other = g.given(x.dtype, np.zeros((size + 2, *x.shape[1:]), dtype=x.dtype))
    matrix = g.term(WIDE, rank=range(2, 3))
    factor = g.given("float64", np.ones((matrix.shape[1] + 2, 2)))
    empty = g.given("float64", np.zeros((2, 0)))
    return g.choices.of(
        (
            f"{x}[{wrong}]",
            f"{x}[{wrong}].set(0)",
            f"{x} * {other}",
            f"{matrix} @ {factor}",
            f"pt.max({empty}, axis=1)",
            f"pt.argmax({empty}, axis=1)",
            f"pt.reshape({x}, ({wrong}, -1), ndim=2)",
            f"pt.specify_shape({x}, ({size + 2}, {'None, ' * (x.ndim - 1)}))",
            f"pt.split({x}, [{wrong}, 1], n_splits=2, axis=0)",
            f"pytensor.raise_op.Assert('no')({x}, pt.lt({x}.shape[0], 0))",
            f"pt.take({x}, pt.constant([0, {size + 1}]), axis=0)",
            f"{x}[pt.arange({wrong})]",
            f"pt.alloc({x}, {wrong}, {', '.join(map(str, x.shape[1:]))})",
            f"pt.unravel_index({wrong}, (1, 2))",
            f"pt.repeat({x}, -1, axis=0)",
            f"pt.join(0, {x}, pt.expand_dims({x}, 0)[0, :, None])",
        )
    )


# Graphs within graphs, checks and gradients.


@operation
def inner_graph(g: Graph) -> str:
    x = g.term(WIDE)
    y = g.partner(x, WIDE)
    body = g.choices.of(
        (
            "[pt.tanh(a) * b]",
            "[a + b, a * 2]",
            "[pt.exp(a).sum() - b]",
            "[pt.maximum(a, b), b.sum()]",
        )
    )
    return f"(lambda a, b: OpFromGraph([a, b], {body}))({x}.type(), {y}.type())({x}, {y})"


@operation
def check(g: Graph) -> str:
    x = g.term(rank=range(1, 4))
    return f"pytensor.raise_op.Assert('size')({x}, pt.eq({x}.shape[0], {x.shape[0]}))"


@operation
def gradient(g: Graph) -> str | None:
    if sum("pt.grad" in line.code for line in g.lines) > 1:
        return None
    cost = g.term(WIDE, where=lambda t: bool(np.all(np.isfinite(t.value))))
    names = [t for t in g.terms if t.is_float and t.dtype != "float16"]
    leaves = [t for t in names if t.variable.owner is None and hasattr(t.variable, "get_value")]
    leaves += [t for t in names if t in g.inputs]
    if not leaves:
        return None
    wrt = g.choices.some(leaves)[:3]
    given = ", ".join(map(str, wrt))
    return f"pt.grad({cost}.sum(), [{given}], disconnected_inputs='ignore')"


@operation
def weighted_gradient(g: Graph) -> str | None:
    x = g.term(WIDE, where=lambda t: t in g.inputs)
    y = g.term(WIDE, rank=range(1, 5))
    if x not in g.inputs:
        return None
    weights = g.leaf("float64", y.shape, [size == 1 for size in y.static])
    return f"pt.grad(({y} * {weights}).sum(), {x}, disconnected_inputs='ignore')"
