import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, special_values
from tests.properties import holds_for

COMPUTED = ("constant", "edge", "linear_ramp", "maximum", "minimum", "mean")
GATHERED = ("wrap", "symmetric", "reflect")
MODES = (*COMPUTED, *GATHERED)
WIDTHS = ((1, 2), (0, 3), (2, 0))


@pytest.mark.each_value
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_modes(mode, static):
    values = np.random.default_rng(1).normal(size=(3, 4, 5))
    x = pt.tensor("x", shape=values.shape if static else (None,) * 3)
    compare_onnx_and_py([x], pt.pad(x, WIDTHS, mode), [values])


def test_wrapping_before_onnx_has_it():
    x = pt.tensor("x", shape=(3, 4))
    padded = pt.pad(x, WIDTHS[:2], "wrap")
    program = compare_onnx_and_py([x], padded, [np.arange(12.0).reshape(3, 4)], opset_version=18)
    assert op_types(program) == ["Gather", "Gather"]


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_and_constants_of_every_dtype(dtype):
    values = np.resize(special_values(dtype)[:6], (3, 4))
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [pt.pad(x, 2, mode) for mode in ("constant", "edge", *GATHERED)]
    compare_onnx_and_py([x], outputs, [values])


@pytest.mark.each_value
@pytest.mark.parametrize("mode", ["linear_ramp", "maximum", "minimum", "mean"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
def test_computed_values_of_some_dtypes(mode, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    compare_onnx_and_py([x], pt.pad(x, 2, mode), [np.array([0, 1, 1, 7, 3]).astype(dtype)])


@pytest.mark.each_value
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(2, 2), (1, 2), (2,), ()])
def test_widths_that_the_graph_computes(mode, shape):
    x, widths = pt.matrix("x"), pt.tensor("w", dtype="int32", shape=shape)
    values = [np.arange(12.0).reshape(3, 4), np.resize(np.array([1, 2, 3, 0], "int32"), shape)]
    compare_onnx_and_py([x, widths], pt.pad(x, widths, mode), values)


@pytest.mark.each_value
@pytest.mark.parametrize("mode", GATHERED)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_elements_may_be_too_few_for_one_turn(mode, size, static):
    x = pt.tensor("x", dtype="int16", shape=(size if static else None,))
    outputs = [pt.pad(x, widths, mode) for widths in ((1, 1), (3, 7), (9, 0), (size, size))]
    compare_onnx_and_py([x], outputs, [np.arange(size, dtype="int16")])


@pytest.mark.parametrize("mode", MODES)
def test_no_width_leaves_the_array(mode):
    x = pt.matrix("x")
    compare_onnx_and_py([x], pt.pad(x, 0, mode), [np.ones((2, 3))])


@pytest.mark.parametrize("mode", ["constant", "wrap", "symmetric", "mean"])
def test_an_empty_array_is_padded_along_its_other_axes(mode):
    x = pt.matrix("x")
    compare_onnx_and_py([x], pt.pad(x, ((0, 0), (1, 2)), mode), [np.ones((0, 3))])


def test_an_empty_array_is_padded_with_a_constant():
    x = pt.matrix("x")
    compare_onnx_and_py([x], pt.pad(x, 2, constant_values=3), [np.ones((0, 3))])


@pytest.mark.parametrize("mode", ["edge", "maximum", "symmetric", "wrap"])
def test_an_empty_axis_has_nothing_to_pad_with(mode):
    x = pt.vector("x")
    program = compile_onnx([x], pt.pad(x, 2, mode), verify=False)
    with pytest.raises(Exception, match=r"(?i)zero-size|dimension|bounds|index"):
        program(np.ones(0))


@pytest.mark.each_value
@pytest.mark.parametrize("constants", [3, -1.5, (1, 2), ((1, 2), (3, 4)), ((1,), (2,))], ids=str)
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_constant_values(constants, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    padded = pt.pad(x, ((1, 2), (0, 3)), constant_values=constants)
    compare_onnx_and_py([x], padded, [np.ones((2, 3), dtype)])


@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(), (2,), (2, 2)])
@pytest.mark.parametrize("mode", ["constant", "linear_ramp"])
def test_values_that_the_graph_computes(shape, mode):
    x, constants = pt.matrix("x"), pt.tensor("c", shape=shape)
    option = {"constant_values" if mode == "constant" else "end_values": constants}
    padded = pt.pad(x, ((1, 2), (0, 3)), mode, **option)
    values = [np.ones((2, 3)), np.resize(np.array([1.5, np.nan, -2, 4]), shape)]
    compare_onnx_and_py([x, constants], padded, values)


