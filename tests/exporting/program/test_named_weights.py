"""Weights are named, replaced, left out of files and put back."""

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, PyTensorONNXError, export_onnx, load, nn

RNG = np.random.default_rng(5)


def shared(name, *shape, dtype="float64"):
    return pytensor.shared(RNG.normal(size=shape).astype(dtype), name=name)


def like(weights, seed=1):
    rng = np.random.default_rng(seed)
    return {k: rng.normal(size=v.shape).astype(v.dtype) for k, v in weights.items()}


def network(zero_bias=False):
    """Return inputs, a graph and its weights; two of the weights have one name."""
    x = pt.matrix("x", shape=(None, 3))
    weights = shared("W", 3, 4), shared("b", 4), shared("W", 4, 2)
    if zero_bias:
        weights[1].set_value(np.zeros(4))
    w, b, v = weights
    return x, pt.tanh(x @ w + b) @ v, weights


@pytest.mark.parametrize("zero_bias", [False, True])
def test_replaced_weights_are_those_of_another_export(zero_bias):
    x, y, variables = network(zero_bias)
    program = export_onnx([x], y)
    assert list(program.weights) == ["W", "b", "W_1"]
    arrays = like(program.weights)
    new = program.replace_weights(arrays)
    for variable, array in zip(variables, arrays.values(), strict=True):
        variable.set_value(array)
    expected = export_onnx([x], y)
    given = RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(new(given), expected(given))
    assert str(new.verification).startswith("checked, loaded and equal to PyTensor")
    assert not np.array_equal(program(given), new(given))


def test_constants_computed_from_weights_follow():
    x = pt.tensor("x", shape=(None, 2, 6, 6), dtype="float32")
    kernel, scale = shared("kernel", 3, 2, 3, 3, dtype="float32"), shared("scale", dtype="float32")
    y = nn.conv2d(x, kernel * pt.exp(scale), filter_flip=False)
    program = export_onnx([x], y)
    assert "scale" not in program.model.graph.initializers
    given = RNG.normal(size=(1, 2, 6, 6)).astype("float32")
    new = program.replace_weights({"scale": program.weights["scale"] + np.float32(np.log(2))})
    np.testing.assert_allclose(new(given), 2 * program(given), rtol=1e-5)


