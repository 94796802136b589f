"""Random numbers, drawn in loops and outside."""

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import operation

DRAWS = (
    "{rng}.normal(size={size})",
    "{rng}.normal({x}, 2.0, size=None)",
    "{rng}.uniform(size={size})",
    "{rng}.uniform(-1.0, 3.0, size={size}, dtype='float32')",
    "{rng}.normal(0.5, 0.1, size={size}, dtype='float32')",
    "{rng}.bernoulli(0.3, size={size})",
    "{rng}.bernoulli(pt.sigmoid({x}), size=None)",
)
LOOPS = (
    # Every step draws from where the step before ended.
    "pytensor.scan(lambda r: {draw}, outputs_info=[{rng}, None], n_steps={n}, "
    "return_updates=False)[1]",
    "pytensor.scan(lambda y, r: (lambda s, z: (0.5 * y + z, s))(*{draw}), "
    "outputs_info=[pt.zeros({size}), {rng}], n_steps={n}, return_updates=False)[0]",
    # Every step draws the same.
    "pytensor.scan(lambda i: {outer_draw}[1] + i, [pt.arange({n}).astype('float32')], "
    "return_updates=False)",
)


def _generator(g: Graph) -> str:
    """Return the name of a shared generator."""
    return next(iter(g.generators), "") or g.add_generator()


@operation
def draw(g: Graph) -> str:
    rng, x = _generator(g), g.term(("float64", "float32"), rank=range(1, 3))
    size = g.choices.of(("(3,)", "(2, 3)", f"{x}.shape", "()", "(0, 2)", f"({g.whole(4)},)"))
    return g.choices.of(DRAWS).format(rng=rng, x=x, size=size) + "[1]"


@operation
def draw_in_a_loop(g: Graph) -> str:
    rng, n = _generator(g), g.whole(g.choices.of((3, 1, 2)))
    size = g.choices.of(("(3,)", "(2, 1)"))
    name = g.choices.of(("normal", "uniform"))
    code = f"{name}(size={size})"
    return g.choices.of(LOOPS).format(
        rng=rng, n=n, size=size, draw=f"r.{code}", outer_draw=f"{rng}.{code}"
    )
