import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, compare_together, op_types
from tests.properties import holds_for

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
S = np.s_
INDICES = [
    S[0],
    S[-1],
    S[1:3],
    S[-2:],
    S[:-1],
    S[::-1],
    S[::2],
    S[3:0:-2],
    S[-1:-5:-1],
    S[10:20],
    S[-10:2],
    S[3:1],
    S[:, 1],
    S[1:, -1],
    S[1, 1:],
    S[-2, ::-1],
    S[1:3, ::2],
    S[::-1, ::-1],
    S[:, 1:2],
    S[2, 1],
    S[:, :, 1:3],
    S[0, :, -1],
    S[:, 1, 1:],
    S[1:, :, ::-2],
    S[1, 2, 3],
]


def array(shape, dtype):
    numbers = (
        np.arange(np.prod(shape), dtype="int64") % 2
        if dtype == "bool"
        else np.arange(np.prod(shape))
    )
    return numbers.reshape(shape).astype(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_every_form_of_index_selects_as_in_numpy(index, static):
    value = array((4, 3, 4), "float64")
    x = pt.tensor("x", shape=value.shape if static else (None,) * 3)
    program = compare_onnx_and_py([x], x[index], [value])
    assert "Reshape" not in op_types(program)
    assert len(op_types(program)) <= 1 + sum(isinstance(i, int) for i in np.index_exp[index])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_sliced_and_gathered(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    compare_onnx_and_py([x], [x[1:, ::-1], x[-1], x[0, 2]], [array((4, 3), dtype)])


def test_slices_beyond_the_ends_are_clipped():
    x = pt.vector("x")
    results = [x[3:], x[:-3], x[-3:], x[1:-1], x[::-2], x[4:1:-1], x[-1:-9:-1], x[9:2:-3]]
    results += [x[-2::-1], x[-4:-9:-2], x[-3::-3], x[: -(2**62) : -1], x[-(2**62) :: -1]]
    first, *others = ([np.arange(float(size))] for size in [0, 1, 2, 5])
    compare_onnx_and_py([x], results, first, also=others)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_indices_of_every_integer_dtype_come_from_inputs(dtype):
    x, i, j = pt.matrix("x"), pt.scalar("i", dtype=dtype), pt.scalar("j", dtype=dtype)
    compare_onnx_and_py(
        [x, i, j], [x[i], x[i:j], x[i, j:], x[:, j]], [array((4, 3), "float64"), 1, 2]
    )


@pytest.mark.slow
def test_all_three_parts_of_a_slice_come_from_inputs():
    def case(start, stop, step):
        x, i, j, k = pt.vector("x"), *pt.lscalars("i", "j", "k")
        results = [x[i:j:k], x[i::k], x[:j:k], x[::k]]
        return [x, i, j, k], results, [np.arange(5.0), start, stop, step]

    slices = [(0, 5, 1), (-1, -6, -1), (4, 0, -2), (-100, 100, 3), (100, -100, -3), (3, 3, 1)]
    slices += [(5, 1, 1), (-7, -9, -1), (-6, 9, -1)]
    compare_together({bounds: case(*bounds) for bounds in slices})


def test_the_index_is_computed_from_a_shape():
    x = pt.matrix("x")
    n = x.shape[0] // 2
    compare_onnx_and_py([x], [x[n:], x[:n], x[n], x[-n:]], [array((4, 3), "float64")])


@pytest.mark.parametrize("stride", [S[::-1], S[::2, ::-1], S[:, ::-2]], ids=str)
def test_values_of_any_memory_layout_are_accepted(stride):
    x = pt.matrix("x")
    value = array((6, 5), "float64")
    compare_onnx_and_py([x], [x[1:3], x[0], x[1].set(0.0)], [value[stride]])
    compare_onnx_and_py([x], [x[1:3], x[0], x[1].inc(1.0)], [value.T])


@pytest.mark.parametrize("position", [3, -4])
def test_an_integer_out_of_range_fails(position):
    x, i = pt.vector("x"), pt.lscalar("i")
    for result in (x[i], x[i].set(1.0)):
        f = compile_onnx([x, i], result, verify=False)
        assert f(np.arange(3.0), 1) is not None
        with pytest.raises(Exception, match=r"out of|indic"):
            f(np.arange(3.0), position)


def test_a_step_of_zero_fails():
    x, i = pt.vector("x"), pt.lscalar("i")
    f = compile_onnx([x, i], x[::i], verify=False)
    with pytest.raises(Exception, match="step"):
        f(np.arange(3.0), 0)


@pytest.mark.slow
@pytest.mark.parametrize("update", ["set", "inc"])
@pytest.mark.parametrize("static", [True, False])
def test_every_form_of_index_is_updated(static, update):
    value = array((4, 3, 4), "float64")

    def case(index):
        x = pt.tensor("x", shape=value.shape if static else (None,) * 3)
        y = pt.tensor("y", shape=value[index].shape if static else (None,) * value[index].ndim)
        s = pt.scalar("s")
        results = [getattr(x[index], update)(y), getattr(x[index], update)(s)]
        return [x, y, s], results, [value, -array(value[index].shape, "float64"), 0.5]

    compare_together({str(index): case(index) for index in INDICES})


@pytest.mark.each_value
@pytest.mark.parametrize("update", ["set", "inc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_updated(dtype, update):
    x, y = pt.tensor("x", dtype=dtype, shape=(None, 3)), pt.tensor("y", dtype=dtype, shape=(3,))
    results = [getattr(x[index], update)(y) for index in S[1:, 0, ::-1]]
    results = [
        getattr(x[1:], update)(y),
        getattr(x[0], update)(y),
        getattr(x[:, 1:], update)(y[:2]),
        getattr(x[::-2], update)(y),
    ]
    compare_onnx_and_py([x, y], results, [array((4, 3), dtype), array((3,), dtype)])


@pytest.mark.parametrize("update", ["set", "inc"])
def test_the_new_values_are_broadcast_as_in_an_assignment(update):
    def case(shape):
        x, y = pt.matrix("x"), pt.tensor("y", shape=(None,) * len(shape))
        results = [getattr(x[index], update)(y) for index in (S[:4], S[3::-1], S[:4, :])]
        return [x, y], results, [array((5, 4), "float64"), np.full(shape, 7.0)]

    shapes = [(1, 1), (1, 4), (4, 1), (4, 4), (4,), (1,), ()]
    compare_together({shape: case(shape) for shape in shapes})


@pytest.mark.parametrize("update", ["set", "inc"])
@pytest.mark.parametrize(
    ("index", "shape"),
    [(S[0], (5,)), (S[1:2], (3, 1)), (S[1:2], (1, 4)), (S[:, :1], (1, 2))],
    ids=str,
)
def test_new_values_that_do_not_fit_fail(index, shape, update):
    x, y = pt.matrix("x"), pt.tensor("y", shape=(None,) * len(shape))
    f = compile_onnx([x, y], getattr(x[index], update)(y), verify=False)
    with pytest.raises(Exception, match=r"cannot be reshaped|incompatible|invalid"):
        f(np.ones((2, 1)), np.ones(shape))


@pytest.mark.parametrize("update", ["set", "inc"])
def test_updates_of_slices_beyond_the_ends_are_clipped(update):
    x, s = pt.vector("x"), pt.scalar("s")
    results = [
        getattr(x[index], update)(s)
        for index in (S[3:], S[:-3], S[1:-1], S[::-2], S[4:1:-1], S[-1:-9:-1])
    ]
    first, *others = ([np.arange(float(size)), 0.5] for size in [0, 1, 2, 5])
    compare_onnx_and_py([x, s], results, first, also=others)


@pytest.mark.parametrize("update", ["set", "inc"])
def test_updates_at_indices_from_inputs(update):
    x, s = pt.matrix("x"), pt.scalar("s")
    i, j, k = pt.lscalars("i", "j", "k")
    indices = (S[i], S[i:j:k], S[i, j:], S[:, i:j:k], S[:, i], S[i:, i], S[-1, i])
    results = [getattr(x[index], update)(s) for index in indices]
    first, *others = (
        [array((5, 5), "float64"), 0.5, start, stop, step]
        for start, stop, step in [(1, 4, 1), (-1, -9, -2), (4, 9, 1), (2, 2, 1)]
    )
    compare_onnx_and_py([x, s, i, j, k], results, first, also=others)


@pytest.mark.slow
@pytest.mark.parametrize("static", [True, False])
def test_gradient_of_every_form_of_index(static):
    value = array((4, 3, 4), "float64")

    def case(index):
        x = pt.tensor("x", shape=value.shape if static else (None,) * 3)
        return [x], pt.grad((x[index] ** 2).sum(), x), [value]

    compare_together({str(index): case(index) for index in INDICES})


def test_a_row_is_set_by_one_scatter():
    x, y = pt.matrix("x", shape=(None, 3)), pt.vector("y", shape=(3,))
    program = compare_onnx_and_py([x, y], x[1].set(y), [np.ones((2, 3)), np.zeros(3)])
    assert op_types(program) == ["Unsqueeze", "ScatterND"]


def test_a_slice_of_known_bounds_is_set_by_a_concatenation():
    x, y = pt.matrix("x", shape=(None, 5)), pt.matrix("y", shape=(None, 2))
    program = compare_onnx_and_py(
        [x, y],
        x[:, 1:3].set(y),
        [np.ones((2, 5)), np.zeros((2, 2))],
        dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
    )
    assert op_types(program) == ["Slice", "Slice", "Concat"]


@pytest.mark.parametrize("update", ["set", "inc"])
def test_a_column_is_updated_by_a_concatenation(update):
    def case(shape, column):
        x = pt.tensor("x", shape=(None, 5, None))
        y = pt.tensor("y", shape=tuple(1 if size == 1 else None for size in shape))
        values = [array((2, 5, 4), "float64"), array(shape, "float64")]
        return [x, y], getattr(x[:, column], update)(y), values

    shapes = [(), (4,), (1,), (2, 4), (1, 4), (2, 1)]
    cases = {(s, column): case(s, column) for s in shapes for column in (0, 2, -1)}
    program = compare_together(cases)
    assert "ScatterND" not in op_types(program)
    makers = [output.producer().op_type for output in program.model.graph.outputs]
    assert makers == ["Concat"] * len(cases)


def test_the_gradient_of_a_column_is_padding():
    x = pt.matrix("x", shape=(None, 5))
    program = compare_onnx_and_py([x], pt.grad(pt.exp(x[:, 1]).sum(), x), [np.ones((2, 5))])
    assert op_types(program) == ["Gather", "Exp", "Unsqueeze", "Pad"]


def test_a_column_that_does_not_exist_is_refused():
    x = pt.matrix("x", shape=(None, 5))
    f = pytensor.function([x], x[:, 5].set(0.0), mode="ONNX")
    with pytest.raises(IndexError, match=r"^index 5 is out of range for an axis of size 5\n"):
        f(np.ones((2, 5)))


def test_the_gradient_of_a_slice_of_known_bounds_is_padding():
    x = pt.matrix("x", shape=(None, 5))
    program = compare_onnx_and_py([x], pt.grad(pt.exp(x[:, 1:3]).sum(), x), [np.ones((2, 5))])
    assert op_types(program) == ["Slice", "Exp", "Pad"]


@st.composite
def slices_of(draw, size):
    part = st.none() | st.integers(-size - 2, size + 2)
    if draw(st.integers(0, 3)) == 0 and size:
        return draw(st.integers(-size, size - 1))
    return slice(draw(part), draw(part), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def arrays_and_indices(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    depth = draw(st.integers(1, len(shape)))
    return tuple(shape), tuple(draw(slices_of(size)) for size in shape[:depth])


@holds_for(drawn=arrays_and_indices(), static=st.booleans(), symbolic=st.booleans())
def test_any_basic_index(drawn, static, symbolic):
    shape, index = drawn
    x, s = pt.tensor("x", shape=shape if static else (None,) * len(shape)), pt.scalar("s")
    inputs, values = [x, s], [array(shape, "float64"), 0.5]

    def variable(number):
        if number is None or not symbolic:
            return number
        inputs.append(pt.lscalar(f"i{len(inputs)}"))
        values.append(number)
        return inputs[-1]

    index = tuple(
        slice(*map(variable, (i.start, i.stop, i.step))) if isinstance(i, slice) else variable(i)
        for i in index
    )
    compare_onnx_and_py(inputs, [x[index], x[index].set(s), x[index].inc(s)], values)


def test_updates_of_an_exported_function_are_those_of_the_function():
    state = pytensor.shared(np.zeros((3, 2)), name="state")
    i, v = pt.lscalar("i"), pt.vector("v")
    f = pytensor.function([i, v], state.sum(), updates={state: state[i].set(v)}, mode="ONNX")
    f(1, [1.0, 2.0])
    np.testing.assert_array_equal(state.get_value(), [[0, 0], [1, 2], [0, 0]])


def test_slices_that_differ_in_their_first_element_have_sizes_of_their_own():
    x = pt.vector("x")
    first, whole = x[0:-7:-3], x[:-7:-3]
    value = np.arange(10.0)
    program = compare_onnx_and_py([x], [first, whole], [value])
    first_dim, whole_dim = (output.shape[0] for output in program.model.graph.outputs)
    assert first_dim != whole_dim
    with pytest.raises(ValueError, match="cannot be broadcast together"):
        pytensor.function([x], first + whole, mode="ONNX")(value)


def test_the_last_part_of_a_concatenation_is_reversed_without_it():
    x, y = pt.tensor("x", shape=(2,)), pt.vector("y")
    joined = pt.join(0, x, y)
    for size in (0, 3):
        values = [np.array([8.0, 9.0]), np.arange(float(size))]
        program = compare_onnx_and_py([x, y], [joined, joined[:1:-1], joined[:0:-1]], values)
    first, second = (n for n in program.model.graph if n.op_type == "Slice")
    assert {first.inputs[0].name, second.inputs[0].name} == {
        "y",
        program.model.graph.outputs[0].name,
    }
