"""Operations that fail in PyTensor, for some or all sizes."""

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.registry import WIDE, operation


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
