"""The definitions, run by ONNX Runtime as they are written, against mpmath."""

from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np
import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

import pytensor_onnx.functions.special  # noqa: F401  (registers the definitions)
from pytensor_onnx.conversion import convert
from pytensor_onnx.functions.registry import DEFINITIONS
from tests.functions.special.regions import CASES, Region

PRECISION = 140
DTYPES = ["float64", "float32"]

Run = Callable[..., np.ndarray]


@cache
def compile_definition(name: str, dtype: str) -> Run:
    """Compile the definition of an Op, also where the runtime has an operator of its own."""
    op_type = CASES[name].op_type
    arguments = [pt.vector(dtype=dtype) for _ in range(2 if name == "ArcTan2" else 1)]
    [result] = DEFINITIONS[op_type](*arguments)
    assert result.type.dtype == dtype
    model = convert(FunctionGraph(arguments, [result], clone=False), opset_version=21).model
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options)
    names = [argument.name for argument in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))[0]


@cache
def samples(name: str, region: Region, size: int, dtype: str) -> tuple[list, list]:
    """Points of a region, and the exact values there."""
    points = region.points(size, dtype)
    with mp.workprec(PRECISION):
        exact = [
            CASES[name].exact(*(mp.mpf(float(x)) for x in row)) for row in zip(*points, strict=True)
        ]
    return points, exact


def errors_in_ulp(found: np.ndarray, exact: list[mp.mpf]) -> np.ndarray:
    """Errors in units of the last place of the exact values, infinite where NaN is unexpected."""
    info = np.finfo(found.dtype)
    digits = info.nmant + 1
    errors = np.full(len(found), np.inf)
    with mp.workprec(PRECISION):
        for i, (value, truth) in enumerate(zip(found, exact, strict=True)):
            if np.isfinite(value):
                exponent = mp.frexp(truth)[1] if truth else info.minexp
                unit = mp.ldexp(1, max(exponent, int(info.minexp) + 1) - digits)
                errors[i] = abs(mp.mpf(float(value)) - truth) / unit
    return errors


def assert_accurate(name: str, dtype: str, run: Run | None = None, size: int = 300) -> None:
    """Assert that the errors of a function are within the bounds of its regions."""
    run = run or compile_definition(name, dtype)
    for region in CASES[name].regions:
        if dtype not in region.dtypes:
            continue
        points, exact = samples(name, region, size, dtype)
        errors = errors_in_ulp(run(*points), exact)
        worst = int(np.argmax(errors))
        where = [float(x[worst]) for x in points]
        assert errors[worst] <= region.bound, f"{name}{where}, region {region.label}"


def assert_values(name: str, dtype: str, values: dict[float, float]) -> None:
    """Assert values exactly, NaN being NaN and the sign of zero counting."""
    points = np.array(list(values), dtype)
    expected = np.array(list(values.values()), dtype)
    # Longer than one SIMD register too, for its loop and the remainder differ.
    for repeats in (1, 8):
        found = compile_definition(name, dtype)(np.repeat(points, repeats))
        np.testing.assert_array_equal(found, np.repeat(expected, repeats))
        real = ~np.isnan(found)
        np.testing.assert_array_equal(
            np.signbit(found)[real], np.signbit(np.repeat(expected, repeats))[real]
        )
