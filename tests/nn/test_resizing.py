import math
from fractions import Fraction
from itertools import product

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from onnx.reference import ReferenceEvaluator

from pytensor_onnx import export_onnx
from pytensor_onnx.nn.resizing import resize, upsample
from pytensor_onnx.ops.networks.resize import COORDINATES, ROUNDINGS
from tests.conftest import assert_same, compare_onnx_and_py, op_types, sweep_rest

RNG = np.random.default_rng(0)
HALF = Fraction(1, 2)


def place(i, size, out, scale, coordinates):
    if coordinates == "align_corners":
        return Fraction(i * (size - 1), out - 1) if out > 1 else Fraction(0)
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "pytorch_half_pixel" and out == 1:
        return Fraction(0)
    return (i + HALF) / scale - HALF


def nearest(p, rounding):
    return {
        "floor": math.floor(p),
        "ceil": math.ceil(p),
        "round_prefer_floor": math.ceil(p - HALF),
        "round_prefer_ceil": math.floor(p + HALF),
    }[rounding]


def keys(distance, a):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0


def matrix(
    size,
    out,
    scale,
    mode,
    coordinates="half_pixel",
    rounding="round_prefer_floor",
    a=-0.75,
    antialias=False,
    exclude_outside=False,
):
    """Return what one axis of the result is made of, by the formulas of the standard."""
    result = np.zeros((out, size))
    stretch = max(1, 1 / scale) if antialias else 1
    for i in range(out):
        p = place(i, size, out, scale, coordinates)
        if mode == "nearest":
            result[i, min(max(nearest(p, rounding), 0), size - 1)] = 1
            continue
        reach = math.ceil(stretch * (1 if mode == "linear" else 2))
        weights = {}
        for cell in range(math.floor(p) - reach, math.floor(p) + reach + 2):
            d = abs(p - cell) / stretch
            weights[cell] = float(max(1 - d, 0)) if mode == "linear" else float(keys(d, a))
            if exclude_outside and not 0 <= cell < size:
                weights[cell] = 0
        total = sum(weights.values())
        for cell, weight in weights.items():
            result[i, min(max(cell, 0), size - 1)] += weight / total
    return result


def resized(x, outs, scales=None, **options):
    for axis, out in enumerate(outs):
        size = x.shape[2 + axis]
        scale = Fraction(out, size) if scales is None else Fraction(scales[axis])
        columns = matrix(size, out, scale, **options)
        x = np.moveaxis(np.moveaxis(x, 2 + axis, -1) @ columns.T, -1, 2 + axis)
    return x


def symbols(sizes):
    dynamic = [None] * len(sizes)
    return [
        pt.tensor("x", shape=(None, 2, *sizes), dtype="float32"),
        pt.tensor("y", shape=(None, 2, *dynamic), dtype="float64"),
    ]


def check(sizes, outs, options, atol=2e-6):
    """Check resizing by each of the options, in float32 of known and float64 of unknown sizes."""
    value = RNG.standard_normal((2, 2, *sizes))
    inputs = symbols(sizes)
    graphs = [resize(x, sizes=outs, **each) for x in inputs for each in options]
    values = [value.astype(x.dtype) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, values, atol=atol)
    expected = [resized(value, outs, **each) for each in options]
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.astype(found.dtype), atol=atol if found.itemsize == 4 else 1e-13)
    return program


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest_elements_agree_with_the_definition(coordinates):
    options = [
        {"mode": "nearest", "coordinates": coordinates, "rounding": rounding}
        for rounding in ROUNDINGS
    ]
    check((7,), (11,), options)
    check((5, 6), (3, 1), options)


@pytest.mark.parametrize(
    ("sizes", "outs", "coordinates"),
    [
        ((7,), (3,), COORDINATES),
        ((4, 5), (7, 1), ["pytorch_half_pixel", "align_corners"]),
        ((2, 3, 4), (4, 3, 6), ["half_pixel"]),
    ],
)
@pytest.mark.slow
def test_interpolated_values_agree_with_the_definition(sizes, outs, coordinates):
    options = [
        {"mode": mode, "coordinates": each}
        for mode, each in product(("linear", "cubic"), coordinates)
    ]
    check(sizes, outs, options)


def test_the_cubic_coefficient_is_used():
    value = RNG.standard_normal((1, 2, 4, 5))
    inputs = symbols((4, 5))
    graphs = [resize(x, 9, mode="cubic", cubic_coefficient=-0.5) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, [value.astype("f"), value], atol=2e-6)
    expected = resized(value, (9, 9), mode="cubic", a=-0.5)
    np.testing.assert_allclose(program(value.astype("f"), value)[1], expected, atol=1e-13)


