"""Operators of the ONNX draft run without functions where the library is registered."""

import jax
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import native
from pytensor_onnx.catalogue.draft import draft_functions
from pytensor_onnx.importing.random import DRAFT_DOMAIN

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built")

SEED = 2**40 + 42
ELEMENTS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32}
node = helper.make_node


def _run(nodes, outputs, domain, *, like=None, like_shape=("k", 5), functions=()):
    """Run operators of a domain for a seed, by functions or else by the library."""
    for operator in nodes:
        operator.domain = domain
    given = np.zeros((3, 5), like or "float32")
    inputs = [
        helper.make_tensor_value_info("seed", TensorProto.INT64, []),
        helper.make_tensor_value_info("like", ELEMENTS[like or "float32"], like_shape),
    ]
    named = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "draws", inputs, named)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    domains += [helper.make_opsetid("pytensor.standard", 1)] if functions else []
    model = helper.make_model(graph, opset_imports=domains, ir_version=10, functions=functions)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not functions:
        options.register_custom_ops_library(str(native.library()))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"seed": np.array(SEED), "like": given})


def _data(key):
    return np.asarray(jax.random.key_data(key)).astype("int64")


@pytest.fixture(scope="module")
def keys():
    """Return the key of the seed, and those of four draws one after another with the last state."""
    first = state = jax.random.wrap_key_data(np.array([SEED >> 32, SEED % 2**32], "uint32"))
    made = []
    for _ in range(4):
        state, key = jax.random.split(state)
        made.append(key)
    return first, made, _data(state)


def test_states_are_those_of_jax(keys):
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        node("SplitPRNG", ["first"], ["a", "", "c"]),
        node("InitPRNG", ["seed"], ["data"]),
        node("SplitPRNG", ["first", "data"], ["d", "e"]),
    ]
    first, *found = _run(nodes, ["first", "a", "c", "d", "e"], DRAFT_DOMAIN)
    np.testing.assert_array_equal(first, [SEED >> 32, SEED % 2**32], strict=True)
    key, *_ = keys
    parts = jax.random.split(key, 3)
    folded = [jax.random.fold_in(key, int(number)) for number in first]
    expected = [_data(k) for k in (parts[0], parts[2], *folded)]
    np.testing.assert_array_equal(found, expected, strict=True)


def _draws(dtype=None):
    settings = {} if dtype is None else {"dtype": ELEMENTS[dtype]}
    return [
        node("InitPRNG", ["seed"], ["first"]),
        node("RandomUniform", ["first"], ["x", "a"], shape=[4, 2], low=-1.0, high=3.0, **settings),
        node("RandomUniformLike", ["like", "a"], ["y", "b"], **settings),
        node("RandomNormal", ["b"], ["z", "c"], shape=[6], mean=2.0, scale=0.5, **settings),
        node("RandomNormalLike", ["like", "c"], ["w", "d"], **settings),
    ]


@pytest.mark.parametrize(
    ("domain", "told", "like", "dtype"),
    [
        (DRAFT_DOMAIN, None, None, "float32"),
        (DRAFT_DOMAIN, "float64", "int32", "float64"),
        (f"{DRAFT_DOMAIN}.float32", None, "float64", "float32"),
        (f"{DRAFT_DOMAIN}.float64", None, None, "float64"),
    ],
)
@pytest.mark.parametrize("shape", [("k", 5), (None, 5), (3, 5)], ids=str)
def test_numbers_are_those_of_jax(keys, domain, told, like, dtype, shape):
    names = ["x", "y", "z", "w", "d"]
    x, y, z, w, after = _run(_draws(told), names, domain, like=like, like_shape=shape)
    _, key, state = keys
    with jax.enable_x64(dtype == "float64"):
        np.testing.assert_array_equal(
            x, jax.random.uniform(key[0], (4, 2), dtype, -1, 3), strict=True
        )
        np.testing.assert_array_equal(y, jax.random.uniform(key[1], (3, 5), dtype), strict=True)
        tolerance = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(
            z, 2 + 0.5 * jax.random.normal(key[2], (6,), dtype), tolerance, strict=True
        )
        np.testing.assert_allclose(
            w, jax.random.normal(key[3], (3, 5), dtype), tolerance, strict=True
        )
    np.testing.assert_array_equal(after, state, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_have_the_bits_of_functions(dtype):
    domain = f"{DRAFT_DOMAIN}.{dtype}"
    compiled = list(draft_functions(dtype))
    functions = {(f.domain, f.name): f for c in compiled for f in [*c.called, c.function]}
    names = ["x", "y", "z", "w", "d"]
    found = _run(_draws(), names, domain, functions=list(functions.values()))
    for result, bare in zip(found, _run(_draws(), names, domain), strict=True):
        np.testing.assert_array_equal(result, bare, strict=True)


@pytest.mark.parametrize(
    ("told", "like", "shape"), [(None, "int32", (3, 5)), ("float64", "float32", None)]
)
def test_other_types_are_refused(told, like, shape):
    settings = {} if told is None else {"dtype": ELEMENTS[told]}
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        node("RandomNormalLike", ["like", "first"], ["y", "after"], **settings),
    ]
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="type"):
        _run(nodes, ["y"], DRAFT_DOMAIN, like=like, like_shape=shape)


@pytest.mark.parametrize("words", [1, 3])
def test_a_state_has_two_words(words):
    shape = node("Constant", [], ["state"], value_ints=[1] * words)
    draw = node("RandomUniform", ["state"], ["x", "after"], shape=[2])
    draw.domain = DRAFT_DOMAIN
    graph = helper.make_graph([shape, draw], "draws", [], [onnx.ValueInfoProto(name="x")])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(DRAFT_DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(str(native.library()))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="two words"):
        session.run(None, {})
