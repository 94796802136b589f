"""Loops and branches for random graphs; their steps do not amplify what rounding does."""

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, operation
from tests.fuzz.terms import Term

UNTIL = "__import__('sys').modules['pytensor.scan.utils'].until"
_STEPS = (
    "0.5 * y + e",
    "y + e",
    "pt.tanh(y + e)",
    "y * pt.tanh(e)",
    "pt.maximum(y, e)",
    "y - 0.25 * e",
    "pt.switch(pt.gt(e, 0), 0.5 * y, e)",
    "pt.set_subtensor(y[:1], e[:1])",
    "0.25 * pt.sort(y + e, axis=-1)",
    "e",
    "0.1 * e.sum() + 0.5 * y",
)
_MAPS = (
    "e * 2",
    "e.sum() * 0.5",
    "pt.tanh(e) - e.sum()",
    "pt.stack([e, -e])",
    "pt.sort(e, axis=-1)",
    "pt.concatenate([e, e[:1]])",
    "pt.exp(-abs(e)).sum(axis=0)",
    "e[::-1]",
)


def _sequence(g: Graph, shortest: int) -> Term:
    return g.term(WIDE, rank=range(1, 4), where=lambda t: t.shape[0] >= shortest)


def _fits(code: str, rank: int) -> bool:
    """Return whether a step makes sense for elements of a rank."""
    return rank > 0 or not any(part in code for part in ("[", "axis"))


def _zeros(x: Term) -> str:
    sizes = [f"{x}.shape[{axis}]" for axis in range(1, x.ndim)]
    return f"pt.zeros(({''.join(f'{size}, ' for size in sizes)}), dtype={x.dtype!r})"


def _cast(code: str, x: Term) -> str:
    return f"pt.cast({code}, {x.dtype!r})"


def _taken(g: Graph, shortest: int) -> str:
    """Return an index that keeps all steps, or the last ones."""
    return g.choices.of(("", "", "[-1]", "[-2:]") if shortest else ("",))


@operation
def recurrence(g: Graph) -> str | None:
    shortest = g.choices.below(2)
    x, step = _sequence(g, shortest), g.choices.of(_STEPS)
    if x.shape[0] < shortest or not _fits(step, x.ndim - 1):
        return None
    options = ", go_backwards=True" if g.choices.one_in(4) else ""
    return (
        f"pytensor.scan(lambda e, y: {_cast(step, x)}, [{x}], [{_zeros(x)}]{options}, "
        f"return_updates=False){_taken(g, shortest)}"
    )


@operation
def map_over_rows(g: Graph) -> str | None:
    x, function = _sequence(g, 1), g.choices.of(_MAPS)
    # Of no rows, PyTensor does not know the size.
    if not x.shape[0] or not _fits(function, x.ndim - 1):
        return None
    return f"pytensor.scan(lambda e: {function}, [{x}], return_updates=False){_taken(g, 1)}"


@operation
def taps_of_a_sequence(g: Graph) -> str | None:
    x, taps = _sequence(g, 3), g.choices.of(([-1, 0], [0, 2], [-1, 1]))
    if x.shape[0] < 3:
        return None
    return (
        f"pytensor.scan(lambda a, b, y: {_cast('a - b + 0.5 * y', x)}, "
        f"[dict(input={x}, taps={taps})], [{_zeros(x)}], return_updates=False)"
    )


@operation
def taps_of_the_past(g: Graph) -> str | None:
    x, n_steps = _sequence(g, 2), g.whole(g.choices.below(5))
    if x.shape[0] < 2:
        return None
    taps = g.choices.of(([-2, -1], [-2]))
    step = "0.5 * a - 0.25 * b" if len(taps) == 2 else "0.5 * a"
    names = "a, b" if len(taps) == 2 else "a"
    return (
        f"pytensor.scan(lambda {names}: {_cast(step, x)}, n_steps={n_steps}, "
        f"outputs_info=[dict(initial={x}[:2], taps={taps})], return_updates=False)"
    )


@operation
def several_states(g: Graph) -> str | None:
    x = _sequence(g, 1)
    if not x.shape[0]:
        return None
    step = f"({_cast('0.5 * y + e', x)}, {_cast('pt.tanh(z - y)', x)}, y * 0.5 + z)"
    return (
        f"pytensor.scan(lambda e, y, z: {step}, [{x}], [{_zeros(x)}, {_zeros(x)}, None], "
        "return_updates=False)"
    )


@operation
def loop_that_stops(g: Graph) -> str:
    x, last = g.term(WIDE, rank=range(3)), g.whole(g.choices.below(4))
    step = f"({_cast('0.5 * y + i', x)}, {UNTIL}(pt.ge(i, {last})))"
    taken = g.choices.of(("", "[-1]", "[0]", "[1:]", "[-2:]"))
    return f"pytensor.scan(lambda i, y: {step}, [pt.arange(3)], [{x}], return_updates=False){taken}"


@operation
def loop_in_a_loop(g: Graph) -> str | None:
    x = g.term(WIDE, rank=range(2, 4), where=lambda t: 0 not in t.shape)
    if 0 in x.shape:
        return None
    start = "pt.zeros_like(row[0])"
    inner = f"pytensor.scan(lambda e, y: 0.5 * y + e, [row], [{start}], return_updates=False)"
    return f"pytensor.scan(lambda row: {inner}[-1], [{x}], return_updates=False)"


@operation
def branch(g: Graph) -> str | None:
    x = g.term()
    y = g.term((x.dtype,), where=lambda t: t.ndim == x.ndim)
    if y.ndim != x.ndim or y.dtype != x.dtype:
        return None
    condition = g.choices.of((f"pt.gt({x}.size, 3)", f"pt.eq({g.whole(1)}, 1)", f"{y}.ndim"))
    other = g.choices.of((str(y), f"pt.second({y}, {y})"))
    return f"pytensor.ifelse({condition}, {x}, {other})"
