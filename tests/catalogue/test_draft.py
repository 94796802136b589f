"""Operators of the ONNX draft as functions, against JAX."""

from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from scipy.special import erfinv

from pytensor_onnx import from_onnx
from pytensor_onnx.catalogue import build_catalogue
from pytensor_onnx.catalogue.draft import MOST, draft_domain, element_type
from pytensor_onnx.cli.app import app

UNUSED = [""] * (MOST - 3)
"""Outputs of a split that nobody reads: ONNX Runtime wants all outputs of a function named."""


def model_with(nodes: list, outputs: dict[str, int], dtype: str) -> onnx.ModelProto:
    """Return a model of a seed with nodes of the draft."""
    domain = draft_domain(dtype)
    for node in nodes:
        node.domain = node.domain or domain
    seed = helper.make_tensor_value_info("seed", TensorProto.INT64, [])
    like = helper.make_tensor_value_info("like", element_type(dtype), ["n", "m"])
    values = [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()]
    graph = helper.make_graph(nodes, "draws", [seed, like], values)
    library = build_catalogue(["draft"], dtypes=[dtype])
    return helper.make_model(
        graph,
        opset_imports=library.opset_import,
        ir_version=10,
        functions=list(library.functions),
    )


def both(model: onnx.ModelProto, dtype: str) -> list[list[np.ndarray]]:
    like = np.zeros((3, 5), helper.tensor_dtype_to_np_dtype(element_type(dtype)))
    feed = {"seed": np.array(42), "like": like}
    of_runtime: dict = dict(feed)
    if dtype == "bfloat16":  # ONNX Runtime takes no NumPy arrays of it.
        of_runtime["like"] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            like.view("uint16"), TensorProto.BFLOAT16
        )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [session.run(None, of_runtime), ReferenceEvaluator(model).run(None, feed)]


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(x, marks=pytest.mark.slow) for x in ("float16", "float64"))]
)
def test_numbers_and_states_are_those_of_jax(dtype: str) -> None:
    node = helper.make_node
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        node("SplitPRNG", ["first"], ["a", "b", "c", *UNUSED]),
        node("RandomUniform", ["a"], ["x", "a1"], shape=[4, 2], low=-1.0, high=3.0),
        node("RandomUniformLike", ["like", "b"], ["y", "b1"]),
        node("RandomNormal", ["c"], ["z", "c1"], shape=[6], mean=2.0, scale=0.5),
        node("RandomNormalLike", ["like", "a1"], ["w", "a2"]),
    ]
    number = element_type(dtype)
    outputs = {"x": number, "y": number, "z": number, "w": number, "a2": TensorProto.INT64}
    found = both(model_with(nodes, outputs, dtype), dtype)
    with jax.enable_x64(True):
        a, b, c = jax.random.split(jax.random.key(42), 3)
        kind = jnp.dtype(dtype)
        after, key = jax.random.split(a)
        last, second = jax.random.split(after)
        exact = [
            jax.random.uniform(key, (4, 2), kind, -1.0, 3.0),
            jax.random.uniform(jax.random.split(b)[1], (3, 5), kind),
            2.0 + 0.5 * jax.random.normal(jax.random.split(c)[1], (6,), kind),
            jax.random.normal(second, (3, 5), kind),
        ]
        state = jax.random.key_data(last)
    tolerance = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-13}[dtype]
    for x, y, z, w, after_all in found:
        np.testing.assert_array_equal(x, exact[0])
        np.testing.assert_array_equal(y, exact[1])
        np.testing.assert_allclose(z, exact[2], tolerance, tolerance)
        np.testing.assert_allclose(w, exact[3], 5 * tolerance, tolerance)
        np.testing.assert_array_equal(after_all, state)
        assert x.dtype == dtype


@pytest.mark.slow
def test_data_give_states_of_their_own() -> None:
    node = helper.make_node
    data = onnx.numpy_helper.from_array(np.array([7, 2**40, -1]))
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("Constant", [], ["data"], value=data),
        node("SplitPRNGByData", ["first", "data"], ["a", "b", "c", *UNUSED]),
    ]
    outputs = dict.fromkeys("abc", TensorProto.INT64)
    domain = draft_domain("float32")
    for made in (nodes[0], nodes[2]):
        made.domain = domain
    model = model_with([nodes[0], nodes[2]], outputs, "float32")
    model.graph.node.insert(0, nodes[1])
    for a, b, c in both(model, "float32"):
        exact = jax.random.key_data(jax.random.fold_in(jax.random.key(42), 7))
        np.testing.assert_array_equal(a, exact)
        assert len({tuple(x) for x in (a, b, c)}) == 3


