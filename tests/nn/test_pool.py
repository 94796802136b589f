from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx
from pytensor_onnx.nn.pool import (
    avg_pool,
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
)
from tests.conftest import PY, assert_same, compare_onnx_and_py, op_types, sweep_rest

RNG = np.random.default_rng(0)

CASES = {
    "1d": ((7,), {"window": 2}),
    "1d overlapping, asymmetric padding": ((7,), {"window": 3, "stride": 1, "padding": [(2, 1)]}),
    "1d dilated": ((9,), {"window": 3, "stride": 2, "padding": 1, "dilation": 2}),
    "1d beyond the padding": (
        (6,),
        {"window": 3, "stride": 2, "padding": [(0, 1)], "ceil_mode": True},
    ),
    "1d last window would start in the padding": (
        (3,),
        {"window": 2, "stride": 3, "padding": 1, "ceil_mode": True},
    ),
    "2d": ((4, 6), {"window": 2}),
    "2d same": ((4, 5), {"window": 3, "stride": 1, "padding": 1}),
    "2d all options": (
        (6, 7),
        {
            "window": (2, 3),
            "stride": (2, 1),
            "padding": (1, (0, 2)),
            "dilation": (2, 1),
            "ceil_mode": True,
        },
    ),
    "3d": ((3, 4, 2), {"window": (1, 2, 2), "stride": (2, 2, 1), "padding": (0, 1, 0)}),
}


def per_axis(value, rank):
    return [value] * rank if isinstance(value, int) else list(value)


