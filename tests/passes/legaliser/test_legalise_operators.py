"""Every operator that lowerings emit runs on the target in every dtype, with NumPy's result."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from scipy import special

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.targets.kernel_tables import allowed_dtypes
from tests.passes.conftest import bare

OPSET = 21
DTYPES = (
    *("float16", "float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
RTOL = {"float64": 2e-15, "float32": 1e-6, "float16": 2e-3}
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5]
SHAPE = (3, 16)


def values(dtype: str, seed: int = 0) -> np.ndarray:
    """Draw more elements than a SIMD register holds, with extremes of the dtype among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, SHAPE).astype(bool)
    if dtype.startswith("float"):
        x = rng.normal(scale=3, size=SHAPE).astype(dtype)
        x[1, : len(SPECIAL)] = rng.permutation(SPECIAL)
        return x
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, SHAPE, dtype=dtype, endpoint=True)
    low, high = max(info.min, -(2**33)), min(info.max, 2**33)
    x[1] = rng.integers(low, high, SHAPE[1], dtype=dtype, endpoint=True)
    x[0, :2] = info.min, info.max
    return x


def finite(dtype: str, seed: int = 0) -> np.ndarray:
    x = values(dtype, seed)
    return np.where(np.isfinite(x), x, 1).astype(dtype)


def small(dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 5, SHAPE).astype(dtype)


def divisors(dtype: str) -> np.ndarray:
    """Integers that no runtime stops for."""
    y = values(dtype, seed=1)
    if dtype.startswith("float"):
        return y
    return np.where((y == 0) | (y + np.ones((), dtype) == 0), 3, y).astype(dtype)


