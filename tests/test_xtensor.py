"""Graphs of `pytensor.xtensor`: values, and the names of dimensions in the model."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
import pytest
import xarray as xr
from pytensor.graph.op import Op
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.xtensor.linalg import cholesky, solve
from pytensor.xtensor.signal import convolve1d
from pytensor.xtensor.type import XTensorVariable
from pytensor.xtensor.vectorization import XBlockwise

from pytensor_onnx import (
    InputError,
    ONNXProgram,
    compile_onnx,
    export_function_onnx,
    export_onnx,
    export_value_and_grad,
)
from pytensor_onnx.operators.dims import dims_of
from tests.conftest import PY, assert_same, compare_onnx_and_py, op_types

SIZES = {"city": 3, "day": 4, "kind": 2}
RNG = np.random.default_rng(5)
Graph = Callable[[XTensorVariable, XTensorVariable, XTensorVariable], XTensorVariable]


def named(
    name: str, dims: list[str], static: bool = False, dtype: str = "float64"
) -> XTensorVariable:
    shape = [SIZES[dim] for dim in dims] if static else None
    return px.xtensor(name, dims=dims, dtype=dtype, shape=shape)


def values_of(*variables: XTensorVariable) -> list[np.ndarray]:
    return [
        (RNG.normal(size=[SIZES[dim] for dim in v.type.dims]) * 3).astype(v.type.dtype)
        for v in variables
    ]


def input_dims(program: ONNXProgram) -> list[tuple]:
    return [dims_of(value) for value in program.model.graph.inputs]


def output_dims(program: ONNXProgram) -> list[tuple]:
    return [dims_of(value) for value in program.model.graph.outputs]


def positions(*indices: int) -> XTensorVariable:
    return px.as_xtensor(np.array(indices), dims=("kind",))


GRAPHS: dict[str, Graph] = {
    "add by name": lambda x, y, z: x + y,
    "add crosswise": lambda x, y, z: z * y - x,
    "add scalar": lambda x, y, z: 2 - x**2,
    "compare": lambda x, y, z: (x > y) & (y <= 0),
    "where": lambda x, y, z: px.where(x > y, x, y),
    "math": lambda x, y, z: px.math.exp(-px.math.abs(x)) + px.math.tanh(y),
    "cast": lambda x, y, z: x.astype("int64") // 2,
    "minimum": lambda x, y, z: px.math.minimum(x, y),
    "clip": lambda x, y, z: x.clip(-1, 1),
    "round": lambda x, y, z: px.math.round(x),
    "sum": lambda x, y, z: x.sum("day"),
    "sum of all": lambda x, y, z: (x * y).sum(),
    "sum of all but": lambda x, y, z: (x + z).sum(["city", "kind"]),
    "mean": lambda x, y, z: x.mean("city"),
    "standard deviation": lambda x, y, z: x.std("day"),
    "variance": lambda x, y, z: x.var(["day", "city"], ddof=1),
    "maximum": lambda x, y, z: x.max("city") - x.min("city"),
    "product": lambda x, y, z: x.prod("day"),
    "any": lambda x, y, z: (x > 1).any("day"),
    "all": lambda x, y, z: (x > -2).all(),
    "cumulative sum": lambda x, y, z: x.cumsum("day"),
    "cumulative product": lambda x, y, z: x.cumprod("city"),
    "softmax": lambda x, y, z: px.math.softmax(x, dim="day"),
    "dot": lambda x, y, z: x.dot(y),
    "dot with an outer dimension": lambda x, y, z: x.dot(z),
    "dot over all": lambda x, y, z: x.dot(x, dim=...),
    "dot batched": lambda x, y, z: x.dot(x * 2, dim="day"),
    "dot outer": lambda x, y, z: y.dot(z, dim=()),
    "einsum-like": lambda x, y, z: (x * y * z).sum("day"),
    "transpose": lambda x, y, z: x.transpose("day", "city"),
    "transpose with an ellipsis": lambda x, y, z: (x + z).transpose("kind", ...),
    "stack": lambda x, y, z: (x + z).stack({"flat": ["kind", "city"]}),
    "unstack": lambda x, y, z: (x * 2).stack({"flat": ["city", "day"]}).unstack({"flat": x.sizes}),
    "concat": lambda x, y, z: px.concat([x, y, x + 1], dim="city"),
    "concat along a new dimension": lambda x, y, z: px.concat([x, x * 2], dim="copy"),
    "expand": lambda x, y, z: x.expand_dims("copy"),
    "expand and repeat": lambda x, y, z: x.expand_dims({"copy": 3}),
    "squeeze": lambda x, y, z: x.isel(city=slice(1, 2)).squeeze("city"),
    "broadcast": lambda x, y, z: y.broadcast_like(x + z),
    "ones like": lambda x, y, z: px.ones_like(x) + y,
    "full like": lambda x, y, z: px.full_like(x, 7),
    "rename": lambda x, y, z: x.rename(day="week") + z.rename(kind="sort"),
    "rename to contract": lambda x, y, z: x.rename(city="other").dot(x, dim="day"),
    "slice": lambda x, y, z: x.isel(day=slice(1, None)),
    "slice backwards": lambda x, y, z: x.isel(day=slice(None, None, -1), city=slice(None, 2)),
    "head, tail and thin": lambda x, y, z: x.head(day=3).tail(city=2).thin(day=2),
    "integer": lambda x, y, z: x.isel(city=-1, day=0),
    "array of integers": lambda x, y, z: x.isel(day=[3, 0, 3]),
    "array by name": lambda x, y, z: x.isel(day=positions(2, 0)) + z,
    "arrays pointwise": lambda x, y, z: x.isel(day=positions(2, 0), city=positions(-1, 1)),
    "mask": lambda x, y, z: x[{"city": np.array([True, False, True])}],
    "symbolic mask": lambda x, y, z: x.isel(day=y > 0),
    "positional": lambda x, y, z: x[1:, ::2],
    "difference": lambda x, y, z: x.diff("day"),
    "set": lambda x, y, z: x.isel(day=slice(0, 2)).set(0.5),
    "set by name": lambda x, y, z: x[{"city": 1}].set(y),
    "increment twice": lambda x, y, z: x[{"day": positions(1, 1)}].inc(z),
    "normalise": lambda x, y, z: (x - x.mean("day")) / (x.std("day") + 1),
    "log sum": lambda x, y, z: px.math.logsumexp(x, dim=["city"]),
    "sizes": lambda x, y, z: x / x.sizes["day"],
}


@pytest.mark.few(20)
@pytest.mark.each_value
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_those_of_pytensor(name: str, static: bool) -> None:
    x = named("x", ["city", "day"], static)
    y, z = named("y", ["day"], static), named("z", ["city", "kind"], static)
    result = GRAPHS[name](x, y, z)
    assert isinstance(result, XTensorVariable)
    compare_onnx_and_py([x, y, z], result, values_of(x, y, z), rtol=1e-11)


def batched(core: Op, inputs: list[tuple[str, ...]], *results: tuple[str, ...]) -> XBlockwise:
    return XBlockwise(core, core_dims=(tuple(inputs), results))


def positive(x: XTensorVariable) -> XTensorVariable:
    square = x.dot(x.rename(city="other"), dim="day")
    unit = px.as_xtensor(np.eye(3), dims=("city", "other"))
    return square + unit


CORE_OPS: dict[str, Graph] = {
    "convolution, full": lambda x, y, z: convolve1d(x + z, y.rename(day="k"), dims=("city", "k")),
    "convolution, valid": lambda x, y, z: convolve1d(
        x, z.rename(city="k"), mode="valid", dims=("day", "k")
    ),
    "convolution, same": lambda x, y, z: convolve1d(
        x.transpose("day", "city"), y.rename(day="k"), mode="same", dims=("city", "k")
    ),
    "Cholesky": lambda x, y, z: cholesky(
        positive(x) * (z**2 + 1).sum("city"), dims=["city", "other"]
    ),
    "solve": lambda x, y, z: solve(positive(x), z + y, dims=["city", "other"]),
    "least squares": lambda x, y, z: batched(
        Solve(b_ndim=1), [("city", "other"), ("city",)], ("other",)
    )(positive(x) * (y + 10), z),
    "two results": lambda x, y, z: batched(
        SVD(full_matrices=False), [("day", "city")], ("day", "k"), ("k",), ("k", "city")
    )(z * (x + 1))[1],
}


@pytest.mark.parametrize("name", CORE_OPS)
@pytest.mark.few(2)
def test_core_ops_are_batched_by_name(name: str) -> None:
    x, y, z = named("x", ["city", "day"]), named("y", ["day"]), named("z", ["city", "kind"])
    result = CORE_OPS[name](x, y, z)
    compare_onnx_and_py([x, y, z], [result, result.values], values_of(x, y, z), rtol=1e-9)


def test_the_rename_that_does_not_fit_is_refused_by_the_sizes() -> None:
    x, z = named("x", ["city", "day"]), named("z", ["city", "kind"])
    program = export_onnx([x, z], x.rename(day="kind") - z)
    assert input_dims(program) == [("city", "day"), ("city", "day")]
    with pytest.raises(InputError, match="dimension 'day' is 4 in x and 2 in z"):
        program(*values_of(x, z))


@pytest.mark.each_value
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize(
    "cost",
    [
        lambda x, y, z: (x * y).sum(),
        lambda x, y, z: px.math.exp(x.mean("city") - y).sum(),
        lambda x, y, z: (x.dot(y) * z).var(["city", "kind"]),
        lambda x, y, z: px.math.log(px.math.softmax(x, dim="day")).isel(day=0).sum() * y.sum(),
        lambda x, y, z: (x.isel(day=positions(1, 1)) * z).sum() + y.max(),
        lambda x, y, z: (px.concat([x, y], dim="city").transpose() ** 3).sum(),
        lambda x, y, z: x.stack({"flat": ["day", "city"]}).cumsum("flat").sum() * z.std(...),
    ],
    ids=["product", "mean", "dot", "softmax", "index", "concat", "stack"],
)
def test_gradients_are_those_of_pytensor(cost: Graph, static: bool) -> None:
    variables = [
        named("x", ["city", "day"], static),
        named("y", ["day"], static),
        named("z", ["city", "kind"], static),
    ]
    # PyTensor differentiates the lowered form of named dimensions.
    whole = cost(*variables) + variables[1].sum() * variables[2].sum()
    total = rewrite_graph(whole.values, include=("lower_xtensor",))
    gradients = pytensor.grad(total, variables)
    assert [gradient.type.dims for gradient in gradients] == [v.type.dims for v in variables]
    compare_onnx_and_py(variables, gradients, values_of(*variables), rtol=1e-10)


def test_a_cost_is_exported_with_its_gradients() -> None:
    x, y = named("x", ["city", "day"]), named("y", ["day"])
    values = values_of(x, y)
    cost = (px.math.exp(x) * y).sum()
    cost.name = "energy"
    program = export_value_and_grad([x, y], cost)
    energy, by_x, by_y = program(*values)
    np.testing.assert_allclose(energy, (np.exp(values[0]) * values[1]).sum(), rtol=1e-12)
    np.testing.assert_allclose(by_x, np.exp(values[0]) * values[1], rtol=1e-12)
    np.testing.assert_allclose(by_y, np.exp(values[0]).sum(axis=0), rtol=1e-12)
    assert [value.name for value in program.model.graph.outputs] == ["energy", "grad_x", "grad_y"]
    assert output_dims(program) == [(), ("city", "day"), ("day",)]


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "bool"])
def test_dtypes_are_kept(dtype: str) -> None:
    x, y = named("x", ["city", "day"], dtype=dtype), named("y", ["day"], dtype=dtype)
    results = [px.where(x > y, x, y), x.max("city"), x.transpose("day", "city")]
    program = compare_onnx_and_py([x, y], results, values_of(x, y))
    assert [value.dtype.numpy() for value in program.model.graph.outputs] == [dtype] * 3


def test_dims_name_the_axes_of_inputs_and_outputs() -> None:
    x, y = named("x", ["city", "day"]), named("y", ["day"])
    program = export_onnx([x, y], [x + y, x.sum("day"), x.transpose()])
    assert input_dims(program) == [("city", "day"), ("day",)]
    assert output_dims(program) == [("city", "day"), ("city",), ("day", "city")]


def test_a_part_of_a_dimension_does_not_go_by_its_name() -> None:
    x = named("x", ["city", "day"])
    mask = named("mask", ["city"], dtype="bool")
    program = export_onnx([x, mask], [x.isel(city=slice(1, None)), x.isel(city=mask)])
    assert output_dims(program) == [("city[1:]", "day"), ("city_1", "day")]
    few, some = program(np.ones((3, 2)), np.array([True, False, True]))
    assert few.shape == some.shape == (2, 2)


def test_dims_of_outputs_name_what_no_input_names() -> None:
    t = pt.matrix("t")
    program = export_onnx([t], px.as_xtensor(pt.exp(t), dims=["city", "2*day"]))
    assert input_dims(program) == output_dims(program) == [("city", "2*day")]


def test_static_sizes_stay_and_hold_for_all_inputs_of_the_name() -> None:
    x, y = px.xtensor("x", dims=["city"], shape=[3]), named("y", ["city", "day"])
    program = export_onnx([x, y], [x.sum(), y + 1])
    assert input_dims(program) == [(3,), (3, "day")]


def test_two_sizes_of_one_name_are_two_sizes() -> None:
    x, y = px.xtensor("x", dims=["city"], shape=[3]), px.xtensor("y", dims=["city"], shape=[4])
    z = named("z", ["city"])
    program = export_onnx([x, y, z], [x.sum(), y.sum(), z.sum()])
    assert input_dims(program) == [(3,), (4,), ("city",)]


def test_the_names_that_the_user_gives_win() -> None:
    x, y = named("x", ["city", "day"]), named("y", ["day"])
    program = export_onnx([x, y], x + y, dynamic_axes={"y": {-1: "time"}})
    assert input_dims(program) == [("city", "time"), ("time",)]


def test_names_that_read_like_arithmetic_are_kept() -> None:
    x, y = px.xtensor("x", dims=["2*n", "n[1:]", "3"]), px.xtensor("y", dims=["2*n"])
    program = export_onnx([x, y], x + y)
    assert input_dims(program) == [("2*n", "n[1:]", "3"), ("2*n",)]


def test_names_that_differ_in_one_sign_are_different() -> None:
    x, y = px.xtensor("x", dims=["a b"]), px.xtensor("y", dims=["a_b"])
    program = export_onnx([x, y], [x.sum(), y.sum()])
    assert [float(v) for v in program(np.ones(2), np.ones(3))] == [2, 3]


def test_example_inputs_make_the_dims_static() -> None:
    x = named("x", ["city", "day"])
    program = export_onnx([x], x.sum("day"), example_inputs=[np.ones((2, 5))])
    assert (input_dims(program), output_dims(program)) == ([(2, 5)], [(2,)])


def test_sizes_of_one_name_must_be_equal_in_a_program() -> None:
    x, y = named("x", ["city"]), named("y", ["city"])
    program = export_onnx([x, y], [x.sum(), y.sum()])
    with pytest.raises(InputError, match="dimension 'city' is 2 in x and 3 in y"):
        program(np.ones(2), np.ones(3))


def test_sizes_of_one_name_may_differ_in_a_function_as_in_pytensor() -> None:
    x, y = named("x", ["city"]), named("y", ["city"])
    f = pytensor.function([x, y], [x.sum(), y.sum()], mode="ONNX")
    assert [float(v) for v in f(np.ones(2), np.ones(3))] == [2, 3]


@pytest.mark.parametrize("sizes", [(3, 4), (3, 1), (1, 4)])
def test_dims_that_meet_do_not_broadcast(sizes: tuple[int, int]) -> None:
    x, y = named("x", ["city"]), named("y", ["city"])
    f = pytensor.function([x, y], x + y, mode="ONNX")
    with pytest.raises(Exception, match="_dim0' is"):
        f(*map(np.ones, sizes))


def test_arrays_of_xarray_are_arguments() -> None:
    x, y = named("x", ["city", "day"]), named("y", ["day"])
    a, b = values_of(x, y)
    turned = xr.DataArray(a.T, dims=["day", "city"])
    program = compile_onnx([x, y], x - y)
    f = pytensor.function([x, y], x - y, mode="ONNX")
    for call in (program, f):
        assert_same(call(turned, xr.DataArray(b, dims=["day"])), a - b)


def test_an_array_of_other_dims_is_refused() -> None:
    x = named("x", ["city", "day"])
    with pytest.raises(InputError, match=r"input x: float64\[city, day\]"):
        compile_onnx([x], x + 1)(xr.DataArray(np.ones((2, 2)), dims=["city", "kind"]))


def test_shared_variables_are_stored_or_become_state() -> None:
    weights = pytensor.shared(xr.DataArray(np.arange(3.0), dims=["city"]), name="weights")
    x = named("x", ["city", "day"])
    stored = export_onnx([x], (x * weights).sum("city"), example_inputs=[np.ones((3, 2))])
    np.testing.assert_array_equal(stored(np.ones((3, 2))), [3, 3])
    updates = {weights: weights + x.sum("day")}
    stateful = export_onnx([x], weights * 1, updates=updates, example_inputs=[np.ones((3, 2))])
    f = pytensor.function([x], weights * 1, updates=updates, mode="ONNX")
    for expected in ([0, 1, 2], [2, 3, 4], [4, 5, 6]):
        np.testing.assert_array_equal(stateful(np.ones((3, 2))), expected)
        np.testing.assert_array_equal(f(np.ones((3, 2))), expected)


def test_compiled_functions_are_exported() -> None:
    x, y = named("x", ["city", "day"]), named("y", ["day"])
    f = pytensor.function([x, y], x.dot(y), mode=PY)
    values = values_of(x, y)
    program = export_function_onnx(f)
    assert input_dims(program) == [("city", "day"), ("day",)]
    assert_same(program(*values), f(*values))


def test_names_leave_no_trace_in_the_operators() -> None:
    x, w, b = named("x", ["city", "day"]), named("w", ["day", "kind"]), named("b", ["kind"])
    assert op_types(export_onnx([x, w, b], x.dot(w) + b)) in (["MatMul", "Add"], ["Gemm"])


def test_complex_numbers_have_names_too() -> None:
    x = named("x", ["city"])
    z = x.astype("complex128") * 1j
    values = [np.array([1.0, 2.0])]
    f = pytensor.function([x], [z, px.math.imag(z)], mode="ONNX")
    for found in (f(*values), export_onnx([x], [z, px.math.imag(z)])(*values)):
        np.testing.assert_array_equal(found[0], values[0] * 1j)
        np.testing.assert_array_equal(found[1], values[0])


@pytest.mark.slow
def test_the_module_is_not_imported_for_graphs_without_names() -> None:
    code = (
        "import sys, pytensor, pytensor_onnx, pytensor.tensor as pt\n"
        "x = pt.vector('x')\n"
        "pytensor_onnx.export_onnx([x], x + 1)\n"
        "pytensor.function([x], x + 1, mode='ONNX')\n"
        "assert not any('xarray' in m or 'xtensor' in m for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
