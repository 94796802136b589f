"""Operators of the ONNX draft without functions in the file, as another producer writes them."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx, prng
from pytensor_onnx.catalogue.draft import element_type
from pytensor_onnx.importing.random import DRAFT_DOMAIN
from tests.conftest import op_types

SEED = 42


def _values(nodes, outputs, domain, like=TensorProto.FLOAT):
    """Return the results of a model of a seed, in mode ONNX."""
    for node in nodes:
        node.domain = domain
    graph = helper.make_graph(
        nodes,
        "draws",
        [
            helper.make_tensor_value_info("seed", TensorProto.INT64, []),
            helper.make_tensor_value_info("like", like, [3, 5]),
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
    )
    domains = [helper.make_opsetid("", 21)]
    if domain:
        domains.append(helper.make_opsetid(domain, 1))
    graph = from_onnx(helper.make_model(graph, opset_imports=domains, ir_version=10))
    seed, given = graph.inputs
    call = pytensor.function([seed, given], graph.outputs, mode="ONNX", on_unused_input="ignore")
    return call(np.array(SEED), np.zeros((3, 5), given.type.dtype))


def _keys(count):
    """Return the keys of draws one after another, and the state after them."""
    state, keys = jax.random.key(SEED), []
    for _ in range(count):
        state, key = jax.random.split(state)
        keys.append(key)
    return keys, np.asarray(jax.random.key_data(state))


@pytest.mark.parametrize("domain", ["", DRAFT_DOMAIN, f"{DRAFT_DOMAIN}.float32"])
def test_floats_are_those_of_jax(domain):
    node = helper.make_node
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        node("RandomUniform", ["first"], ["x", "a"], shape=[4, 2], low=-1.0, high=3.0),
        node("RandomUniformLike", ["like", "a"], ["y", "b"]),
        node("RandomNormal", ["b"], ["z", "c"], shape=[6], mean=2.0, scale=0.5),
        node("RandomNormalLike", ["like", "c"], ["w", "d"]),
    ]
    x, y, z, w, after = _values(nodes, ["x", "y", "z", "w", "d"], domain)
    keys, state = _keys(4)
    np.testing.assert_array_equal(x, jax.random.uniform(keys[0], (4, 2), "float32", -1.0, 3.0))
    np.testing.assert_array_equal(y, jax.random.uniform(keys[1], (3, 5), "float32"))
    np.testing.assert_allclose(z, 2 + 0.5 * jax.random.normal(keys[2], (6,), "float32"), 1e-6)
    np.testing.assert_allclose(w, jax.random.normal(keys[3], (3, 5), "float32"), 2e-5)
    np.testing.assert_array_equal(after, state)


@pytest.mark.parametrize("domain", ["", DRAFT_DOMAIN])
def test_integers_and_bfloat16_are_those_of_jax(domain):
    node = helper.make_node
    nodes = [
        node("InitPRNG", ["seed"], ["first"]),
        node("RandomUniform", ["first"], ["x", "a"], shape=[9], low=-5, high=77, dtype=6),
        node("RandomUniform", ["a"], ["y", "b"], shape=[9], dtype=9),
        node("RandomUniform", ["b"], ["z", "c"], shape=[99], low=-1.0, high=3.0, dtype=16),
        node("RandomNormal", ["c"], ["w", "d"], shape=[99], dtype=16),
        *(node("Cast", [x], [f"{x}_wide"], to=1) for x in "zw"),
    ]
    if domain:
        nodes = nodes[:-2]
    names = ["x", "y", *(("z", "w") if domain else ("z_wide", "w_wide"))]
    x, y, z, w = _values(nodes, names, domain)
    keys, _ = _keys(4)
    np.testing.assert_array_equal(x, jax.random.randint(keys[0], (9,), -5, 77, "int32"))
    assert (x.dtype, y.dtype) == ("int32", "bool")
    exact = jax.random.uniform(keys[2], (99,), jnp.bfloat16, -1.0, 3.0)
    np.testing.assert_array_equal(np.asarray(z, "float32"), np.asarray(exact, "float32"))
    normal = np.asarray(jax.random.normal(keys[3], (99,), jnp.bfloat16), "float32")
    np.testing.assert_allclose(np.asarray(w, "float32"), normal, rtol=2**-7)


def test_bounds_of_uint64_are_given_modulo_two_to_the_64():
    draw = helper.make_node("RandomUniform", ["first"], ["x", "a"], shape=[9], low=-7, high=-1)
    nodes = [helper.make_node("InitPRNG", ["seed"], ["first"]), draw]
    [x] = _values(nodes, ["x"], f"{DRAFT_DOMAIN}.uint64")
    [key], _ = _keys(1)
    with jax.enable_x64(True):
        bounds = np.uint64(2**64 - 7), np.uint64(2**64 - 1)
        expected = jax.random.randint(key, (9,), *bounds, "uint64")
    np.testing.assert_array_equal(x, expected, strict=True)


def test_states_are_split_into_as_many_as_there_are_names():
    data = onnx.numpy_helper.from_array(np.array([7, 2**40]), "data")
    nodes = [
        helper.make_node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("SplitPRNG", ["first"], ["a", "b", "c"]),
        helper.make_node("Constant", [], ["data"], value=data),
        helper.make_node("SplitPRNG", ["first", "data"], ["d", "e"]),
    ]
    found = _values(nodes, list("abcde"), "")
    key = jax.random.key(SEED)
    exact = [*jax.random.split(key, 3), jax.random.fold_in(key, 7)]
    for values, expected in zip(found, exact, strict=False):
        np.testing.assert_array_equal(values, jax.random.key_data(expected))
    assert not np.array_equal(found[3], found[4])


def test_the_shape_of_a_like_form_gives_its_dtype():
    nodes = [
        helper.make_node("InitPRNG", ["seed"], ["first"]),
        helper.make_node("RandomUniformLike", ["like", "first"], ["x", "a"], low=0, high=9),
    ]
    (found,) = _values(nodes, ["x"], "", element_type("uint16"))
    keys, _ = _keys(1)
    assert found.dtype == "uint16"
    np.testing.assert_array_equal(found, jax.random.randint(keys[0], (3, 5), 0, 9, "uint16"))


def test_files_of_draws_are_exported_again_with_their_functions():
    state, n = pt.lvector("state"), pt.lscalar("n")
    drawn = prng.random_normal(state, (n,))
    first = export_onnx([state, n], drawn.values, verify=False)
    graph = from_onnx(first.proto)
    again = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert op_types(again) == op_types(first)
    given = np.array([3, 4]), 100
    np.testing.assert_array_equal(again(*given)[0], first(*given))


@pytest.mark.parametrize("draw", ["uniform", "normal", "exponential"])
def test_draws_of_this_package_are_one_op_again(draw):
    rng, n = pt.random.rng("rng"), pt.lscalar("n")
    after, drawn = getattr(rng, draw)(size=n)
    program = export_onnx([rng, n], [drawn, after], verify=False)
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert op_types(again) == op_types(program)
    state = np.array([1, 2, 3], "uint64")
    for found, expected in zip(again(state, 5), program(state, 5), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)
