import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.ifelse import ifelse
from pytensor.tensor.basic import ARange, MakeVector, scalar_from_tensor, tensor_from_scalar

from pytensor_onnx import InputError, PyTensorONNXError, compile_onnx, export_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.properties import holds_for

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
NUMBERS = DTYPES[1:]
NOT_BROADCAST = "Runtime broadcasting not allowed"


def array(shape, dtype="float64"):
    return (np.arange(np.prod(shape, dtype=int)) % 5 % 3).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_and_0d_tensors_are_the_same(dtype):
    x = pt.scalar("x", dtype=dtype)
    result = tensor_from_scalar(scalar_from_tensor(x))
    compare_onnx_and_py([x], result, [np.ones((), dtype)])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_joined(dtype, axis):
    x, y = pt.tensor("x", dtype=dtype, shape=(None, None)), pt.matrix("y", dtype=dtype)
    compare_onnx_and_py(
        [x, y], pt.join(axis, x, y, x), [array((2, 3), dtype), array((2, 3), dtype)]
    )


@pytest.mark.parametrize(
    "dtypes", [("int8", "uint8"), ("bool", "int32"), ("int64", "float32"), ("float16", "float64")]
)
def test_different_dtypes_are_joined_in_their_common_one(dtypes):
    inputs = [pt.vector(dtype=dtype) for dtype in dtypes]
    compare_onnx_and_py(inputs, pt.join(0, *inputs), [array((3,), dtype) for dtype in dtypes])


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("sizes", [(0, 3), (1, 1), (0, 0), (2, 5)], ids=str)
def test_parts_of_any_size_are_joined(sizes, static):
    shapes = [(size, 2) for size in sizes]
    inputs = [pt.tensor(shape=shape if static else (None, None)) for shape in shapes]
    values = [array(shape) for shape in shapes]
    compare_onnx_and_py(inputs, [pt.join(0, *inputs), pt.join(0, inputs[0])], values)


def test_parts_of_different_widths_do_not_join():
    x, y = pt.matrices("xy")
    f = compile_onnx([x, y], pt.join(0, x, y), verify=False)
    with pytest.raises(InputError, match="x_dim1"):
        f(array((2, 3)), array((2, 4)))


def test_an_empty_part_of_another_width_does_not_join():
    x, y = pt.matrix("x"), pt.matrix("y")
    f = compile_onnx([x, y], pt.join(0, pt.exp(x), pt.exp(y)), verify=False)
    with pytest.raises(InputError, match="x_dim1"):
        f(array((2, 3)), array((0, 4)))


