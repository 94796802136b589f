"""Products of matrices."""

from tests.dispatch.values import NUMBERS
from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import MATRIX, WIDE, floats, operation
from tests.fuzz.terms import Term


@operation
def product(g: Graph) -> str:
    x = g.term(NUMBERS if g.choices.one_in(5) else floats(g), rank=MATRIX)
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
