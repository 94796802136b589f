"""Files for runtimes of other makers."""

import base64
import json

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, load, nn
from tests.conftest import compare_onnx_and_py, op_types


def portable(inputs, outputs, **options):
    return export_onnx(inputs, outputs, target="portable", **options)


def test_functions_are_written_out_and_constants_folded():
    x = pt.vector("x")
    program = compare_onnx_and_py([x], pt.erf(x), [np.linspace(-3, 3, 7)], target="portable")
    assert not program.proto.functions
    assert {o.domain for o in program.proto.opset_import} == {""}
    assert all(len(node.inputs) > 0 for node in program.model.graph)


def test_standard_is_another_name_of_the_target():
    x = pt.matrix("x")
    programs = [export_onnx([x], x.max(axis=0), target=t) for t in ("portable", "standard")]
    assert op_types(programs[0]) == op_types(programs[1]) == ["ReduceMax"]


def test_attention_has_no_arithmetic_on_sizes():
    q = pt.tensor("q", shape=(None, 5, 8), dtype="float32")
    attended = nn.attention(q, q, q, q_num_heads=2, kv_num_heads=2)
    program = portable([q], attended)
    assert not {"Where", "Sign", "Shape", "Max"} & set(op_types(program))


def test_checks_leave_no_nodes():
    x = pt.dvector("x")
    checked = pytensor.raise_op.Assert("x must be positive")(x, (x > 0).all())
    assert op_types(portable([x], checked, verify=False)) == ["Identity"]


def test_intermediate_sizes_have_no_names():
    x = pt.matrix("x")
    program = portable([x], pt.exp(pt.tanh(x)).sum(axis=0))
    within = [v for node in program.model.graph for v in node.outputs if not v.is_graph_output()]
    assert all(value.shape is None for value in within)
    assert all(value.dtype is not None for value in within)


@pytest.mark.parametrize("n_steps", [3, 1])
def test_loops_of_known_steps(n_steps):
    x = pt.vector("x")
    states = pytensor.scan(pt.cos, outputs_info=x, n_steps=n_steps, return_updates=False)
    compare_onnx_and_py([x], states, [np.array([0.5, 1.0])], target="portable")


def test_masks_are_positions():
    x = pt.matrix("x")
    value = np.array([[1.0, -2.0], [3.0, -4.0]])
    program = compare_onnx_and_py([x], [x[x > 0], x[x[:, 0] > 2]], [value], target="portable")
    assert "Compress" not in op_types(program)
    assert "NonZero" in op_types(program)


def test_the_state_is_a_plain_input_with_its_value_in_the_metadata(tmp_path):
    x, total = pt.scalar("x"), pytensor.shared(np.arange(3.0), name="total")
    path = tmp_path / "sum.onnx"
    program = portable([x], total.sum(), path=path, updates={total: total + x})
    assert not program.model.graph.inputs[1].is_initializer()
    assert list(program.model.graph.inputs[1].shape) == [3]
    metadata = {p.key: p.value for p in onnx.load(path).metadata_props}
    entry = json.loads(metadata["state_values"])["total"]
    value = np.frombuffer(base64.b64decode(entry["data"]), entry["dtype"]).reshape(entry["shape"])
    np.testing.assert_array_equal(value, [0, 1, 2])
    session = onnxruntime.InferenceSession(path)
    feed = {"x": np.array(2.0), "total": value}
    results = dict(zip(["sum", "total_next"], session.run(None, feed), strict=True))
    assert json.loads(metadata["state"]) == {"total": "total_next"}
    np.testing.assert_array_equal(results["total_next"], [2, 3, 4])
    loaded = load(path)
    assert (loaded(2.0), loaded(2.0)) == (3, 9)


def test_a_state_that_grows_keeps_its_free_size():
    x, seen = pt.scalar("x"), pytensor.shared(np.zeros(0), name="seen")
    program = portable([x], seen.sum(), updates={seen: pt.concatenate([seen, x[None]])})
    assert [program(value) for value in (1.0, 2.0, 3.0)] == [0, 1, 3]


def test_float32_has_no_float64_within():
    x, a = pt.vector("x"), pt.matrix("a", shape=(4, 4))
    outputs = [x.sum(), x.mean(), pt.linalg.cholesky(a), pt.cumsum(x)]
    program = portable([x, a], outputs, precision="float32", verify=False)
    values = [v for node in program.model.graph for v in node.outputs]
    assert {v.dtype.numpy() for v in values if v.dtype.is_floating_point()} == {np.dtype("float32")}


def test_tract_refuses_strided_slices_of_a_reshape(tmp_path):
    tract = pytest.importorskip("tract", reason="tract is in the dependency group 'runtimes'")
    x = pt.matrix("x", shape=(3, 3), dtype="float32")
    value = np.arange(9, dtype="float32").reshape(3, 3)
    strided = export_onnx([x], pt.diagonal(x), tmp_path / "strided.onnx", verify=False)
    assert op_types(strided) == ["Reshape", "Slice"]
    with pytest.raises(Exception, match="Invalid axis"):
        tract.onnx().load(str(tmp_path / "strided.onnx")).into_model().into_runnable().run([value])
    program = portable([x], pt.diagonal(x))
    assert op_types(program)[-1] == "Gather"
    np.testing.assert_array_equal(program(value), [0, 4, 8])