def truncated_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    exact_x, exact_y = x.astype(object), y.astype(object)
    return (abs(exact_x) // abs(exact_y) * np.sign(exact_x) * np.sign(exact_y)).astype(x.dtype)


def scattered(ufunc: np.ufunc | None) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
        result, index = x.copy(), index.reshape(-1)
        if ufunc is None:
            result[index] = updates
        else:
            ufunc.at(result, index, updates)
        return result

    return reference


def as_dtype(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """SciPy and NumPy's sums compute in a wider dtype: bring the result back."""
    return lambda x, *rest: np.asarray(function(x, *rest)).astype(x.dtype)


@dataclass
class Case:
    """An operator, its operands by dtype, and what NumPy makes of them."""

    op_type: str
    reference: Callable[..., Any]
    operands: Callable[[str], list[np.ndarray]] = lambda dtype: [values(dtype)]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    dtypes: tuple[str, ...] = DTYPES

    def __str__(self) -> str:
        return "-".join([self.op_type, *(f"{k}={v}" for k, v in self.attributes.items())])


def two(dtype: str) -> list[np.ndarray]:
    return [values(dtype), values(dtype, seed=1)]


def division(dtype: str) -> list[np.ndarray]:
    return [values(dtype), divisors(dtype)]


UNARY = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Sign": np.sign,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Round": np.rint,
    "Reciprocal": as_dtype(lambda x: 1 / x.astype("f8")),
    "Erf": as_dtype(special.erf),
    "Sigmoid": as_dtype(special.expit),
    "Softplus": as_dtype(lambda x: np.logaddexp(0, x)),
    "Relu": lambda x: np.maximum(x, 0),
    "IsNaN": np.isnan,
    "IsInf": np.isinf,
    "Not": np.logical_not,
    "BitwiseNot": np.invert,
    "Identity": lambda x: x,
    "Transpose": np.transpose,
    "Shape": lambda x: np.array(x.shape),
    "Size": lambda x: np.array(x.size),
    "NonZero": lambda x: np.array(np.nonzero(x)),
}
BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}
FLOATS = DTYPES[:3]
INTEGERS = DTYPES[4:]
SCATTERED: dict[str, np.ufunc | None] = {
    "none": None,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
CASES = [
    *(Case(op_type, reference) for op_type, reference in UNARY.items()),
    *(Case(op_type, reference, two) for op_type, reference in BINARY.items()),
    Case("Div", truncated_quotient, division),
    Case("Mod", np.mod, division, dtypes=INTEGERS),
    Case("Mod", np.fmod, division, {"fmod": 1}),
    Case("Pow", np.power, lambda d: [np.abs(finite(d)), small(d)], dtypes=FLOATS),
    Case(
        "Shrink",
        lambda x: np.where(x > 1.5, x - 0.25, np.where(x < -1.5, x + 0.25, 0)),
        lambda d: [finite(d)],
        {"lambd": 1.5, "bias": 0.25},
        dtypes=FLOATS,
    ),
    Case("Softmax", lambda x: special.softmax(x, -1), lambda d: [finite(d)]),
    Case("LogSoftmax", lambda x: special.log_softmax(x, -1), lambda d: [finite(d)]),
    Case("Where", np.where, lambda d: [values("bool", 2), *two(d)]),
    Case("Clip", np.clip, lambda d: [values(d), np.array(1, d), np.array(3, d)]),
    Case("MatMul", lambda x, y: x @ y, lambda d: [small(d), small(d, 1).T.copy()], dtypes=FLOATS),
    Case(
        "MatMul", lambda x, y: x @ y, lambda d: [values(d), values(d, 1).T.copy()], dtypes=INTEGERS
    ),
    Case("CumSum", lambda x, axis: np.cumsum(x, axis, x.dtype), lambda d: [small(d), np.array(1)]),
    Case(
        "CumSum",
        lambda x, axis: np.cumsum(x, axis, x.dtype),
        lambda d: [values(d), np.array(0)],
        dtypes=INTEGERS,
    ),
    Case(
        "Range",
        lambda start, stop, step: np.arange(start, stop, step, start.dtype),
        lambda d: [np.array(n, d) for n in (1, 8, 2)],
    ),
    Case("Concat", lambda x, y: np.concatenate([x, y], 1), two, {"axis": 1}),
    Case("Expand", np.broadcast_to, lambda d: [values(d), np.array([2, *SHAPE])]),
    Case("Reshape", np.reshape, lambda d: [values(d), np.array([-1, 8])]),
    Case("Squeeze", lambda x, _: x[0], lambda d: [values(d)[None], np.array([0])]),
    Case("Unsqueeze", lambda x, _: x[None], lambda d: [values(d), np.array([0])]),
    Case("Gather", lambda x, i: x[:, i], lambda d: [values(d), np.array([2, -1])], {"axis": 1}),
    Case(
        "GatherElements",
        lambda x, i: np.take_along_axis(x, i, 1),
        lambda d: [values(d), np.array([[0], [3], [-1]])],
        {"axis": 1},
    ),
    Case("GatherND", lambda x, i: x[tuple(i.T)], lambda d: [values(d), np.array([[0, 3], [2, 1]])]),
    Case(
        "Slice",
        lambda x, *_: x[1:, ::-2],
        lambda d: [values(d), *map(np.array, ([1, -1], [2**62, -(2**62)], [0, 1], [1, -2]))],
    ),
    Case(
        "Split",
        lambda x, _: [x[:, :5], x[:, 5:]],
        lambda d: [values(d), np.array([5, 11])],
        {"axis": 1},
        outputs=2,
    ),
    Case("Tile", np.tile, lambda d: [values(d), np.array([2, 1])]),
    Case(
        "Pad",
        lambda x, _: np.pad(x, [(1, 0), (0, 2)]),
        lambda d: [values(d), np.array([1, 0, 0, 2])],
    ),
    Case("Trilu", np.triu),
    Case(
        "Compress",
        lambda x, c: x[:, :3][:, c],
        lambda d: [values(d), np.array([True, False, True])],
        {"axis": 1},
    ),
    Case(
        "TopK",
        lambda x, _: [np.sort(x)[:, ::-1][:, :4]],
        lambda d: [finite(d), np.array([4])],
        outputs=2,
    ),
    *(
        Case("BitShift", shift, lambda d: [values(d), small(d)], {"direction": direction})
        for direction, shift in {"LEFT": np.left_shift, "RIGHT": np.right_shift}.items()
    ),
    *(
        Case(
            op_type,
            scattered(ufunc),
            lambda d, op_type=op_type, ufunc=ufunc: [
                values(d)[0],
                np.array([3, 0, 3 if ufunc is None else 5]).reshape(
                    (3, 1) if "ND" in op_type else 3
                ),
                values(d, 1)[1, :3],
            ],
            {"reduction": reduction},
            dtypes=DTYPES if ufunc is None else FLOATS + INTEGERS,
        )
        for op_type in ("ScatterND", "ScatterElements")
        for reduction, ufunc in SCATTERED.items()
    ),
    *(
        Case(
            op_type,
            lambda x, f=f, k=keepdims: f(x, axis=1, keepdims=bool(k)),
            attributes={"axis": 1, "keepdims": keepdims},
        )
        for op_type, f in {"ArgMax": np.argmax, "ArgMin": np.argmin}.items()
        for keepdims in (0, 1)
    ),
]
REDUCTIONS = {
    "ReduceSum": lambda x, **k: np.sum(x, dtype=x.dtype, **k),
    "ReduceProd": lambda x, **k: np.prod(x, dtype=x.dtype, **k),
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, dtype=x.dtype, **k),
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), dtype=x.dtype, **k),
    "ReduceMax": np.max,
    "ReduceMin": np.min,
}