@pytest.mark.slow
def test_the_import_of_a_model_has_the_same_numbers() -> None:
    nodes = [
        helper.make_node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("RandomUniform", ["first"], ["x", "after"], shape=[4, 2], high=3.0),
        helper.make_node("RandomNormalLike", ["like", "after"], ["y", "last"]),
    ]
    outputs = {"x": TensorProto.FLOAT, "y": TensorProto.FLOAT, "last": TensorProto.INT64}
    model = model_with(nodes, outputs, "float32")
    exact = both(model, "float32")[0]
    graph = from_onnx(model)
    given = dict(zip([str(v.name) for v in graph.inputs], graph.inputs, strict=True))
    feed = {given["seed"]: np.array(42), given["like"]: np.zeros((3, 5), "float32")}
    for variable, array in zip(graph.outputs, exact, strict=True):
        found = variable.eval(feed, mode="FAST_COMPILE", on_unused_input="ignore")
        np.testing.assert_allclose(found, array, 1e-5, 1e-6)


RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 200),
    "int16": (-1000, 1001),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (7, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (3, 2**63 - 1),
    "bool": (0, 2),
}


@pytest.mark.parametrize(
    "dtype", ["int32", *(pytest.param(x, marks=pytest.mark.slow) for x in RANGES if x != "int32")]
)
def test_integers_are_those_of_jax(dtype: str) -> None:
    low, high = RANGES[dtype]
    nodes = [
        helper.make_node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("RandomUniform", ["first"], ["x", "a"], shape=[4, 2], low=low, high=high),
        helper.make_node("RandomUniformLike", ["like", "a"], ["y", "b"], low=low, high=high),
    ]
    number = element_type(dtype)
    found = both(model_with(nodes, {"x": number, "y": number}, dtype), dtype)
    with jax.enable_x64(True):
        kind = jnp.uint8 if dtype == "bool" else jnp.dtype(dtype)
        after, key = jax.random.split(jax.random.key(42))
        _, second = jax.random.split(after)
        exact = [
            jax.random.randint(key, (4, 2), low, high, kind),
            jax.random.randint(second, (3, 5), low, high, kind),
        ]
    for results in found:
        for values, expected in zip(results, exact, strict=True):
            assert values.dtype == dtype
            np.testing.assert_array_equal(values, np.asarray(expected).astype(dtype))


def test_numbers_of_bfloat16_are_those_of_jax() -> None:
    nodes = [
        helper.make_node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("RandomUniform", ["first"], ["x", "a"], shape=[500], low=-1.0, high=3.0),
        helper.make_node("RandomUniformLike", ["like", "a"], ["y", "b"]),
        helper.make_node("RandomNormal", ["b"], ["z", "c"], shape=[500]),
        *(helper.make_node("Cast", [x], [f"{x}_wide"], domain="ai.onnx", to=1) for x in "xyz"),
    ]
    outputs = dict.fromkeys(("x_wide", "y_wide", "z_wide"), TensorProto.FLOAT)
    model = model_with(nodes, outputs, "bfloat16")
    for node in model.graph.node[-3:]:
        node.domain = ""
    after, key = jax.random.split(jax.random.key(42))
    following, second = jax.random.split(after)
    _, third = jax.random.split(following)
    least = jnp.nextafter(jnp.bfloat16(-1), jnp.bfloat16(0))
    x = np.asarray(jax.random.uniform(third, (500,), jnp.bfloat16, least, 1.0), "float64")
    exact = [
        jax.random.uniform(key, (500,), jnp.bfloat16, -1.0, 3.0),
        jax.random.uniform(second, (3, 5), jnp.bfloat16),
        (np.sqrt(2) * erfinv(x)).astype(ml_dtypes.bfloat16),
    ]
    for results in both(model, "bfloat16"):
        for values, expected in zip(results, exact, strict=True):
            np.testing.assert_array_equal(values, np.asarray(expected, "float32"))


def test_the_command_counts_the_operators(tmp_path: Path) -> None:
    file = tmp_path / "prng.onnx"
    result = CliRunner().invoke(app, ["catalogue", "--only", "draft", "-o", str(file)])
    assert result.exit_code == 0, result.output
    functions = onnx.load(file).functions
    count = sum(f.domain.startswith("pytensor.draft_") for f in functions)
    assert f"{count} functions" in result.output
    assert count > 90