@pytest.mark.few(1)
@pytest.mark.parametrize("scale", [2, 3, 1.5, 0.5, 0.7])
def test_scales_that_are_given_tell_the_places(scale):
    value = RNG.standard_normal((2, 2, 5))
    fraction = Fraction(scale).limit_denominator(1000)
    out = math.floor(5 * fraction)
    inputs = symbols((5,))
    modes = ["nearest", "linear"]
    graphs = [resize(x, scales=scale, mode=mode) for x in inputs for mode in modes]
    values = [value.astype(x.dtype) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, values, atol=2e-6)
    expected = [resized(value, (out,), scales=(fraction,), mode=mode) for mode in modes]
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.astype(found.dtype), atol=2e-6 if found.itemsize == 4 else 1e-13)


@pytest.mark.parametrize("coordinates", sweep_rest(COORDINATES, ("half_pixel", "align_corners")))
@pytest.mark.slow
def test_antialiasing_widens_the_kernel_where_the_result_is_smaller(coordinates):
    options = [
        {"mode": mode, "coordinates": coordinates, "antialias": True, "exclude_outside": excluded}
        for mode, excluded in product(("linear", "cubic"), (False, True))
    ]
    check((10, 7), (3, 12), options)
    check((9,), (4,), options[:2])


@pytest.mark.parametrize("scale", [0.5, 0.7, 1.5])
def test_antialiasing_takes_its_width_from_the_scale_that_is_given(scale):
    value = RNG.standard_normal((2, 2, 11))
    fraction = Fraction(scale).limit_denominator(1000)
    inputs = symbols((11,))
    graphs = [resize(x, scales=scale, mode="linear", antialias=True) for x in inputs]
    values = [value.astype(x.dtype) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, values, atol=2e-6)
    outs = (math.floor(11 * fraction),)
    expected = resized(value, outs, scales=(fraction,), mode="linear", antialias=True)
    for found in program(*values):
        assert_same(found, expected.astype(found.dtype), atol=10 * np.finfo(found.dtype).eps)


@pytest.mark.slow
def test_elements_outside_are_excluded_from_cubic_interpolation():
    options = [{"mode": mode, "exclude_outside": True} for mode in ("linear", "cubic")]
    check((4, 5), (7, 9), options)


@pytest.mark.parametrize("shape", [(1, 2, 8, 9), (None, 2, None, None)])
def test_antialiasing_is_one_operator(shape):
    x = pt.tensor("x", shape=shape, dtype="float32")
    graphs = [
        resize(x, (4, 3), mode=mode, antialias=True, exclude_outside=mode == "cubic")
        for mode in ("linear", "cubic")
    ]
    program = export_onnx([x], graphs, verify=False)
    assert op_types(program).count("Resize") == 2
    assert set(op_types(program)) <= {"Resize", "Shape", "Concat"}
    value = RNG.standard_normal((1, 2, 8, 9)).astype("float32")
    expected = ReferenceEvaluator(ir.to_proto(program.model)).run(None, {"x": value})
    for found, right in zip(program(value), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_scales_may_differ_by_axis_and_go_with_all_coordinates(mode):
    value = RNG.standard_normal((2, 2, 4, 5))
    scales, outs = (1.5, 0.5), (6, 2)
    inputs = symbols((4, 5))
    values = [value.astype(x.dtype) for x in inputs]
    graphs = [resize(inputs[0], scales=scales, mode=mode, coordinates=c) for c in COORDINATES]
    graphs += [upsample(x, (2, 3), mode) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, values, atol=2e-6)
    fractions = [Fraction(scale) for scale in scales]
    expected = [resized(value, outs, fractions, mode=mode, coordinates=c) for c in COORDINATES]
    larger = resized(value, (8, 15), [Fraction(2), Fraction(3)], mode=mode)
    right = [*expected, larger, larger]
    for found, result in zip(program(*values), right, strict=True):
        atol = 2e-6 if found.itemsize == 4 else 1e-13
        assert_same(found, result.astype(found.dtype), atol=atol)


def test_the_exported_operator_means_the_same_to_the_reference_of_onnx():
    x = pt.tensor("x", shape=(None, 2, 4, 5), dtype="float32")
    graphs = [
        upsample(x, 2),
        upsample(x, (2, 3), "linear"),
        resize(x, sizes=(7, 3), mode="cubic", coordinates="align_corners"),
        resize(x, sizes=(6, 10), mode="nearest", coordinates="pytorch_half_pixel", rounding="ceil"),
    ]
    program = export_onnx([x], graphs, verify=False)
    assert op_types(program) == ["Resize"] * 4
    value = RNG.standard_normal((1, 2, 4, 5)).astype("float32")
    expected = ReferenceEvaluator(ir.to_proto(program.model)).run(None, {"x": value})
    for found, right in zip(program(value), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (None, 3, None, None)])
