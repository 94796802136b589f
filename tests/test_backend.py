"""PyTensor as a backend of ONNX."""

import unittest

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import InputError, UnsupportedOpError, backend
from tests.importing.models import PYTHON, model_of


@pytest.mark.slow
def test_onnx_runs_its_tests_by_the_backend():
    tests = onnx.backend.test.BackendTest(backend, __name__)
    tests.include("^(test_add_cpu|test_split_to_sequence_1_cpu|test_reshape_negative_dim_cpu)$")
    found = tests.test_suite.run(unittest.TestResult())
    assert found.wasSuccessful()
    assert found.testsRun - len(found.skipped) == 3


def test_inputs_are_given_in_order_or_by_name():
    model = model_of(
        [helper.make_node("Sub", ["a", "b"], ["y"])],
        inputs={"a": ("n",), "b": ("n",)},
        outputs={"y": ("n",)},
    )
    prepared = backend.prepare(model, mode=PYTHON)
    a, b = np.float32([3, 4]), np.float32([1, 1])
    assert prepared.run([a, b])[0].tolist() == prepared.run({"b": b, "a": a})[0].tolist() == [2, 3]
    with pytest.raises(InputError, match="2 inputs; got 3"):
        prepared.run([a, b, a])


def test_values_that_the_import_must_know_are_compiled_once_for_each_value():
    model = model_of(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        inputs={"x": (2, 3), "axes": (1,)},
        outputs={"y": (None,)},
        dtypes={"axes": TensorProto.INT64},
    )
    prepared = backend.prepare(model, mode=PYTHON)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert prepared.run([x, np.array([0])])[0].tolist() == [3, 5, 7]
    assert prepared.run([x, np.array([1])])[0].tolist() == [3, 12]
    assert prepared.known == ["axes"]
    first = prepared.compiled({"x": x, "axes": np.array([0])})
    assert prepared.compiled({"x": x + 1, "axes": np.array([0])}) is first


def test_a_node_runs_alone_in_the_dtypes_of_its_operands():
    node = helper.make_node("Add", ["a", "b"], ["y"])
    numbers = np.array([1.0, 2.0**-7]).astype(ml_dtypes.bfloat16)
    (found,) = backend.run_node(node, [numbers, numbers[::-1]], mode=PYTHON)
    assert found.astype("float32").tolist() == [1.0078125, 1.0078125]


def test_sequences_are_lists_and_missing_values_none():
    def info(name, kind):
        element = helper.make_tensor_type_proto(TensorProto.FLOAT, ("n",))
        return onnx.ValueInfoProto(name=name, type=kind(element))

    node = helper.make_node("SequenceInsert", ["s", "x"], ["y"])
    graph = helper.make_graph(
        [node, helper.make_node("Identity", ["o"], ["z"])],
        "graph",
        [
            info("s", helper.make_sequence_type_proto),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n",)),
            info("o", helper.make_optional_type_proto),
        ],
        [
            info("y", helper.make_sequence_type_proto),
            info("z", helper.make_optional_type_proto),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x = np.float32([1, 2])
    items, missing = backend.run_model(model, [[x, 2 * x], 3 * x, None], mode=PYTHON)
    assert [item.tolist() for item in items] == [[1, 2], [2, 4], [3, 6]]
    assert missing is None
    assert backend.run_model(model, [[x], x, x], mode=PYTHON)[1].tolist() == [1, 2]


def test_what_pytensor_lacks_is_named():
    model = model_of(
        [helper.make_node("StringConcat", ["a", "a"], ["y"])],
        inputs={"a": ("n",)},
        outputs={"y": ("n",)},
        dtypes=dict.fromkeys("ay", TensorProto.STRING),
    )
    with pytest.raises(UnsupportedOpError, match="no arrays of string"):
        backend.run_model(model, [np.array(["a"], dtype=object)])


def test_only_the_processor_is_a_device():
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
