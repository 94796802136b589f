"""The record of an operation, from which the tests of all layers are made.

A record stands in one of the files of families beside this one, in its list ``OPERATIONS``.
``tests/operations/test_operations.py`` takes it through the lowering, the gradient, the import, the
kernels and the web page; the fuzzer and the page of accuracy read the same list.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import ScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.functions.operation import Operation as DefinedOperation
from tests.dispatch.values import DTYPES, special_values
from tests.operations.regions import Accuracy

WIDE = ("float64", "float32")
"""Dtypes of floats that the native library has."""

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Group:
    """A graph of an operation for dtypes and ranks, with arrays of several sizes."""

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    feeds: Sequence[Arrays]

    def __str__(self) -> str:
        types = ", ".join(f"{v.type.dtype} of rank {v.type.ndim}" for v in self.inputs)
        return f"of {types}"


@dataclass(frozen=True)
class Operation:
    """An operation, and what is to hold of it in each layer.

    Attributes
    ----------
    name
        Name of the tests.
    function
        The operation as users write it; it returns a variable or several.
    draw
        Function of a dtype that returns arguments, a tuple of arrays for each call. Tuples of equal
        dtypes and ranks are calls of one graph with open sizes.
    dtypes
        Dtypes that are drawn; those of ``swept`` in the sweep only.
    reference
        Function of NumPy or SciPy; by default PyTensor's Python implementation.
    rtol, atol
        Tolerances, where they are not those of ``compare_onnx_and_py``.
    eps
        Both tolerances in units of the rounding error of each dtype, in place of the others.
    signed_zeros
        Whether zeros have the signs of the reference.
    slope
        Points, an array for each argument, at which the gradient is the one of PyTensor and of
        finite differences; None without a gradient.
    kernel, kernel_draw
        Dtypes in which the native library has a kernel for it, and how they are drawn, where it is
        not ``draw``.
    ulp
        Difference between kernel and runtime, in units in the last place.
    nodes_again
        Nodes of the export of the import, relative to those of the first export, at most.
    ulp_again
        Difference between both exports, in units in the last place.
    imports_ops
        Whether the import has the Op of each function of the package.
    imported
        Outputs of the largest model that is imported.
    import_fails
        Why the import cannot be exported and run again, if so.
    fuzz
        Kind of operation of the fuzzer that draws it: see ``tests/fuzz/operations``.
    is_slow
        Whether its graphs are large, so that all but the tests of its accuracy are slow.
    accuracy
        Exact values, and regions of the domain with bounds of errors.
    """

    name: str
    function: Callable[..., Variable | Sequence[Variable]]
    draw: Callable[[str], list[Arrays]]
    dtypes: tuple[str, ...] = DTYPES
    swept: tuple[str, ...] = ()
    reference: Callable[..., np.ndarray] | None = None
    rtol: float | None = None
    atol: float = 0.0
    eps: float | None = None
    signed_zeros: bool = True
    slope: Arrays | None = None
    kernel: tuple[str, ...] = ()
    kernel_draw: Callable[[str], list[Arrays]] | None = None
    ulp: int = 4
    nodes_again: float = 1.05
    ulp_again: int = 0
    imports_ops: bool = True
    imported: int = 24
    import_fails: str = ""
    fuzz: str = ""
    is_slow: bool = False
    accuracy: Accuracy | None = None

    def __str__(self) -> str:
        return self.name

    def apply(self, *arguments: Variable) -> list[Variable]:
        """Return the results as a list."""
        found = self.function(*arguments)
        return [found] if isinstance(found, Variable) else list(found)

    def groups(self, dtypes: Sequence[str]) -> list[Group]:
        """Return a graph for each combination of dtypes and ranks that is drawn."""
        return self._groups(self.draw, dtypes)

    def kernel_groups(self) -> list[Group]:
        """Return graphs in the dtypes of kernels."""
        return self._groups(self.kernel_draw or self.draw, self.kernel)

    def _groups(self, draw: Callable[[str], list[Arrays]], dtypes: Sequence[str]) -> list[Group]:
        feeds: dict[tuple, list[Arrays]] = {}
        for dtype in dtypes:
            for arrays in draw(dtype):
                # PyTensor broadcasts only sizes known to be one.
                types = tuple(
                    (
                        a.dtype.name,
                        tuple(1 if n == 1 and len(arrays) > 1 else None for n in a.shape),
                    )
                    for a in arrays
                )
                feeds.setdefault(types, []).append(arrays)
        groups = []
        for i, (types, calls) in enumerate(feeds.items()):
            inputs = [
                pt.tensor(f"{self.name}_{i}_{j}_{dtype}", dtype=dtype, shape=shape)
                for j, (dtype, shape) in enumerate(types)
            ]
            # Every graph is called as often as the one with most calls.
            repeated = [calls[k % len(calls)] for k in range(max(map(len, feeds.values())))]
            groups.append(Group(inputs, self.apply(*inputs), repeated))
        return groups


def name_of(scalar: ScalarOp) -> str:
    """Return the name of a scalar Op, as that of PyTensor's function."""
    return scalar.name or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(scalar).__name__).lower()


