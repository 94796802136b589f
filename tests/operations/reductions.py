"""Records of reductions and of cumulative operations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.math import Max, Min

from tests.dispatch.values import DTYPES, FLOATS, some, special_values
from tests.operations.record import WIDE, Arrays, Operation

ONE_OF_EACH_KIND = ("bool", "int8", "uint64", "float16", "float32", "float64")
SWEPT = tuple(d for d in DTYPES if d not in ONE_OF_EACH_KIND)
AXES = {
    0: [None],
    1: [None, 0],
    2: [None, 0, -1, (0, 1)],
    3: [None, 1, (0, 2)],
    4: [None, 2, (1, 3), (0, 1, 2)],
}
"""Axes to reduce by the rank of an array."""

Reduction = Callable[..., Variable]


def reduction(name: str, function: Reduction, **fields: Any) -> Operation:
    """Return the record of a reduction, with empty axes where it has an identity."""
    has_identity = fields.pop("has_identity", True)

    def along_axes(x: Variable) -> list[Variable]:
        return [function(x, axis=axis) for axis in AXES[x.type.ndim]]

    def draw(dtype: str) -> list[Arrays]:
        shapes: list[tuple[int, ...]] = [(3, 4, 2), (5, 1, 3), (1, 300, 1)]
        if dtype in ("float64", "uint64"):
            shapes += [(), (4,), (1,), (2, 3), (7, 5), (2, 3, 1, 2)]
        if has_identity:
            shapes += [(2, 0, 3), (0, 4, 2), *([(0,), (0, 3)] if dtype == "float64" else [])]
        arrays = [some(dtype, shape) for shape in shapes]
        reversed_rows = some(dtype, (4, 6, 4))[::-1, ::2].transpose(2, 1, 0)
        return [(x,) for x in (*arrays, reversed_rows)]

    slope = (np.array([[1.0, 2.5, 0.5], [3.0, 1.5, 2.0]]),)
    fields = {
        "dtypes": ONE_OF_EACH_KIND,
        "swept": SWEPT,
        "slope": slope,
        "nodes_again": 1.3,
    } | fields
    # Float32 is summed in float32, also where PyTensor's accumulator is float64.
    return Operation(name, along_axes, draw, atol=1e-6, **fields)


def extremum(name: str, function: Reduction, **fields: Any) -> Operation:
    """Return the record of a reduction that has no identity, with NaN at every place."""
    record = reduction(name, function, has_identity=False, **fields)

    def draw(dtype: str) -> list[Arrays]:
        found = record.draw(dtype)
        if dtype in FLOATS:
            values = some(dtype, (6, 6, 2))
            values[range(6), range(6), 0] = np.nan
            values[range(6), [3, 4, 5, 0, 1, 2], 0] = np.inf
            found.append((values,))
        # The first of equal elements counts.
        return [*found, (np.zeros((2, 3, 4), dtype),)]

    return Operation(
        name,
        record.function,
        draw,
        record.dtypes,
        record.swept,
        slope=record.slope,
        kernel=record.kernel,
        kernel_draw=draw,
        nodes_again=record.nodes_again,
    )


def cumulative(name: str, function: Reduction, reference: Callable[..., np.ndarray]) -> Operation:
    # Along other axes, extremes of float16 would cancel.
    axes = {1: (0,), 2: (1,), 3: (None, 0, 1, 2, -1, -2)}

    def along_axes(x: Variable) -> list[Variable]:
        return [function(x, axis=axis) for axis in axes[x.type.ndim]]

    def by_numpy(x: np.ndarray) -> list[np.ndarray]:
        return [reference(x, axis=axis) for axis in axes[x.ndim]]

    def draw(dtype: str) -> list[Arrays]:
        rng = np.random.default_rng(1)
        values = rng.permutation(np.resize(special_values(dtype), 24)).reshape(4, 6)
        arrays = [values, values[::-2, ::-1], values[:0], values[:, :0]]
        if dtype == "float64":
            arrays += [some(dtype, (2, 3, 4)), some(dtype, (5,)), values[0, :0]]
        return [(x,) for x in arrays]

    slope = (np.array([[0.5, 1.25, 0.75], [1.5, 1.0, 0.6]]),)
    return Operation(name, along_axes, draw, reference=by_numpy, signed_zeros=False, slope=slope)


OPERATIONS = [
    reduction("sum", pt.sum, kernel=WIDE, ulp=64, nodes_again=1.55),
    reduction(
        "prod",
        pt.prod,
        import_fails="the loop of integer products along an axis changes the shape of its state",
    ),
    reduction("all", pt.all, slope=None),
    reduction("any", pt.any, slope=None),
    reduction("mean", pt.mean, kernel=WIDE, ulp=64),
    reduction("var", pt.var),
    reduction("std", pt.std),
    extremum("max", pt.max, kernel=WIDE),
    extremum("min", pt.min, kernel=WIDE),
    extremum("argmax", pt.argmax, slope=None),
    extremum("argmin", pt.argmin, slope=None),
    extremum(
        "max_initial", lambda x, axis: Max(axis=axis, initial=True)(x), slope=None, nodes_again=1.5
    ),
    extremum(
        "min_initial", lambda x, axis: Min(axis=axis, initial=True)(x), slope=None, nodes_again=1.5
    ),
    cumulative("cumsum", pt.cumsum, np.cumsum),
    cumulative("cumprod", pt.cumprod, np.cumprod),
]
