import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.extra_ops import cpu_contiguous

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, numbers_in_double, op_types
from tests.dispatch.values import DTYPES, INTEGERS, elements, shapes, special_values
from tests.properties import holds_for

NAN, INF = np.nan, np.inf


def test_cpu_contiguous_leaves_no_node():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], pt.exp(cpu_contiguous(x)), [np.ones((2, 3))])
    assert op_types(program) == ["Exp"]


class TestRepeat:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_each_element_by_its_own_count(self, dtype):
        x, counts = pt.tensor("x", dtype=dtype, shape=(None,)), pt.lvector("counts")
        values = special_values(dtype)[:4]
        compare_onnx_and_py([x, counts], pt.repeat(x, counts), [values, np.array([2, 0, 3, 1])])

    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, None])
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_axes(self, axis, static):
        values = np.arange(24.0).reshape(2, 3, 4)
        x = pt.tensor("x", shape=values.shape if static else (None,) * 3)
        size = values.size if axis is None else values.shape[axis]
        counts = pt.tensor("counts", dtype="int64", shape=(size if static else None,))
        compare_onnx_and_py(
            [x, counts], pt.repeat(x, counts, axis=axis), [values, np.arange(size) % 3]
        )

    @pytest.mark.parametrize("count", [0, 1, 3])
    @pytest.mark.parametrize("axis", [0, -1, None])
    def test_one_count_for_all(self, count, axis):
        x, n = pt.matrix("x"), pt.lscalar("n")
        outputs = [pt.repeat(x, n, axis=axis), pt.repeat(x, count, axis=axis)]
        compare_onnx_and_py([x, n], outputs, [np.arange(6.0).reshape(2, 3), count])

    def test_a_vector_of_one_count_is_for_all(self):
        x, counts = pt.matrix("x"), pt.lvector("counts")
        values = np.arange(6.0).reshape(2, 3)
        compare_onnx_and_py([x, counts], pt.repeat(x, counts, axis=1), [values, np.array([2])])

    @pytest.mark.parametrize("counts", [[0, 0, 0], []])
    def test_nothing_is_left(self, counts):
        x, n = pt.vector("x"), pt.lvector("n")
        compare_onnx_and_py(
            [x, n], pt.repeat(x, n), [np.ones(len(counts)), np.array(counts, "int64")]
        )

    @pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
    def test_counts_of_every_dtype(self, dtype):
        x, n = pt.vector("x"), pt.tensor("n", dtype=dtype, shape=(None,))
        compare_onnx_and_py([x, n], pt.repeat(x, n), [np.arange(3.0), np.array([1, 0, 2], dtype)])

    @pytest.mark.parametrize("counts", [[2, -1, 2], [1, 2]])
    def test_wrong_counts_raise(self, counts):
        x, n = pt.vector("x"), pt.lvector("n")
        program = compile_onnx([x, n], pt.repeat(x, n), verify=False)
        with pytest.raises(ValueError, match="repeats"):
            program(np.ones(3), np.array(counts))

    def test_constant_counts_of_a_static_axis_are_one_gather(self):
        x = pt.tensor("x", shape=(3, None))
        program = compare_onnx_and_py(
            [x], pt.repeat(x, np.array([1, 0, 2]), axis=0), [np.arange(6.0).reshape(3, 2)]
        )
        assert op_types(program) == ["Gather"]

    def test_gradient(self):
        x, n = pt.vector("x"), pt.lvector("n")
        gradient = pytensor.grad((pt.repeat(x, n) ** 2).sum(), x)
        compare_onnx_and_py([x, n], gradient, [np.arange(3.0), np.array([2, 0, 3])])


class TestUnique:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_all_outputs_of_every_dtype(self, dtype, static):
        values = np.random.default_rng(1).choice(special_values(dtype), size=(5, 6))
        x = pt.tensor("x", dtype=dtype, shape=values.shape if static else (None, None))
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [values])

    @pytest.mark.parametrize("axis", [0, 1, -1])
    @pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float32", "float64"])
    def test_slices(self, axis, dtype):
        values = np.random.default_rng(2).integers(0, 2, (4, 2, 3)).astype(dtype)
        x = pt.tensor("x", dtype=dtype, shape=(None, None, 3))
        compare_onnx_and_py([x], pt.unique(x, True, True, True, axis=axis), [values])

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"return_index": True},
            {"return_inverse": True},
            {"return_counts": True},
            {"return_index": True, "return_counts": True},
        ],
    )
    def test_any_choice_of_outputs(self, options):
        x = pt.vector("x")
        compare_onnx_and_py([x], pt.unique(x, **options), [np.array([2.0, 1, 2, NAN, 3, NAN])])

    @pytest.mark.parametrize(
        "values", [[1, NAN, 2, NAN, 1, INF], [NAN], [NAN, NAN], [0.0, -0.0], []]
    )
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_all_nan_count_as_one(self, values, dtype):
        x = pt.tensor("x", dtype=dtype, shape=(None,))
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [np.array(values, dtype)])

    @pytest.mark.parametrize("axis", [0, 1])
    def test_slices_with_nan_are_all_different(self, axis):
        values = np.array([[1, NAN], [NAN, 3], [1, NAN], [NAN, 2], [0, 0], [NAN, 3], [0, 0]])
        x = pt.matrix("x")
        outputs = pt.unique(x, True, True, True, axis=axis)
        compare_onnx_and_py([x], outputs, [values if axis == 0 else values.T])

    @pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
    @pytest.mark.parametrize("axis", [0, 1, None])
    @pytest.mark.parametrize("dtype", ["int64", "float64"])
    def test_empty_arrays(self, shape, axis, dtype):
        if axis is not None and shape[axis] == 0 and shape[1 - axis] == 0:
            pytest.skip("NumPy refuses a shape of zeros")
        x = pt.tensor("x", dtype=dtype, shape=(None, None))
        outputs = pt.unique(x, True, True, True, axis=axis)
        compare_onnx_and_py([x], outputs, [np.ones(shape, dtype)])

    def test_a_scalar(self):
        x = pt.scalar("x")
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [np.float64(3)])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 12])
def test_bartlett(dtype, size):
    n = pt.scalar("n", dtype=dtype)
    compare_onnx_and_py([n], pt.bartlett(n), [np.asarray(size, dtype)])


