"""Operations on shapes, and new arrays."""

import numpy as np

from tests.dispatch.values import DTYPES
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import operation
from tests.fuzz.terms import Term


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