def windows_of(sizes, window, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Yield for each window its position, its cells, and how many it has with those in padding."""
    rank = len(sizes)
    window = per_axis(window, rank)
    stride = per_axis(stride if stride is not None else window, rank)
    dilation = per_axis(dilation, rank)
    padding = [(p, p) if isinstance(p, int) else p for p in per_axis(padding, rank)]
    starts = []
    for n, k, s, (before, after), d in zip(sizes, window, stride, padding, dilation, strict=True):
        last = n + after - ((k - 1) * d + 1)
        own = [i for i in range(-before, n + after, s) if i <= last]
        if ceil_mode and own[-1] < last:
            beyond = own[-1] + s
            own += [beyond] if beyond < n else []
        starts.append(own)
    for position in product(*(range(len(own)) for own in starts)):
        corner = [own[i] for own, i in zip(starts, position, strict=True)]
        taps = list(
            product(
                *(
                    [c + t * d for t in range(k)]
                    for c, k, d in zip(corner, window, dilation, strict=True)
                )
            )
        )
        cells = [c for c in taps if all(0 <= i < n for i, n in zip(c, sizes, strict=True))]
        padded = [
            c
            for c in taps
            if all(-b <= i < n + a for i, n, (b, a) in zip(c, sizes, padding, strict=True))
        ]
        yield position, cells, len(padded)


def pooled(x, reduce, **options):
    """Pool as defined: reduce(cells, number of cells with padding) of each window."""
    found = {}
    for position, cells, count in windows_of(x.shape[2:], **options):
        values = np.stack([x[(slice(None), slice(None), *c)] for c in cells], axis=-1)
        found[position] = reduce(values, count)
    shape = tuple(max(p[i] for p in found) + 1 for i in range(x.ndim - 2))
    result = np.empty((*x.shape[:2], *shape))
    for position, value in found.items():
        result[(slice(None), slice(None), *position)] = value
    return result


def pools(x, **options):
    return [
        max_pool(x, **options),
        avg_pool(x, **options),
        avg_pool(x, **options, count_include_pad=True),
        lp_pool(x, **options),
        lp_pool(x, **options, p=3),
    ]


def expected_pools(x, **options):
    return [
        pooled(x, lambda v, _: v.max(-1), **options),
        pooled(x, lambda v, _: v.mean(-1), **options),
        pooled(x, lambda v, n: v.sum(-1) / n, **options),
        pooled(x, lambda v, _: np.sqrt((v**2).sum(-1)), **options),
        pooled(x, lambda v, _: np.cbrt((np.abs(v) ** 3).sum(-1)), **options),
    ]


def symbols(channels, sizes):
    """Return arrays of float32 and known spatial sizes, and of float64 and unknown ones."""
    dynamic = [None] * len(sizes)
    return [
        pt.tensor("x", shape=(None, channels, *sizes), dtype="float32"),
        pt.tensor("y", shape=(None, channels, *dynamic), dtype="float64"),
    ]


@pytest.mark.parametrize(
    "case",
    sweep_rest(
        CASES,
        (
            "1d overlapping, asymmetric padding",
            "1d beyond the padding",
            "1d last window would start in the padding",
            "2d all options",
            "3d",
        ),
    ),
)
@pytest.mark.few(1)
def test_pools_are_as_defined(case):
    sizes, options = CASES[case]
    # Sums of eighths are exact, so that no mean near zero loses digits.
    value = (RNG.integers(-16, 17, (2, 3, *sizes)) / 8).astype("float32")
    values = [value, value.astype("float64")]
    inputs = symbols(3, sizes)
    outputs = [y for x in inputs for y in pools(x, **options)]
    program = compare_onnx_and_py(inputs, outputs, values, assume_finite=True)
    expected = expected_pools(values[1], **options)
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.astype(found.dtype))
    assert [y.type.shape[2:] for y in outputs[:5]] == [right.shape[2:] for right in expected]


@pytest.mark.parametrize("batch", [None, 2])
def test_a_pool_is_one_operator(batch):
    x = pt.tensor("x", shape=(batch, 3, 5, 5), dtype="float32")
    outputs = [*pools(x, window=3, stride=2, padding=1), global_max_pool(x), global_avg_pool(x)]
    program = export_onnx([x], outputs, assume_finite=True, verify=False)
    names = ["AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"]
    assert sorted(op_types(program)) == [*names, "LpPool", "LpPool", "MaxPool"]
    assert program.model.graph.initializers == {}


def first_largest(x, gradient, **options):
    """Give the gradient of each window to its first largest cell."""
    result = np.zeros_like(x)
    for position, cells, _ in windows_of(x.shape[2:], **options):
        for n, c in np.ndindex(*x.shape[:2]):
            best = cells[int(np.argmax([x[(n, c, *cell)] for cell in cells]))]
            result[(n, c, *best)] += gradient[(n, c, *position)]
    return result


def shared_out(x, gradient, with_padding, **options):
    """Give each cell of a window its share of the gradient of an average."""
    result = np.zeros_like(x)
    for position, cells, count in windows_of(x.shape[2:], **options):
        for cell in cells:
            share = gradient[(slice(None), slice(None), *position)]
            result[(slice(None), slice(None), *cell)] += share / (
                count if with_padding else len(cells)
            )
    return result


@pytest.mark.parametrize(
    "case", sweep_rest(CASES, ("1d beyond the padding", "2d all options", "3d"))
)
@pytest.mark.few(1)
def test_gradients_are_as_defined(case):
    sizes, options = CASES[case]
    value = RNG.integers(-2, 3, (2, 2, *sizes)).astype("float64")  # with many ties
    weight = RNG.standard_normal(expected_pools(value, **options)[0].shape)
    inputs = symbols(2, sizes)
    gradients = [
        pytensor.grad((pool * weight.astype(x.dtype)).sum(), x)
        for x in inputs
        for pool in pools(x, **options)[:3]
    ]
    values = [value.astype(x.dtype) for x in inputs]
    expected = [
        first_largest(value, weight, **options),
        shared_out(value, weight, False, **options),
        shared_out(value, weight, True, **options),
    ]
    program = compare_onnx_and_py(inputs, gradients, values, atol=1e-6)
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.astype(found.dtype), atol=1e-6 if found.itemsize == 4 else 1e-14)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_gradient_of_a_norm_is_that_of_finite_differences_and_zero_at_zero(p):
    x = pt.tensor3("x")
    value = np.array([[[0.5, -1.5, 2.0, 0.0, 0.0, 1.0]]])
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    gradient = pytensor.grad((lp_pool(x, 2, 1, p=p) * weight).sum(), x)
    found = compare_onnx_and_py([x], gradient, [value], atol=1e-14)(value)[0][0, 0]

    def total(v):
        return (((np.abs(v[:-1]) ** p + np.abs(v[1:]) ** p) ** (1 / p)) * weight).sum()

    for i in (0, 1, 2, 5):
        step = np.zeros(6)
        step[i] = 1e-6
        slope = (total(value[0, 0] + step) - total(value[0, 0] - step)) / 2e-6
        assert found[i] == pytest.approx(slope, rel=1e-6)
    assert np.all(np.isfinite(found))


@pytest.mark.slow
def test_the_norm_of_order_one_is_the_sum_of_absolute_values():
    value = RNG.standard_normal((2, 3, 7)).astype("float32")
    values = [value, value.astype("float64")]
    inputs = symbols(3, (7,))
    outputs = [y for x in inputs for y in (lp_pool(x, 2, 3, 1, p=1), global_lp_pool(x, p=1))]
    program = compare_onnx_and_py(inputs, outputs, values)
    windows = pooled(values[1], lambda v, _: np.abs(v).sum(-1), window=2, stride=3, padding=1)
    expected = [windows, np.abs(values[1]).sum(-1, keepdims=True)]
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.astype(found.dtype))


@pytest.mark.parametrize("sizes", [(5,), (2, 2, 3)])
def test_global_pools_are_as_defined(sizes):
    value = RNG.standard_normal((2, 3, *sizes)).astype("float32")
    values = [value, value.astype("float64")]
    inputs = symbols(3, sizes)
    outputs = [
        y
        for x in inputs
        for y in (global_max_pool(x), global_avg_pool(x), global_lp_pool(x), global_lp_pool(x, p=3))
    ]
    program = compare_onnx_and_py(inputs, outputs, values)
    flat = values[1].reshape(2, 3, -1)
    expected = [flat.max(-1), flat.mean(-1)]
    expected += [(np.abs(flat) ** p).sum(-1) ** (1 / p) for p in (2, 3)]
    for found, right in zip(program(*values), [*expected, *expected], strict=True):
        assert_same(found, right.reshape(2, 3, *[1] * len(sizes)).astype(found.dtype))


def test_gradient_of_a_global_maximum_goes_to_the_first():
    x = pt.tensor3("x")
    value = np.array([[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]])
    gradients = [pytensor.grad((y * y).sum(), x) for y in (global_max_pool(x), global_lp_pool(x))]
    program = compare_onnx_and_py([x], gradients, [value])
    np.testing.assert_array_equal(program(value)[0], [[[0, 6, 0], [4, 0, 0]]])
    np.testing.assert_allclose(program(value)[1], 2 * value, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_infinities_stay_in_their_windows(dtype):
    row = np.array([1, np.nan, 2, 3, np.inf, 4, -np.inf, -np.inf, -np.inf, 5])
    value = np.stack([row, row[::-1]])[None].astype(dtype)
    x = pt.tensor("x", shape=(None, 2, None), dtype=dtype)
    outputs = [max_pool(x, 3, 1), avg_pool(x, 2, 1), lp_pool(x, 2, 1)]
    compare_onnx_and_py([x], [*outputs, global_max_pool(x), global_avg_pool(x)], [value])


@pytest.mark.slow
def test_pools_of_an_empty_batch_are_empty():
    x = pt.tensor("x", shape=(None, 2, None, None), dtype="float32")
    outputs = pools(x, window=2, stride=1, padding=1)
    gradients = [pytensor.grad((y**2).sum(), x) for y in outputs]
    compare_onnx_and_py(
        [x], [*outputs, *gradients, global_max_pool(x)], [np.ones((0, 2, 3, 4), "f")]
    )


@pytest.mark.slow
def test_pools_of_float16_are_those_of_float32():
    value = RNG.standard_normal((2, 2, 5, 4)).astype("float16")
    x = pt.tensor("x", shape=(None, 2, None, None), dtype="float16")
    outputs = pools(x, window=2, padding=1)
    gradients = [pytensor.grad(y.sum(), x) for y in outputs[:2]]
    compare_onnx_and_py([x], [*outputs, *gradients], [value], atol=1e-3)


@pytest.mark.few(1)
@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "options", [{"stride": 2}, {"stride": 1}, {"stride": 3, "ceil_mode": True}]
)
def test_a_window_without_elements_is_as_defined(options, dtype):
    x = pt.tensor("x", shape=(None, 2, None), dtype=dtype)
    options = {"window": 2, "padding": 1, "dilation": 3, **options}
    inside = RNG.standard_normal((1, 2, 2)).astype(dtype)
    maximum, mean = max_pool(x, **options), avg_pool(x, **options)
    gradient = pytensor.grad(maximum.sum(), x)
    for finite in (False, True):
        program = compare_onnx_and_py(
            [x], [maximum, mean, gradient], [inside], assume_finite=finite
        )
    largest, average, _ = program(np.ones((1, 2, 2), dtype))
    assert np.isneginf(largest[0, 0, 0])
    assert np.isnan(average[0, 0, 0])


@pytest.mark.parametrize(("window", "stride", "dilation"), [(2, 2, 2), (3, 3, 3), (3, 4, 2)])
def test_gradients_of_dilated_windows_add_up_where_they_overlap(window, stride, dilation):
    x = pt.tensor("x", shape=(None, None, None), dtype="float32")
    gradient = pytensor.grad(max_pool(x, window, stride=stride, dilation=dilation).sum(), x)
    value = RNG.standard_normal((2, 2, 16)).astype("float32")
    value[..., stride] = 9  # the last tap of one window or the middle one, and the first of another
    program = compare_onnx_and_py([x], gradient, [value])
    assert program(value)[0].max() > 1


@pytest.mark.few(1)
@pytest.mark.parametrize("opset", sweep_rest([18, 21, 26], (18, 26)))
def test_no_window_starts_behind_an_array_of_known_sizes(opset):
    # A branch has the shapes that the runtime infers.
    inputs = [pt.tensor(f"x{n}", shape=(2, 1, n, 5), dtype="float32") for n in (4, 6, 7)]
    outputs = []
    for x in inputs:
        results = pools(x, window=2, stride=3, padding=1, ceil_mode=True)
        results.append(pytensor.grad(results[0].sum(), x))
        outputs += ifelse(x.sum() > 0, results, [2 * y for y in results])
    values = [RNG.standard_normal(x.type.shape).astype("float32") for x in inputs]
    compare_onnx_and_py(inputs, outputs, values, atol=1e-6, opset_version=opset)


@pytest.mark.parametrize("opset", range(18, 27))
def test_dilated_means_have_the_attributes_of_their_opset(opset):
    x = pt.tensor("x", shape=(None, 2, None, None), dtype="float32")
    program = compare_onnx_and_py(
        [x],
        avg_pool(x, 2, stride=1, dilation=2),
        [RNG.standard_normal((2, 2, 5, 6)).astype("float32")],
        atol=1e-6,
        opset_version=opset,
    )
    assert ("AveragePool" in op_types(program)) == (opset >= 19)


@pytest.mark.parametrize(
    ("shape", "size", "window"),
    [
        ((None, 3, 12), (5, 3, 12), 3),
        ((None, None, 4, 6), (3, 2, 4, 6), 2),
        ((2, 2, 4, 6), (2, 2, 4, 6), (1, 3)),
        ((None, 2, 4, 6), (0, 2, 4, 6), 2),
        ((None, 5, 132, 102), (2, 5, 132, 102), (3, 2)),
        ((None, 2, 4, 2, 6), (3, 2, 4, 2, 6), 2),
    ],
    ids=["one axis", "unknown channels", "known batch", "empty", "large", "three axes"],
)
def test_gradient_of_tiling_windows_goes_to_the_first_maximum(shape, size, window):
    x = pt.tensor("x", shape=shape, dtype="float32")
    y = max_pool(x, window)
    g = pt.tensor("g", shape=y.type.shape, dtype="float32")
    gradient = pytensor.grad(None, x, known_grads={y: g})
    value = RNG.integers(-1, 2, size).astype("float32")
    value[:, 0] = -np.inf
    windows = (window,) * (len(size) - 2) if isinstance(window, int) else window
    pooled = (*size[:2], *(s // k for s, k in zip(size[2:], windows, strict=True)))
    upstream = RNG.standard_normal(pooled).astype("float32")
    upstream[1:2, 1, 0], upstream[1:2, 1, -1] = np.nan, np.inf
    compare_onnx_and_py([x, g], gradient, [value, upstream], rtol=0, atol=0)


def test_gradient_of_tiling_windows_is_not_scattered():
    x = pt.tensor("x", shape=(None, 2, 4, 6), dtype="float32")
    weight = pt.tensor("w", shape=(None, 2, 2, 3), dtype="float32")
    gradients = [pytensor.grad((y * weight).sum(), x) for y in (max_pool(x, 2), avg_pool(x, 2))]
    program = export_onnx([x, weight], gradients, assume_finite=True, verify=False)
    operators = set(op_types(program))
    assert "ScatterElements" not in operators
    assert "MaxUnpool" in operators


@pytest.mark.slow
def test_second_derivatives_agree():
    x, v = pt.tensor3("x"), pt.tensor3("v")
    value, direction = RNG.standard_normal((2, 2, 7))
    for y in (max_pool(x, 3, 2), avg_pool(x, 3, 2, 1)):
        gradient = pytensor.grad((y**3).sum(), x)
        product = pytensor.grad((gradient * v).sum(), x)
        found = pytensor.function([x, v], product, mode="ONNX")(value[None], direction[None])
        slope = pytensor.function([x], gradient, mode="ONNX")
        step = 1e-6 * direction[None]
        expected = (slope(value[None] + step) - slope(value[None] - step)) / 2e-6
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.compiled
def test_pools_run_in_numba():
    x = pt.tensor4("x")
    value = RNG.standard_normal((2, 2, 5, 4))
    outputs = [max_pool(x, 2, 1, 1), avg_pool(x, 2, 1, 1)]
    gradients = [pytensor.grad((y**2).sum(), x) for y in outputs]
    in_numba = pytensor.function([x], [*outputs, *gradients], mode="NUMBA")(value)
    in_onnx = pytensor.function([x], [*outputs, *gradients], mode="ONNX")(value)
    for a, b in zip(in_numba, in_onnx, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((None, 3), {"window": 2}, "one to three spatial axes"),
        ((None, 3, 5), {"window": (2, 2)}, "window=.* must be one int, or 1"),
        ((None, 3, 5), {"window": 0}, "window=0 must not be less than 1"),
        ((None, 3, 5), {"window": 2, "stride": 0}, "stride=0"),
        ((None, 3, 5), {"window": 2, "padding": 2}, "wholly in the padding"),
        ((None, 3, 5), {"window": 2, "padding": [(0, -1)]}, "padding=.* must not be less than 0"),
        ((None, 3, 5, 5), {"window": 3, "padding": (1, 1, 1)}, "padding=.* must be one int, or 2"),
        ((None, 3, 2), {"window": 4}, "spans 4 elements"),
        ((None, 3, 1), {"window": 2, "padding": 1, "dilation": 2}, "could miss all 1 elements"),
    ],
)
def test_arguments_that_do_not_fit_are_named(shape, options, message):
    x = pt.tensor("x", shape=shape)
    with pytest.raises(ValueError, match=message):
        max_pool(x, **options)


def test_arrays_and_arguments_of_the_wrong_type_are_named():
    with pytest.raises(TypeError, match="max_pool takes an array of floats; got one of int64"):
        max_pool(pt.ltensor3("x"), 2)
    with pytest.raises(TypeError, match=r"window=.* must be made of ints"):
        max_pool(pt.tensor4("x"), (2.5, 2))
    with pytest.raises(ValueError, match="p=0 must be a positive int"):
        lp_pool(pt.tensor4("x"), 2, p=0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_axis_too_short_for_a_window_is_an_error_when_the_model_runs(dtype):
    x = pt.tensor("x", shape=(None, 1, None, None), dtype=dtype)
    fitting, short = (np.ones((2, 1, 1, size), dtype) for size in (3, 2))
    for y in pools(x, window=(1, 3), stride=2):
        program = export_onnx([x], y, verify=False)
        assert program(fitting).shape == (2, 1, 1, 1)
        with pytest.raises(ValueError, match="a window of a pool is larger than the padded array"):
            program(short)
    with (
        pytest.raises(ValueError, match="a window of a pool is larger than the padded array"),
        pytensor.config.change_flags(cxx=""),
    ):
        pytensor.function([x], max_pool(x, (1, 3), stride=2), mode=PY)(short)


@pytest.mark.parametrize("window", [2, 7, 40, 400])
@pytest.mark.few(1)
def test_pools_of_pools_are_verified_on_arrays_with_room_for_them(window):
    x = pt.tensor("x", shape=(None, 1, None), dtype="float32")
    y = max_pool(max_pool(x, 2), window, stride=2)
    verification = str(export_onnx([x], y).verification)
    assert ("equal to PyTensor" in verification) == (window < 400)
    assert ("not compared" in verification) == (window == 400)