def test_bartlett_of_a_negative_size_is_empty():
    n = pt.lscalar("n")
    compare_onnx_and_py([n], pt.bartlett(n), [-3])


@pytest.mark.each_value
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("minlength", [None, 10])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_bincount(weighted, minlength, dtype):
    x, w = pt.tensor("x", dtype=dtype, shape=(None,)), pt.vector("w")
    counts = pt.bincount(x, weights=w if weighted else None, minlength=minlength)
    values = np.array([1, 4, 1, 0, 4, 4], dtype)
    compare_onnx_and_py([x, w], counts, [values, np.arange(6.0)])


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "float64"])
def test_diff(n, axis, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 4))
    values = np.random.default_rng(5).integers(0, 100, (3, 4)).astype(dtype)
    compare_onnx_and_py([x], pt.diff(x, n=n, axis=axis), [values])


def test_squeeze_of_all_axes_and_of_one():
    x = pt.tensor("x", shape=(1, None, 1))
    outputs = [pt.squeeze(x), pt.squeeze(x, axis=0), pt.squeeze(x, axis=-1)]
    compare_onnx_and_py([x], outputs, [np.arange(3.0).reshape(1, 3, 1)])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_compress(axis):
    x, keep = pt.matrix("x"), pt.vector("keep", dtype="bool")
    values = [np.arange(9.0).reshape(3, 3), np.array([True, False, True])]
    compare_onnx_and_py([keep, x], pt.compress(keep, x, axis=axis), values[::-1])


def test_broadcasting():
    x, y, n = pt.col("x"), pt.row("y"), pt.lscalar("n")
    outputs = [*pt.broadcast_arrays(x, y), pt.broadcast_to(x, (2, 3, n))]
    compare_onnx_and_py([x, y, n], outputs, [np.ones((3, 1)), np.arange(4.0)[None], 4])


@pytest.mark.each_value
@pytest.mark.parametrize("repetitions", [2, (2, 3), (1, 2, 2), (0, 2)])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float64"])
def test_tile(repetitions, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    values = np.arange(6).reshape(2, 3).astype(dtype)
    compare_onnx_and_py([x], pt.tile(x, repetitions), [values])


@pytest.mark.each_value
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("space", [pt.linspace, pt.logspace, pt.geomspace])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_spaces(endpoint, space, count):
    start, stop, n = pt.scalar("start"), pt.scalar("stop"), pt.lscalar("n")
    # PyTensor takes the logarithm of 10 in float32.
    with numbers_in_double():
        outputs = [
            space(start, stop, n, endpoint=endpoint),
            space(start, stop, count, endpoint=endpoint),
        ]
    compare_onnx_and_py([start, stop, n], outputs, [1.5, 4.0, count])


def test_space_between_arrays_and_its_gradient():
    start, stop = pt.vector("start"), pt.vector("stop")
    space = pt.linspace(start, stop, 5, axis=-1)
    gradients = pytensor.grad((space**2).sum(), [start, stop])
    values = [np.array([0.0, 1.0]), np.array([2.0, -1.0])]
    compare_onnx_and_py([start, stop], [space, *gradients], values)


def test_grids():
    n, m = pt.lscalar("n"), pt.lscalar("m")
    compare_onnx_and_py([n, m], [*pt.mgrid[0:n, 1:m:2], *pt.ogrid[0:n, 1:m:2]], [3, 6])


def test_one_hot():
    y = pt.lvector("y")
    compare_onnx_and_py([y], pt.extra_ops.to_one_hot(y, 4), [np.array([2, 0, 3])])


@holds_for(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    shape=shapes(min_dims=0, max_dims=3, max_side=4),
    static=st.booleans(),
)
def test_any_array_has_the_unique_elements_that_numpy_finds(data, dtype, shape, static):
    values = data.draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    some_axis = st.none() if 0 in shape or not shape else st.integers(0, len(shape) - 1)
    axis = data.draw(st.none() | some_axis)
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    compare_onnx_and_py([x], pt.unique(x, True, True, True, axis=axis), [values])


@holds_for(data=st.data(), shape=shapes(min_dims=1, max_dims=3, max_side=4), static=st.booleans())
def test_any_array_repeats_as_in_numpy(data, shape, static):
    values = data.draw(hnp.arrays("float32", shape))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    counts = data.draw(hnp.arrays("int64", shape[axis], elements=st.integers(0, 4)))
    x = pt.tensor("x", dtype="float32", shape=shape if static else (None,) * len(shape))
    n = pt.tensor("n", dtype="int64", shape=counts.shape if static else (None,))
    compare_onnx_and_py([x, n], pt.repeat(x, n, axis=axis), [values, counts])
