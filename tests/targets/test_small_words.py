"""Draws of portable files in loops and branches, and from generators that are inputs."""

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.ifelse import ifelse
from pytensor.scan.utils import until

from pytensor_onnx import export_onnx, load, prng
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.random import large_words, small_words, state_of


def draws(rng, size=2):
    """Return normal draws, and the generator after them."""
    result = pt.random.normal(size=(size,), rng=rng)
    (after,) = (v for v in result.owner.outputs if v is not result)
    return result, after


def assert_small(program):
    """Assert that no node of a program computes integers of 64 bits without a sign."""
    nodes = list(all_nodes(program.model.graph))
    assert ir.DataType.UINT64 not in {v.dtype for node in nodes for v in node.outputs}


def until_far(rng):
    """Return a random walk that ends far from its start, and the generator after it."""

    def step(x, state):
        drawn, after = draws(state)
        return (x + drawn, after), until(pt.abs(x + drawn).max() > 4)

    outputs, _ = pytensor.scan(step, outputs_info=[pt.zeros(2), rng], n_steps=50, return_list=True)
    return outputs[0], outputs[1]


def of_a_branch(rng):
    """Return draws of one of two kinds, and the generator after one of them."""
    drawn, after = draws(rng)
    uniform = pt.random.uniform(size=(2,), rng=rng)
    return ifelse(drawn.sum() > 0, drawn * 2, uniform), after


def of_rejections(rng):
    """Return gamma draws, which repeat in a loop, and the generator after them."""
    result = pt.random.gamma(2.5, 1.0, size=(3,), rng=rng)
    (after,) = (v for v in result.owner.outputs if v is not result)
    return result, after


@pytest.mark.slow
@pytest.mark.parametrize("graph", [until_far, of_a_branch, of_rejections])
def test_draws_in_bodies_are_small_and_equal(graph):
    def exported(target):
        rng = pytensor.shared(np.random.default_rng(3), name="rng")
        result, after = graph(rng)
        options = {"updates": {rng: after}, "precision": "float32", "verify": False}
        return export_onnx([], result, target=target, **options)

    portable, default = exported("portable"), exported("onnxruntime")
    for _ in range(3):
        np.testing.assert_array_equal(portable(), default())
    np.testing.assert_array_equal(large_words(portable.state["rng"]), default.state["rng"])
    assert_small(portable)


@pytest.mark.slow
def test_a_generator_that_is_an_input_is_small(tmp_path):
    rng = pt.random.rng("rng")
    result, after = draws(rng, 3)
    path = tmp_path / "draws.onnx"
    options = {"precision": "float32"}
    program = export_onnx([rng], [result, after], path, target="portable", **options)
    default = export_onnx([rng], [result, after], **options)
    assert_small(program)
    given = np.random.default_rng(3)
    wanted, following = default(given)
    for each in (program, load(path)):
        found, state = each(given)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(state, small_words(following))
        # The state itself may be given.
        np.testing.assert_array_equal(each(state)[0], default(following)[0])
    np.testing.assert_array_equal(program(small_words(state_of(given)))[0], wanted)


def test_a_generator_that_is_an_input_draws_in_openvino(tmp_path):
    openvino = pytest.importorskip("openvino", reason="it is in the dependency group 'runtimes'")
    rng = pt.random.rng("rng")
    path = tmp_path / "draws.onnx"
    program = export_onnx([rng], draws(rng)[0], path, target="openvino")
    given = small_words(state_of(np.random.default_rng(3)))
    [found] = openvino.Core().compile_model(path, "CPU")([given]).values()
    np.testing.assert_allclose(found, program(np.random.default_rng(3)), rtol=1e-5)


@pytest.mark.parametrize("draw", [prng.random_uniform, prng.random_normal])
def test_stateless_draws_are_exported_for_openvino(draw):
    state = pt.vector("state", dtype="int64", shape=(2,))
    outputs = list(draw(state, (50,)))
    settings = {"target": "openvino", "precision": "float32", "verify": False}
    program = export_onnx([state], outputs, **settings)
    expected = export_onnx([state], outputs, verify=False)
    given = np.array([3434045481, 2**32 - 2])
    # OpenVINO computes in 32 bits: the words of a state may come back negative.
    for words in (given, given - 2**32):
        for found, wanted in zip(program(words), expected(given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(program(given)[1], expected(given)[1])
    openvino = pytest.importorskip("openvino", reason="it is in the dependency group 'runtimes'")
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    model = core.compile_model(core.read_model(program.proto.SerializeToString()), "CPU")
    results = list(model([given]).values())
    np.testing.assert_allclose(results[0], expected(given)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(results[1] % 2**32, expected(given)[1])