@pytest.mark.parametrize("ends", [0, 5, (5, -4), ((1.5, 2), (-3, 4))], ids=str)
def test_end_values(ends):
    x = pt.matrix("x")
    values = np.random.default_rng(2).normal(size=(2, 3))
    compare_onnx_and_py([x], pt.pad(x, ((3, 2), (1, 4)), "linear_ramp", end_values=ends), [values])


@pytest.mark.each_value
@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean"])
@pytest.mark.parametrize("length", [1, 2, 9, (1, 3), ((1, 2), (3, 1))], ids=str)
def test_lengths_of_statistics(mode, length):
    x = pt.matrix("x")
    values = np.random.default_rng(3).normal(size=(3, 4))
    compare_onnx_and_py([x], pt.pad(x, 2, mode, stat_length=length), [values])


@pytest.mark.slow
def test_a_length_that_the_graph_computes():
    x, n = pt.matrix("x"), pt.lscalar("n")
    values = np.random.default_rng(4).normal(size=(3, 4))
    outputs = [pt.pad(x, 2, mode, stat_length=n) for mode in ("maximum", "mean")]
    compare_onnx_and_py([x, n], outputs, [values, 2])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean"])
def test_nan_and_infinity_are_kept(mode):
    x = pt.matrix("x")
    values = np.array([[1, np.nan, 2], [3, 4, -np.inf], [5, 6, 7]])
    compare_onnx_and_py([x], pt.pad(x, 1, mode), [values])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.few(2)
def test_gradient(mode):
    x = pt.matrix("x")
    gradient = pytensor.grad((pt.pad(x, ((1, 2), (0, 1)), mode) ** 2).sum(), x)
    compare_onnx_and_py([x], gradient, [np.random.default_rng(5).normal(size=(3, 4))])


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect"])
def test_a_mode_that_onnx_has_is_one_operator(mode):
    x = pt.tensor("x", shape=(3, 4))
    program = compare_onnx_and_py([x], pt.pad(x, ((1, 2), (0, 3)), mode), [np.ones((3, 4))])
    assert op_types(program) == ["Pad"]


def test_symmetric_padding_of_a_static_array_gathers_constant_positions():
    x = pt.tensor("x", shape=(3, 4))
    program = compare_onnx_and_py([x], pt.pad(x, ((1, 2), (0, 3)), "symmetric"), [np.ones((3, 4))])
    assert op_types(program) == ["Gather", "Gather"]


@pytest.mark.slow
@holds_for(
    data=st.data(),
    mode=st.sampled_from(MODES),
    shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
    static=st.booleans(),
    dtype=st.sampled_from(["bool", "int8", "uint32", "int64", "float32", "float64"]),
)
def test_any_array_is_padded_as_in_numpy(data, mode, shape, static, dtype):
    values = data.draw(hnp.arrays(dtype, shape, elements=st.integers(0, 1)))
    widths = data.draw(hnp.arrays("int64", (len(shape), 2), elements=st.integers(0, 5)))
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    w = pt.tensor("w", dtype="int64", shape=widths.shape)
    padded = pt.pad(x, widths if static else w, mode)
    compare_onnx_and_py([x, w], padded, [values, widths])


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_images_of_a_dynamic_batch_are_reflected_by_one_operator(batch):
    x = pt.tensor("x", shape=(None, 3, 4))
    value = np.arange(12.0 * batch).reshape(batch, 3, 4)
    program = compare_onnx_and_py([x], pt.pad(x, ((0, 0), (1, 2), (0, 3)), "reflect"), [value])
    assert op_types(program) == ["Pad"]


@pytest.mark.slow
def test_gradient_of_a_constant_padding_is_a_slice():
    x = pt.tensor("x", shape=(None, 3))
    gradient = pytensor.grad((pt.pad(x, ((1, 2), (0, 3)), constant_values=2.0) ** 3).sum(), x)
    value = np.arange(6.0).reshape(2, 3)
    program = compare_onnx_and_py([x], gradient, [value])
    assert op_types(program).count("Slice") == 1
    assert not {"ScatterND", "Concat"} & set(op_types(program))