def test_tensors_are_stacked_and_tiled():
    x, y = pt.matrices("xy")
    results = [pt.stack([x, y], axis) for axis in (0, 1, -1)]
    results += [pt.tile(x, (2, 3)), pt.repeat(x, 2, axis=0), pt.roll(x, 1, axis=1)]
    compare_onnx_and_py([x, y], results, [array((2, 3)), array((2, 3)) + 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_split(dtype):
    x, sizes = pt.tensor("x", dtype=dtype, shape=(None, 6)), pt.lvector("sizes")
    results = [*pt.split(x, sizes, n_splits=3, axis=1), *pt.split(x, [1, 5], axis=1)]
    compare_onnx_and_py([x, sizes], results, [array((2, 6), dtype), np.array([1, 0, 5])])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_sizes_of_parts_have_any_integer_dtype(dtype):
    x, n = pt.vector("x"), pt.scalar("n", dtype=dtype)
    results = list(pt.split(x, pt.stack([n, x.shape[0].astype(dtype) - n]), n_splits=2))
    compare_onnx_and_py([x, n], results, [array((5,)), 2])


@pytest.mark.parametrize("sizes", [[1, 1], [4, 4], [4, -1], [1, 1, 1]], ids=str)
def test_sizes_of_parts_that_do_not_fit_fail(sizes):
    x, splits = pt.vector("x"), pt.lvector("splits")
    f = compile_onnx([x, splits], pt.split(x, splits, n_splits=2), verify=False)
    assert [part.size for part in f(array((3,)), [1, 2])] == [1, 2]
    with pytest.raises(PyTensorONNXError, match="split"):
        f(array((3,)), sizes)


def test_the_size_of_a_single_part_must_fit_too():
    x, splits = pt.vector("x"), pt.lvector("splits")
    f = compile_onnx([x, splits], pt.split(x, splits, n_splits=1), verify=False)
    assert f(array((3,)), [3]).shape == (3,)
    with pytest.raises(AssertionError):
        f(array((3,)), [2])


def test_gradients_through_join_and_split():
    x, y = pt.matrices("xy")
    first, second = pt.split(pt.join(0, x, y * 2) ** 2, [1, 3], axis=0)
    cost = (first.sum() * second).sum()
    compare_onnx_and_py([x, y], pt.grad(cost, [x, y]), [array((2, 3)), array((2, 3)) + 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_of_every_dtype_make_a_vector(dtype):
    x, y = pt.scalar("x", dtype=dtype), pt.scalar("y", dtype=dtype)
    results = [MakeVector(dtype)(x, y, x), MakeVector(dtype)(x), MakeVector(dtype)()]
    results.append(pt.stack([x, pt.constant(np.ones((), dtype)), y]))
    compare_onnx_and_py([x, y], results, [np.ones((), dtype), np.zeros((), dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_every_dtype_are_allocated(dtype):
    x, n = pt.scalar("x", dtype=dtype), pt.lscalar("n")
    one = pt.constant(np.ones((), dtype))
    results = [
        pt.alloc(x, n, 2),
        pt.alloc(x, 2),
        pt.alloc(one, n),
        pt.alloc(one, 3, 0),
        pt.alloc(x),
    ]
    compare_onnx_and_py([x, n], results, [np.ones((), dtype), 3])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_sizes_come_from_inputs(dtype):
    x, n = pt.vector("x"), pt.scalar("n", dtype=dtype)
    results = [pt.alloc(0.5, n, 2), pt.alloc(x, n, x.shape[0]), pt.alloc(x, n, n, 3)]
    first, *others = ([array((3,)), size] for size in [0, 1, 4])
    compare_onnx_and_py([x, n], results, first, also=others)


def test_values_are_broadcast_along_axes_of_type_one():
    x, y, n = pt.tensor("x", shape=(1, None)), pt.tensor("y", shape=(None, 1)), pt.lscalar("n")
    results = [pt.alloc(x, n, 3), pt.alloc(y, 3, n), pt.alloc(y, 2, 3, n)]
    first, *others = ([array((1, 3)), array((3, 1)), size] for size in [0, 1, 4])
    compare_onnx_and_py([x, y, n], results, first, also=others)


@pytest.mark.parametrize(("size", "wanted"), [(1, 4), (1, 0), (3, 1), (3, 4)])
def test_values_are_not_broadcast_along_other_axes(size, wanted):
    x, n = pt.vector("x"), pt.lscalar("n")
    result = pt.alloc(x, 2, n)
    functions = [pytensor.function([x, n], result, mode="FAST_COMPILE")]
    functions.append(pytensor.function([x, n], result, mode="ONNX"))
    functions.append(compile_onnx([x, n], result, verify=False))
    for f in functions:
        assert f(array((wanted,)), wanted).shape == (2, wanted)
        with pytest.raises(ValueError, match=NOT_BROADCAST if size == 1 else None):
            f(array((size,)), wanted)


def test_a_value_that_has_the_shape_is_not_copied():
    x = pt.matrix("x")
    program = export_onnx([x], pt.alloc(pt.exp(x), *x.shape))
    assert op_types(program) == ["Exp"]


def test_sizes_known_to_fit_are_not_checked():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], pt.alloc(x, 3, *x.shape), [array((2, 3))])
    assert "If" not in op_types(program)


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_tensors_have_shape_and_dtype(dtype):
    n = pt.lscalar("n")
    result = pt.empty((n, 2), dtype=dtype)
    compare_onnx_and_py([n], [result.shape, result[:0], pt.isinf(result).shape], [3])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_ranges_of_every_dtype(dtype):
    start, stop, step = [pt.scalar(name, dtype=dtype) for name in ("start", "stop", "step")]
    results = [
        pt.arange(stop, dtype=dtype),
        ARange(dtype)(start, stop, step),
        pt.arange(start, stop),
        pt.arange(2, stop, 3, dtype=dtype),
    ]
    compare_onnx_and_py([start, stop, step], results, [1, 12, 3])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_ranges_in_any_direction(dtype):
    inputs = [pt.scalar(name, dtype=dtype) for name in ("start", "stop", "step")]
    first, *others = (
        [start, stop, step]
        for start, stop, step in [
            (5, -3, -2),
            (0, 0, 1),
            (3, 1, 1),
            (1, 3, -1),
            (2, 3, 7),
            (-4, 4, 4),
        ]
    )
    compare_onnx_and_py(inputs, pt.arange(*inputs), first, also=others)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 1, 0.1), (0.5, 3.7, 0.5), (1, 0, -0.1), (0.1, 0.4, 0.1), (0, 100, 0.1), (-1e3, 1e3, 33.3)],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ranges_of_fractions_have_the_length_and_steps_of_numpy(start, stop, step, dtype):
    inputs = [pt.scalar(name, dtype=dtype) for name in ("start", "stop", "step")]
    results = [ARange(result)(*inputs) for result in ("float16", "float32", "float64", "int64")]
    values = np.array([start, stop, step], dtype)
    compare_onnx_and_py(inputs, results, values, atol=1e-15)


def test_ranges_of_large_integers_are_exact():
    inputs = pt.lscalars("start", "stop", "step")
    first, *others = (
        [start, stop, step]
        for start, stop, step in [
            (2**53 + 1, 2**53 + 4, 1),
            (2**62, 2**62 + 5, 2),
            (-(2**62), -(2**62) - 3, -1),
            (2**63 - 3, 2**63 - 1, 1),
            (0, 2**62, 2**60),
        ]
    )
    compare_onnx_and_py(inputs, pt.arange(*inputs), first, also=others)


def test_a_range_without_step_fails():
    inputs = pt.lscalars("start", "stop", "step")
    for kind in ("int64", "float64"):
        variables = [x.astype(kind) for x in inputs]
        f = compile_onnx(inputs, ARange(kind)(*variables), verify=False)
        assert f(0, 3, 1).size == 3
        with pytest.raises(Exception, match=r"(?i)zero|length"):
            f(0, 3, 0)


def test_a_range_along_an_axis_has_its_size():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], pt.arange(x.shape[0]) + x.T, [array((2, 3))])
    assert "If" not in op_types(program)


@st.composite
def partitions(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(shape) - 1))
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    return tuple(shape), axis, sizes


@pytest.mark.slow
@holds_for(drawn=partitions(), dtype=st.sampled_from(DTYPES), static=st.booleans())
def test_any_split_and_join(drawn, dtype, static):
    shape, axis, sizes = drawn
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    given_sizes = pt.lvector("sizes")
    parts = pt.split(x, sizes if static else given_sizes, n_splits=len(sizes), axis=axis)
    parts = parts if isinstance(parts, list) else [parts]
    results = [*parts, pt.join(axis, *parts[::-1])]
    compare_onnx_and_py([x, given_sizes], results, [array(shape, dtype), np.array(sizes)])


def test_a_join_that_is_not_reached_asks_for_no_sizes():
    x, y, c = pt.matrix("x"), pt.matrix("y"), pt.scalar("c", dtype="bool")
    result = ifelse(c, pt.join(0, x, y).sum(), x.sum() + y.sum())
    f = compile_onnx([x, y, c], result, verify=False)
    assert f(np.ones((2, 3)), np.ones((2, 4)), False) == 14