def elementwise_arrays(dtype: str) -> list[Arrays]:
    """Return special values as arrays of several sizes, ranks and strides."""
    values = special_values(dtype)
    arrays = [values, np.resize(values, 3 * len(values))[::-2], values[:0]]
    # One dtype of each kind tells how other ranks are computed.
    if dtype in ("bool", "int64", "float32"):
        blocks = np.resize(values, (2, 3, len(values))).transpose(2, 0, 1)
        arrays += [np.array(values[1]), np.array(values[0]), blocks, blocks[:, :, :0], blocks[:1]]
    return [(x,) for x in arrays]


def unary(
    scalar: ScalarOp | DefinedOperation,
    dtypes: tuple[str, ...] = DTYPES,
    *,
    at: float | None = None,
    **fields: Any,
) -> Operation:
    """Return the record of a function of one number; around ``at`` it has a gradient."""
    slope = None if at is None else (at * np.array([1.0, 0.5, 1.25]),)
    is_made = isinstance(scalar, DefinedOperation)
    name, function = (scalar.__name__, scalar) if is_made else (name_of(scalar), Elemwise(scalar))
    return Operation(name, function, elementwise_arrays, dtypes, slope=slope, **fields)


def special(
    accuracy: Accuracy,
    at: Sequence[float] | None = None,
    dtypes: tuple[str, ...] = ("float16", "float32", "float64"),
    **fields: Any,
) -> Operation:
    """Return the record of a special function, whose reference are its exact values.

    Its arguments are drawn from its first region; around ``at`` it has a gradient.
    """
    name = accuracy.op_type.__name__.lower()

    def draw(dtype: str) -> list[Arrays]:
        points = accuracy.regions[0].points(5, dtype)
        calls = [points, [x[::-2] for x in points], [x[:0] for x in points]]
        if dtype == "float32":
            blocks = [np.resize(x, (3, 2, 1)).transpose(1, 2, 0) for x in points]
            calls += [[np.array(x[2]) for x in points], blocks]
        return [tuple(call) for call in calls]

    def exact(*arrays: np.ndarray) -> np.ndarray:
        with mp.workprec(140):
            rows = zip(*(x.ravel().tolist() for x in arrays), strict=True)
            values = [float(accuracy.exact(*map(mp.mpf, row))) for row in rows]
        return np.array(values).reshape(arrays[0].shape).astype(arrays[0].dtype)

    slope = None if at is None else tuple(x * np.array([1.0, 0.5, 1.25]) for x in at)
    function = Elemwise(accuracy.op_type(upgrade_to_float, name=name))
    fields = {"reference": exact, "accuracy": accuracy, "slope": slope} | fields
    return Operation(name, function, draw, dtypes, **fields)