def test_upsampling_is_one_operator_that_repeats_elements(shape):
    x = pt.tensor("x", shape=shape, dtype="float32")
    program = export_onnx([x], upsample(x, 2), verify=False)
    assert op_types(program) == ["Resize"]
    value = RNG.standard_normal((2, 3, 4, 5)).astype("float32")
    np.testing.assert_array_equal(program(value), value.repeat(2, axis=2).repeat(2, axis=3))


@pytest.mark.parametrize(("rounding", "scale"), [("floor", 1.5), ("ceil", 0.75)])
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel"])
def test_an_exact_float32_scale_selects_the_elements_for_any_size(rounding, scale, coordinates):
    options = {"mode": "nearest", "coordinates": coordinates, "rounding": rounding}
    x = pt.tensor("x", shape=(None, 1, None), dtype="float32")
    program = export_onnx([x], resize(x, scales=scale, **options), verify=False)
    assert op_types(program) == ["Resize"]
    for size in range(2, 40):
        value = np.arange(size, dtype="float32").reshape(1, 1, size)
        outs = (math.floor(size * scale),)
        expected = resized(value, outs, scales=(Fraction(scale),), **options)
        np.testing.assert_array_equal(program(value), expected)


@pytest.mark.parametrize("size", range(4, 13))
def test_sizes_that_float32_tells_are_one_operator(size):
    options = {"mode": "nearest", "coordinates": "asymmetric", "rounding": "floor"}
    outs = [out for out in range(1, 13) if math.gcd(size, out) == 1 and out != size]
    x = pt.tensor("x", shape=(None, 1, size), dtype="float32")
    program = export_onnx([x], [resize(x, out, **options) for out in outs], verify=False)
    assert op_types(program).count("Resize") == len(outs)
    assert "Gather" not in op_types(program)
    value = np.arange(size, dtype="float32").reshape(1, 1, size)
    for out, found in zip(outs, program(value), strict=True):
        np.testing.assert_array_equal(found, resized(value, (out,), **options))


@pytest.mark.parametrize(("size", "out"), [(10, 6), (13, 7), (21, 11), (9, 21)])
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_a_cell_just_between_two_is_not_left_to_rounding_errors(size, out, rounding):
    x = pt.tensor("x", shape=(None, 1, size), dtype="float32")
    program = export_onnx([x], resize(x, out, rounding=rounding), verify=False)
    value = np.arange(size, dtype="float32").reshape(1, 1, size)
    expected = resized(value, (out,), mode="nearest", rounding=rounding)
    np.testing.assert_array_equal(program(value), expected)


def test_a_size_that_a_float32_scale_just_misses_is_given_as_a_size():
    x = pt.tensor("x", shape=(2, 1, 9), dtype="float32")
    y = resize(x, 13, mode="linear")
    matrix = RNG.standard_normal((13, 4)).astype("float32")
    value = RNG.standard_normal((2, 1, 9)).astype("float32")
    program = compare_onnx_and_py([x], y @ matrix, [value], atol=1e-5)
    assert op_types(program) == ["Resize", "MatMul"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "options",
    [
        {"scales": 2, "mode": "nearest", "coordinates": "asymmetric", "rounding": "floor"},
        {"sizes": (7, 3), "mode": "nearest"},
        {"sizes": (7, 3), "mode": "linear"},
        {"scales": (1.5, 2), "mode": "cubic"},
        {"sizes": (2, 3), "mode": "cubic", "antialias": True},
        {"scales": (0.5, 0.4), "mode": "linear", "antialias": True, "exclude_outside": True},
    ],
)
def test_gradients_are_the_transposed_matrices(options):
    value = RNG.standard_normal((2, 2, 4, 5))
    given = {k: v for k, v in options.items() if k not in ("sizes", "scales")}
    sizes, scales = options.get("sizes"), options.get("scales")
    scales = None if scales is None else np.broadcast_to(scales, 2).tolist()
    outs = sizes or tuple(math.floor(n * s) for n, s in zip((4, 5), scales, strict=True))
    weight = RNG.standard_normal((2, 2, *outs))
    inputs = symbols((4, 5))
    graphs = [
        pytensor.grad((resize(x, **options) * weight.astype(x.dtype)).sum(), x) for x in inputs
    ]
    values = [value.astype(x.dtype) for x in inputs]
    program = compare_onnx_and_py(inputs, graphs, values, atol=1e-5)
    fractions = [Fraction(o, n) for o, n in zip(outs, (4, 5), strict=True)]
    if scales is not None:
        fractions = [Fraction(s) for s in scales]
    rows, columns = (
        matrix(n, o, f, **given) for n, o, f in zip((4, 5), outs, fractions, strict=True)
    )
    expected = rows.T @ weight @ columns
    for found in program(*values):
        atol = 1e-5 if found.itemsize == 4 else 1e-13
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=atol)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(None, None, None, None), (2, 3, 2, 4)])
@pytest.mark.parametrize("scales", [(2, 2), (3, 1), (2, 1.5)])
def test_gradients_of_copies_are_sums_of_blocks(dtype, shape, scales):
    x = pt.tensor("x", shape=shape, dtype=dtype)
    sizes = [int(n * scale) for n, scale in zip((2, 4), scales, strict=True)]
    d = pt.tensor("d", shape=(2, 3, *sizes) if shape[0] else shape, dtype=dtype)
    y = resize(x, scales=scales, coordinates="asymmetric", rounding="floor")
    gradient = pytensor.grad(None, x, known_grads={y: d})
    # Sums of eighths are exact in any order.
    value = (RNG.integers(-40, 41, (2, 3, *sizes)) / 8).astype(dtype)
    value[0, 0, 0, 0], value[0, 1, -1, 0], value[1, 2, 1, 0] = np.nan, np.inf, -0.0
    given = np.ones((2, 3, 2, 4), dtype)
    program = compare_onnx_and_py([x, d], gradient, [given, value])
    if dtype == "float32" and shape[0] and scales != (2, 1.5):
        assert op_types(program) == ["Reshape", "ReduceSum"]
    if scales != (2, 1.5):
        i, j = map(int, scales)
        expected = value.reshape(2, 3, 2, i, 4, j).sum(axis=(3, 5))
        (found,) = program(given, value)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if shape[0] is None:
        compare_onnx_and_py([x, d], gradient, [given[:0], value[:0]])
        compare_onnx_and_py(
            [x, d], gradient, [given[:, :, :1, :1], value[:, :, : int(scales[0]), : int(scales[1])]]
        )