def assert_equal(found: np.ndarray, expected: np.ndarray, case: str) -> None:
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype, case
    assert found.shape == expected.shape, case
    if found.dtype.kind == "f":
        rtol, atol = RTOL[str(found.dtype)], np.finfo(found.dtype).tiny
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=case)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=case)


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def dtypes_of(op_type: str, dtypes: Sequence[str]) -> list[str]:
    return [
        d for d in dtypes if ir.DataType.from_numpy(np.dtype(d)) in allowed_dtypes(op_type, OPSET)
    ]


@pytest.mark.parametrize("target", ["onnxruntime", "web"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator_runs_with_the_result_of_numpy_in_every_dtype(case, target):
    operands = {dtype: case.operands(dtype) for dtype in dtypes_of(case.op_type, case.dtypes)}

    def emit(build: Builder, *values: ir.Value) -> list[ir.Value]:
        rest, results = iter(values), []
        for arrays in operands.values():
            taken = itertools.islice(rest, len(arrays))
            results += listed(
                build.op(case.op_type, *taken, outputs=case.outputs, **case.attributes)
            )
        return results

    model = bare(emit, *itertools.chain(*operands.values()), opset=OPSET)
    model.legalise(target)
    found = iter(model.run())
    for dtype, arrays in operands.items():
        with np.errstate(all="ignore"):
            expected = case.reference(*arrays)
        outputs = list(itertools.islice(found, case.outputs))
        for a, b in zip(outputs, listed(expected), strict=False):
            assert_equal(a, b, f"{case} of {dtype}")


AXES = [(0,), (1,), (-1,), (0, 2), (1, 2), (0, 1, 2)]


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reduction_runs_with_the_result_of_numpy_along_all_axes(op_type):
    cases = list(itertools.product(dtypes_of(op_type, DTYPES), AXES, (0, 1)))
    arrays = {}
    for dtype in dtypes_of(op_type, DTYPES):
        exact = op_type in ("ReduceMax", "ReduceMin") or not dtype.startswith("float")
        arrays[dtype] = (values if exact else small)(dtype).reshape(4, 3, 4)

    def emit(build: Builder, *inputs: ir.Value) -> list[ir.Value]:
        of_dtype = dict(zip(arrays, inputs, strict=True))
        return [
            build.op(op_type, of_dtype[dtype], build.ints(axes), keepdims=keepdims)
            for dtype, axes, keepdims in cases
        ]

    model = bare(emit, *arrays.values(), opset=OPSET)
    model.legalise()
    for found, (dtype, axes, keepdims) in zip(model.run(), cases, strict=True):
        with np.errstate(all="ignore"):
            expected = REDUCTIONS[op_type](arrays[dtype], axis=axes, keepdims=bool(keepdims))
        assert_equal(found, expected, f"{op_type} of {dtype} along {axes}, keepdims={keepdims}")
