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
from pytensor_onnx.conversion import ConversionOptions, convert
from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.rewriting.loops.inner_loops import prepare_definition
from tests.operations import OPERATIONS
from tests.operations.regions import Accuracy, Region

PRECISION = 140
DTYPES = ["float64", "float32"]

Run = Callable[..., np.ndarray]


@cache
def cases() -> dict[str, Accuracy]:
    """Return the accuracies of the records, by the name of the Op."""
    found = [x.accuracy for x in OPERATIONS.values() if x.accuracy]
    return {case.op_type.__name__: case for case in found}


@cache
def compile_definition(name: str, dtype: str) -> Run:
    """Compile the definition of an Op, also where the runtime has an operator of its own."""
    case = cases()[name]
    op_type = case.op_type
    arguments = [pt.vector(dtype=dtype) for _ in range(case.arguments)]
    [result] = DEFINITIONS[op_type](*arguments)
    assert result.type.dtype == dtype
    return compile_as_written(arguments, result)


def compile_as_written(arguments: list[pt.TensorVariable], result: pt.TensorVariable) -> Run:
    """Compile an expression as that of a definition, without PyTensor's rewrites."""
    fgraph = FunctionGraph(arguments, [result], clone=False)
    prepare_definition(fgraph)
    model = convert(fgraph, ConversionOptions(opset_version=21)).model
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
            cases()[name].exact(*(mp.mpf(float(x)) for x in row))
            for row in zip(*points, strict=True)
        ]
    return points, exact


def errors_in_ulp(
    found: np.ndarray, exact: list[mp.mpf], sizes: list[mp.mpf] | None = None
) -> np.ndarray:
    """Errors in units of the last place of the sizes, by default of the exact values.

    They are infinite where NaN or an infinity is unexpected.
    """
    info = np.finfo(found.dtype)
    digits = info.nmant + 1
    errors = np.full(len(found), np.inf)
    with mp.workprec(PRECISION):
        rows = zip(found, exact, sizes or exact, strict=True)
        for i, (value, truth, size) in enumerate(rows):
            if np.isfinite(value):
                exponent = mp.frexp(size)[1] if size else info.minexp
                unit = mp.ldexp(1, max(exponent, int(info.minexp) + 1) - digits)
                errors[i] = abs(mp.mpf(float(value)) - truth) / unit
            elif abs(truth) > float(info.max) and value == np.inf * float(mp.sign(truth)):
                errors[i] = 0
    return errors


def errors_of(name: str, region: Region, size: int, dtype: str, run: Run) -> np.ndarray:
    """Errors of a function in a region, in ulp of the scale of the function there."""
    points, exact = samples(name, region, size, dtype)
    with np.errstate(all="ignore"):
        found = run(*points)
    if region.scale is None:
        return errors_in_ulp(found, exact)
    with mp.workprec(PRECISION):
        rows = zip(exact, *points, strict=True)
        sizes = [max(abs(t), region.scale(*(mp.mpf(float(v)) for v in x))) for t, *x in rows]
    return errors_in_ulp(found, exact, sizes)


def assert_accurate(name: str, dtype: str, run: Run | None = None) -> None:
    """Assert that the errors of a function are within the bounds of its regions."""
    run = run or compile_definition(name, dtype)
    size = cases()[name].size
    for region in cases()[name].regions:
        if dtype not in region.dtypes:
            continue
        errors = errors_of(name, region, size, dtype, run)
        worst = int(np.argmax(errors))
        where = [float(x[worst]) for x in region.points(size, dtype)]
        assert errors[worst] <= region.bound, f"{name}{where}, region {region.label}"


def assert_values(
    name: str,
    dtype: str,
    values: dict[float, float] | list[tuple[float, float]],
    run: Run | None = None,
) -> None:
    """Assert values exactly, NaN being NaN and the sign of zero counting."""
    pairs = list(values.items()) if isinstance(values, dict) else values
    points, expected = np.array(pairs, dtype).T
    run = run or compile_definition(name, dtype)
    # Longer than one SIMD register too, for its loop and the remainder differ.
    for repeats in (1, 8):
        found = run(np.repeat(points, repeats))
        np.testing.assert_array_equal(found, np.repeat(expected, repeats))
        real = ~np.isnan(found)
        np.testing.assert_array_equal(
            np.signbit(found)[real], np.signbit(np.repeat(expected, repeats))[real]
        )


def assert_ends(name: str, dtype: str, run: Run | None = None) -> None:
    """Assert the values at the ends of the domain and beyond, and of tiny numbers."""
    case, info = cases()[name], np.finfo(dtype)
    ends = [*case.ends, *case.ends_in.get(dtype, [])]
    if dtype in case.keeps_tiny:
        tiny = [0.0, *map(float, (info.smallest_subnormal, info.tiny, info.eps / 8))]
        ends += [(sign * x, sign * x) for x in tiny for sign in (1, -1)]
    if ends:
        assert_values(name, dtype, ends, run)