def test_narrow_programs_take_the_digits_of_their_own_and_of_the_written_dtype():
    x, w = pt.vector("x"), shared("w", 3)
    program = export_onnx([x], x * w, precision="float32")
    assert program.weights["w"].dtype == "float32"
    new = program.replace_weights({"w": [0.1, 0.2, 0.3]})
    np.testing.assert_array_equal(new.weights["w"], np.float32([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(new(np.ones(3, "float32")), np.float32([0.1, 0.2, 0.3]))


def test_state_metadata_and_names_of_axes_stay():
    x, w, n = pt.matrix("x"), shared("w", 3), pytensor.shared(0, name="n")
    program = export_onnx([x], (x * w)[1:], updates={n: n + 1})
    program.model.metadata_props["own"] = "text"
    program.model.graph.outputs[0].shape = ir.Shape(["rows", 3])
    program(np.ones((2, 3)))
    new = program.replace_weights({"w": np.ones(3)})
    assert new.state["n"] == 1
    assert new.model.metadata_props["own"] == "text"
    assert new.model.graph.outputs[0].shape[0] == "rows"
    new(np.ones((2, 3)))
    assert (new.state["n"], program.state["n"]) == (2, 1)


def test_selected_programs_replace_their_weights():
    x, y = pt.vector("x"), pt.vector("y")
    w, v = shared("w", 3), shared("v", 3)
    program = export_onnx(
        [x, y], {"first": x * w, "second": y * v}, example_inputs=[np.ones(3)] * 2
    )
    selected = program.select("second")
    assert list(selected.weights) == ["v"]
    new = selected.replace_weights({"v": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(new(np.ones(3)), [1, 2, 3])


def test_all_problems_of_weights_are_named():
    x, y, _ = network()
    program = export_onnx([x], y)
    with pytest.raises(ArgumentError) as error:
        program.replace_weights({"w": 1.0, "b": np.ones(3), "W": np.ones((3, 4), complex)})
    assert str(error.value) == (
        "there is no weight 'w': choose of W, b, W_1; b is of shape [4], and was given [3]; "
        "W is of dtype float64, and was given complex128"
    )


def test_digits_are_not_lost():
    x, w = pt.vector("x", dtype="float32"), shared("w", 2, dtype="float32")
    with pytest.raises(ArgumentError, match=r"w is of float32, which does not hold 0\.1"):
        export_onnx([x], x * w).replace_weights({"w": [0.1, 0.5]})


@pytest.mark.parametrize("zero_bias", [False, True])
def test_files_without_weights_take_them_as_inputs(tmp_path, zero_bias):
    x, y, _ = network(zero_bias)
    program = export_onnx([x], y)
    path = program.save(tmp_path / "bare.onnx", include_initializers=False)
    bare = onnx.load(path)
    onnx.checker.check_model(bare, full_check=True)
    stored = {tensor.name for tensor in bare.graph.initializer}
    inputs = [value.name for value in bare.graph.input]
    assert stored.isdisjoint(program.weights)
    assert inputs == ["x", *(k for k in program.weights if k != "b" or not zero_bias)]
    loaded = load(path, weights=program.weights)
    given = RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(loaded(given), program(given))
    assert [value.name for value in loaded.inputs] == ["x"]


def test_transposed_weights_are_put_back(tmp_path):
    x, w = pt.matrix("x", shape=(None, 3)), shared("w", 4, 3)
    program = export_onnx([x], x @ w.T)
    path = program.save(tmp_path / "bare.onnx", include_initializers=False)
    loaded = load(path, weights={"w": w.get_value()})
    given = RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(loaded(given), program(given))
    assert len(onnx.load(path).graph.input) == 2


def test_files_refuse_missing_unknown_and_other_weights(tmp_path):
    x, y, _ = network(zero_bias=True)
    program = export_onnx([x], y)
    path = program.save(tmp_path / "bare.onnx", include_initializers=False)
    other = {**program.weights, "b": np.ones(4), "c": np.ones(2)}
    del other["W"]
    with pytest.raises(ArgumentError) as error:
        load(path, weights=other)
    assert [
        problem in str(error.value)
        for problem in (
            "b has other values than at export: replace_weights and save the program again",
            "the file takes no weight 'c'",
            "the weight W: float64[3, 4] is not in the file: give weights={name: array}",
        )
    ] == [True] * 3
    with pytest.raises(ArgumentError, match="W_1: float64"):
        load(path)


def test_loaded_programs_refuse_new_weights(tmp_path):
    x, y, _ = network()
    loaded = load(export_onnx([x], y).save(tmp_path / "model.onnx"))
    assert loaded.weights == {}
    with pytest.raises(PyTensorONNXError, match="has no PyTensor graph"):
        loaded.replace_weights({"W": np.ones((3, 4))})


def test_weights_of_loops_and_complex_weights_are_replaced(tmp_path):
    h, w = pt.vector("h", shape=(2,)), shared("w", 2, 2)
    states = pytensor.scan(
        lambda h: pt.tanh(h @ w), outputs_info=[h], n_steps=3, return_updates=False
    )
    z, c = pt.zscalar("z"), pytensor.shared(np.array([1 + 1j, 2.0]), name="c")
    program = export_onnx([h, z], [states[-1], z * c])
    new = program.replace_weights({"w": np.eye(2), "c": 2 * program.weights["c"]})
    last, product = new([1.0, 0.5], 1j)
    np.testing.assert_allclose(last, np.tanh(np.tanh(np.tanh([1.0, 0.5]))), rtol=1e-12)
    np.testing.assert_array_equal(product, [-2 + 2j, 4j])
    bare = new.save(tmp_path / "bare.onnx", include_initializers=False)
    np.testing.assert_array_equal(load(bare, weights=new.weights)([1.0, 0.5], 1j)[0], last)
