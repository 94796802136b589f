"""Records of sorting, of searching and of unique elements."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_onnx.ops.sorting import OrderStatistics
from tests.dispatch.values import DTYPES, FLOATS, special_values
from tests.operations.record import Arrays, Operation

nan, inf = np.nan, np.inf
AXES = {0: [None], 1: [0], 2: [0, -1], 3: [0, 1, -3, 2, None]}
SOME_NAN = ([nan, inf, 1, nan, -inf, inf], [nan, nan], [inf, nan], [nan, inf], [0.0, nan, -0.0])
SIDES = ("left", "right")
PLACES = [(100, [0, 1, 2, 97, 98, 99]), (100, [4, 5, 20, 49, 50, 80, 95]), (30, [29]), (1, [0])]


def shuffled(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return special values in any order, each several times."""
    rng = np.random.default_rng(1)
    return rng.permutation(np.resize(special_values(dtype), int(np.prod(shape)))).reshape(shape)


def arrays(dtype: str) -> list[Arrays]:
    """Return arrays with equal elements, of several NaN, without elements, and of all ranks."""
    found = [shuffled(dtype, (2, 40)), np.ones((1, 1), dtype)]
    if dtype in FLOATS:
        found += [np.array(x, dtype) for x in (*SOME_NAN, [1, nan, 2, nan, 1, inf], [nan], [])]
    if dtype in ("int64", "float64"):
        found += [np.ones(shape, dtype) for shape in ((0, 3), (3, 0))]
        found += [np.array(2, dtype), shuffled(dtype, (4, 3, 5))]
    return [(x,) for x in found]


def sort(x: Variable) -> list[Variable]:
    both = [(pt.sort(x, a), pt.argsort(x, a, stable=True)) for a in AXES[x.type.ndim]]
    return [y for pair in both for y in pair]


def sort_by_numpy(x: np.ndarray) -> list[np.ndarray]:
    functions = np.sort, np.argsort
    return [f(x, axis, kind="stable") for axis in AXES[x.ndim] for f in functions]


def medians(dtype: str) -> list[Arrays]:
    # PyTensor's median has NaN behind all numbers, unlike NumPy's.
    x = np.random.default_rng(4).normal(size=(3, 4)).astype(dtype)
    return [(x,), (x.T,), (x[:1],), (np.where(x > 1, nan, x).astype(dtype),)]


def of_places(x: np.ndarray) -> list[np.ndarray]:
    ranked = [np.sort(x[:size], axis=0) for size, _ in PLACES]
    return [
        np.where(np.isnan(y).any(axis=0), np.array(nan, x.dtype), y[places])
        for y, (_, places) in zip(ranked, PLACES, strict=True)
    ]


def of_a_hundred(dtype: str) -> list[Arrays]:
    x = np.round(np.random.default_rng(1).normal(size=(100, 7)), 1).astype(dtype)
    # Infinities of both signs in one column have an order, a column with NaN has none.
    x[3, 0], x[7, 1], x[8, 1] = nan, inf, -inf
    x[[9, 10], 2] = np.finfo(dtype).max
    return [(x,), (x[:, :0],)]


def unique(x: Variable, axis: int | None = None) -> list[Variable]:
    return pt.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)


def unique_by_numpy(x: np.ndarray, axis: int | None = None) -> list[np.ndarray]:
    elements, places, inverse, counts = np.unique(x, True, True, True, axis=axis)
    return [elements, places, inverse.reshape(-1), counts]


def choices(x: Variable) -> list[Variable]:
    """Return the outputs of every choice, alone or with others."""
    return [
        pt.unique(x),
        *pt.unique(x, return_index=True),
        *pt.unique(x, return_inverse=True),
        *pt.unique(x, return_counts=True),
        *pt.unique(x, return_index=True, return_counts=True),
    ]


def slices(dtype: str) -> list[Arrays]:
    found = [np.random.default_rng(2).integers(0, 2, (4, 2, 3)).astype(dtype)]
    if dtype == "float64":
        # Slices with NaN are all different.
        rows = [[1, nan], [nan, 3], [1, nan], [nan, 2], [0, 0], [nan, 3], [0, 0]]
        found += [np.array(rows), np.ones((0, 3)), np.ones((3, 0))]
    return [(x,) for x in found]


def search(x: Variable, v: Variable) -> list[Variable]:
    return [pt.searchsorted(x, v, side=side) for side in SIDES]


def search_by_numpy(x: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    return [np.searchsorted(x, v, side=side) for side in SIDES]


def sorted_and_keys(dtype: str) -> list[Arrays]:
    """Return sorted values and keys; one dtype of each kind also meets another one."""
    values = np.sort(special_values(dtype))
    others = {"int64": "float32", "uint64": "int64", "int8": "uint8", "bool": "float64"}
    found = [(values, np.concatenate([values, values[::2]]))]
    if dtype in others:
        found.append((values, special_values(others[dtype])))
    if dtype == "float64":
        rng = np.random.default_rng(3)
        for size in (0, 1, 2, 7, 8):
            few = np.sort(rng.integers(0, 5, size)).astype(float)
            # A static size of one makes another graph.
            shapes = [(), (2, 3), (0,), (2, 0, 2)] if size in (2, 7) else [(5,)]
            found += [(few, rng.normal(2, 3, size=shape)) for shape in shapes]
    return found


def unsorted_and_keys(dtype: str) -> list[Arrays]:
    values = np.random.default_rng(4).permutation(9.0 + np.arange(9)).astype(dtype)
    return [(values, np.array([8.5, 9, 12, 30, nan], dtype), np.argsort(values))]


OPERATIONS = [
    Operation(
        "sort",
        sort,
        arrays,
        reference=sort_by_numpy,
        slope=(np.random.default_rng(3).permutation(12.0 + np.arange(12)).reshape(4, 3),),
        nodes_again=1.1,
    ),
    Operation(
        "median",
        lambda x: [pt.median(x, axis=axis) for axis in (0, -1, None)],
        medians,
        ("float32", "float64"),
    ),
    Operation(
        "order_statistics",
        lambda x: [OrderStatistics(size, places)(x[:size]) for size, places in PLACES],
        of_a_hundred,
        ("float32", "float64"),
        reference=of_places,
        signed_zeros=False,
    ),
    Operation(
        "unique", unique, arrays, reference=unique_by_numpy, signed_zeros=False, nodes_again=1.1
    ),
    Operation(
        "unique_outputs",
        choices,
        lambda dtype: [(np.array([2.0, 1, 2, nan, 3, nan]),)],
        ("float64",),
        nodes_again=1.4,
    ),
    Operation(
        "unique_slices",
        lambda x: [y for axis in AXES[x.type.ndim][:3] for y in unique(x, axis)],
        slices,
        ("bool", "int16", "uint64", "float32", "float64"),
        reference=lambda x: [y for axis in AXES[x.ndim][:3] for y in unique_by_numpy(x, axis)],
        nodes_again=1.5,
    ),
    Operation(
        "searchsorted",
        search,
        sorted_and_keys,
        DTYPES,
        reference=search_by_numpy,
        # Each function of the file takes a quarter of a second.
        imported=6,
        slope=(np.arange(4.0), np.array([1.5, 7.0, -1.0])),
    ),
    Operation(
        "searchsorted_by_order",
        lambda x, v, order: pt.searchsorted(x, v, side="right", sorter=order),
        unsorted_and_keys,
        ("float64",),
        reference=lambda x, v, order: np.searchsorted(x, v, side="right", sorter=order),
    ),
]
