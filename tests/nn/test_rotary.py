"""Rotary embedding as its definition in NumPy has it."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn.attending import rotary_embedding, rotary_tables
from tests.conftest import compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)
B, H, S, D = 2, 3, 4, 6


def define(x, angles, interleaved):
    """Multiply pairs as complex numbers by a number of length one."""
    pairs = angles.shape[-1]
    first = np.arange(pairs) * 2 if interleaved else np.arange(pairs)
    second = first + (1 if interleaved else pairs)
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles[:, None])
    result = x.copy()
    result[..., first], result[..., second] = turned.real, turned.imag
    return result


def tables(angles, dtype):
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairs", [D // 2, 2])
@pytest.mark.parametrize(("dtype", "opset"), [("float64", 21), ("float32", 21), ("float32", 23)])
def test_pairs_are_turned_by_the_angle_at_their_position(dtype, opset, pairs, interleaved):
    x = RNG.normal(size=(B, H, S, D)).astype(dtype)
    angles = RNG.normal(size=(9, pairs))
    ids = RNG.integers(0, 9, size=(B, S))
    symbol = pt.tensor("x", dtype=dtype, shape=(None, H, None, D))
    positions = pt.lmatrix("positions")
    cos, sin = (pt.tensor(n, dtype=dtype, shape=(None, pairs)) for n in ("cos", "sin"))
    result = rotary_embedding(symbol, cos, sin, positions, interleaved=interleaved)
    program = compare_onnx_and_py(
        [symbol, cos, sin, positions],
        result,
        [x, *tables(angles, dtype), ids],
        rtol=1e-5 if dtype == "float32" else 1e-12,
        atol=1e-6 if dtype == "float32" else 1e-14,
        opset_version=opset,
    )
    (found,) = program(x, *tables(angles, dtype), ids)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, define(x, angles[ids], interleaved), rtol=0, atol=tolerance)
    assert (op_types(program) == ["RotaryEmbedding"]) == (opset == 23)


@pytest.mark.each_value
@pytest.mark.parametrize("opset", [21, 23, 26])
@pytest.mark.parametrize("sizes", [(1, None), (None, 1), (1, 1)])
@pytest.mark.parametrize("own", [(None, None), (1, None), (None, 1)])
def test_positions_of_size_one_serve_all(own, sizes, opset):
    batch, length = (size or n for size, n in zip(own, (B, S), strict=True))
    symbol = pt.tensor("x", dtype="float32", shape=(own[0], H, own[1], D))
    positions = pt.tensor("positions", dtype="int64", shape=sizes)
    ids = RNG.integers(0, 9, size=[size or n for size, n in zip(sizes, (B, S), strict=True)])
    result = rotary_embedding(symbol, *tables(RNG.normal(size=(9, D // 2)), "float32"), positions)
    x = RNG.normal(size=(batch, H, length, D)).astype("float32")
    program = compare_onnx_and_py(
        [symbol, positions], result, [x, ids], atol=1e-6, opset_version=opset
    )
    if opset > 21 and own == (None, None):
        assert "RotaryEmbedding" in op_types(program)


@pytest.mark.parametrize("batched", [False, True])
def test_tables_may_be_given_for_each_element(batched):
    x, angles = RNG.normal(size=(B, H, S, D)), RNG.normal(size=(B, S, D // 2))
    symbol = pt.tensor("x", shape=(None, None, None, D))
    given = tables(angles if batched else angles[0], "float64")
    program = export_onnx(symbol_result := rotary_embedding(symbol, *given), verify=True)
    assert symbol_result.type.ndim == 4
    expected = define(x, angles if batched else angles[:1], False)
    np.testing.assert_allclose(program(x), expected, rtol=1e-12, atol=1e-14)


def test_tables_are_the_angles_of_positions():
    angles = np.arange(5)[:, None] / 100.0 ** (np.array([0, 2, 4]) / 6)
    for table, right in zip(
        rotary_tables(5, 6, base=100.0, dtype="float32"), tables(angles, "f"), strict=True
    ):
        assert table.dtype == np.float32
        np.testing.assert_allclose(table, right, rtol=1e-6, atol=1e-7)
    assert rotary_tables(5, 6)[0].dtype == np.float64


def test_products_depend_on_the_distance_of_positions():
    cos, sin = rotary_tables(10, D)
    q, k = RNG.normal(size=(2, 1, 1, 1, D))
    x = pt.tensor("x", shape=(1, 1, 1, D))
    positions = pt.lmatrix("positions")
    turn = export_onnx([x, positions], rotary_embedding(x, cos, sin, positions))

    def product(i, j):
        return (turn(q, [[i]]) * turn(k, [[j]])).sum()

    assert product(2, 5) == pytest.approx(product(6, 9), rel=1e-12)
    assert product(2, 5) != pytest.approx(product(2, 6), rel=1e-2)


def test_short_form_equals_one_written_by_hand():
    x = pt.tensor("x", dtype="float32", shape=(None, H, None, D))
    positions = pt.lmatrix("positions")
    cos, sin = rotary_tables(8, D, dtype="float32")
    program = export_onnx([x, positions], rotary_embedding(x, cos, sin, positions))
    turn = ["Split", "Mul", "Mul", "Mul", "Mul", "Sub", "Add", "Concat"]
    assert sorted(op_types(program)) == sorted([*2 * ["Gather", "Unsqueeze"], *turn])


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradients_are_those_of_the_definition(interleaved):
    x, cos = pt.tensor("x", shape=(1, None, None, 4)), pt.tensor("cos", shape=(None, 2))
    sin = pt.tensor("sin", shape=(None, 2))
    result = rotary_embedding(x, cos, sin, interleaved=interleaved)
    weight = RNG.normal(size=(1, 2, 3, 4))
    gradients = pt.grad((result * weight).sum(), [x, cos, sin])
    values = [RNG.normal(size=(1, 2, 3, 4)), *RNG.normal(size=(2, 3, 2))]
    program = compare_onnx_and_py([x, cos, sin], gradients, values)
    forward = export_onnx([x, cos, sin], (result * weight).sum(), verify=False)
    directions = [RNG.normal(size=v.shape) for v in values]
    for i, found in enumerate(program(*values)):
        ends = [
            [v + step * directions[j] * (i == j) for j, v in enumerate(values)] for step in (1, -1)
        ]
        # The result is linear in each input, so that a difference is exact for any step.
        slope = (forward(*ends[0]) - forward(*ends[1])) / 2
        assert (found * directions[i]).sum() == pytest.approx(slope, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (((2, 3, 4), (4, 2), (4, 2)), {}, ValueError, "rank 4"),
        (((2, 3, 4, 4), (4, 3), (4, 3)), {}, ValueError, "at most half"),
        (((2, 3, 4, 4), (2, 4, 2), (2, 4, 2)), {"positions": [[0]]}, ValueError, "rank 2"),
        (((2, 3, 4, 4), (4, 2), (4, 2)), {"positions": [[0.0]]}, TypeError, "integers"),
    ],
)
def test_operands_that_do_not_fit_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        rotary_embedding(*(pt.tensor(shape=shape) for shape in arguments), **options)


def test_tables_of_all_positions_are_expanded_to_a_batch_of_unknown_size():
    x = pt.tensor("x", shape=(None, 2, None, 4), dtype="float32")
    cos, sin = rotary_tables(8, 4, dtype="float32")
    length = x.shape[2]
    y = rotary_embedding(x, pt.as_tensor(cos)[:length], pt.as_tensor(sin)[:length])
    program = export_onnx([x], y + x, opset_version=23)
    assert "RotaryEmbedding" in op_types(program)
    assert str(program.model.graph.outputs[0].shape) == str(program.model.graph.inputs[0].shape)
    rng = np.random.default_rng(0)
    for batch, rows in ((3, 5), (1, 1), (0, 5), (2, 0)):
        value = rng.normal(size=(batch, 2, rows, 4)).astype("float32")
        program.verify([value])