@pytest.mark.slow
def test_nan_stays_where_it_is_and_an_empty_batch_empty():
    x = pt.tensor("x", shape=(None, 1, None), dtype="float32")
    graphs = [upsample(x, 2), upsample(x, 2, "linear"), resize(x, 6, mode="cubic")]
    value = np.array([[[1, np.nan, 3, np.inf, 5, 6, 7]]], "float32")
    compare_onnx_and_py([x], graphs[:2], [value])
    compare_onnx_and_py([x], graphs, [np.ones((0, 1, 3), "float32")])


def test_resizing_in_float16_is_that_of_float32():
    x = pt.tensor("x", shape=(None, 1, 4, 5), dtype="float16")
    graphs = [upsample(x, 2), upsample(x, 2, "linear"), resize(x, (3, 7), mode="cubic")]
    compare_onnx_and_py(
        [x], graphs, [RNG.standard_normal((1, 1, 4, 5)).astype("float16")], atol=2e-3
    )


@pytest.mark.compiled
def test_resizing_runs_in_numba():
    x = pt.tensor("x", shape=(None, 2, None, None))
    value = RNG.standard_normal((2, 2, 4, 5))
    smaller = resize(x, (2, 3), mode="cubic", antialias=True)
    graphs = [upsample(x, 2), resize(x, (7, 3), mode="linear"), smaller]
    gradients = [pytensor.grad((y**2).sum(), x) for y in graphs]
    found = pytensor.function([x], [*graphs, *gradients], mode="NUMBA")(value)
    expected = pytensor.function([x], [*graphs, *gradients], mode="ONNX")(value)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either sizes or scales"),
        ({"sizes": 2, "scales": 2}, "either sizes or scales"),
        ({"sizes": (2, 2, 2)}, "sizes=.* must be one int, or 2"),
        ({"sizes": 0}, "sizes=0 must not be less than 1"),
        ({"scales": (1, 2, 3)}, "scales=.* must be one number, or 2"),
        ({"scales": -1.0}, "scales=-1.0 must be positive"),
        ({"scales": 2, "mode": "bilinear"}, "mode='bilinear' must be one of 'nearest'"),
        ({"scales": 2, "coordinates": "corner"}, "coordinates='corner' must be one of"),
        ({"scales": 2, "rounding": "up"}, "rounding='up' must be one of"),
        ({"sizes": 2, "antialias": True}, "antialias=True goes with mode='linear'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        resize(pt.tensor4("x"), **options)


def test_arrays_of_other_ranks_and_dtypes_are_named():
    with pytest.raises(ValueError, match=r"resize takes an array of shape .* got one of 2 dim"):
        resize(pt.matrix("x"), 3)
    with pytest.raises(TypeError, match="resize takes an array of floats; got one of int64"):
        upsample(pt.ltensor4("x"), 2)
