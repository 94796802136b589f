"""Branches of models."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, UnsupportedTypeError, from_onnx
from tests.importing.models import evaluated, model_of


def branching(*, ranks_differ: bool = False):
    def graph(name: str, operator: str, rank: int) -> object:
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"] * rank)
        return helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [out])

    second = "ReduceSum" if ranks_differ else "Exp"
    other = graph("b", second, 1)
    if ranks_differ:
        other.node[0].attribute.append(helper.make_attribute("keepdims", 0))
    return model_of(
        [helper.make_node("If", ["c"], ["y"], then_branch=graph("a", "Neg", 1), else_branch=other)],
        inputs={"x": ("n",), "c": ()},
        outputs={"y": (None,)},
        dtypes={"c": TensorProto.BOOL},
    )


def test_a_branch_is_lazy_and_right():
    graph = from_onnx(branching())
    ops = {type(n.op).__name__ for n in pytensor.graph.traversal.applys_between([], graph.outputs)}
    assert "IfElse" in ops
    x = np.float32([0, 1])
    assert evaluated(graph, x, True)[0].tolist() == [0, -1]
    np.testing.assert_allclose(evaluated(graph, x, False)[0], np.exp(x), rtol=1e-6)


def test_branches_of_different_ranks_need_a_known_condition():
    with pytest.raises(UnsupportedOpError, match="one rank"):
        from_onnx(branching(ranks_differ=True))
    graph = from_onnx(branching(ranks_differ=True), inputs={"c": False})
    assert evaluated(graph, np.float32([1, 2]))[0] == 3


def splitting(split: str = "") -> object:
    return model_of(
        [
            helper.make_node("SplitToSequence", ["x", *([split] * bool(split))], ["s"], axis=0),
            helper.make_node("SequenceAt", ["s", "last"], ["a"]),
            helper.make_node("SequenceErase", ["s", "first"], ["t"]),
            helper.make_node("SequenceInsert", ["t", "a", "first"], ["u"]),
            helper.make_node("ConcatFromSequence", ["u"], ["y"], axis=0),
        ],
        inputs={"x": ("n", 2), **({split: (2,)} if split else {})},
        outputs={"y": (None, 2)},
        constants={"first": np.int64(0), "last": np.int64(-1)},
        dtypes={split: TensorProto.INT64},
    )


def test_sequences_are_taken_apart_and_joined():
    x = np.arange(6, dtype="float32").reshape(3, 2)
    graph = from_onnx(splitting(), shapes={"n": 3})
    assert evaluated(graph, x)[0].tolist() == [[4, 5], [2, 3], [4, 5]]
    graph = from_onnx(splitting("k"))
    assert evaluated(graph, x, [1, 2])[0].tolist() == [[2, 3], [4, 5], [2, 3], [4, 5]]


def test_the_number_of_elements_must_be_known():
    with pytest.raises(UnsupportedOpError, match=r"shapes=\{'x': \(size, 2\)\}"):
        from_onnx(splitting())


def test_a_sequence_as_input_is_asked_for():
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, ("n",))
    model = model_of(
        [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        inputs={"s": ("n",)},
        outputs={"y": (None,)},
    )
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    with pytest.raises(UnsupportedTypeError, match=r"inputs=\{'s': \[variable, ...\]\}"):
        from_onnx(model)
    a, b = pt.fvectors("a", "b")
    graph = from_onnx(model, inputs={"s": [a, b]})
    assert graph.outputs[0].eval({a: np.float32([1]), b: np.float32([2, 3])}).tolist() == [1, 2, 3]


def test_a_loop_over_sequences_is_unrolled():
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["x", "f"], ["v"]),
            helper.make_node("SequenceInsert", ["s", "v"], ["t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None),
        ],
    )
    model = model_of(
        [
            helper.make_node("SequenceEmpty", [], ["s"]),
            helper.make_node("Loop", ["n", "", "s"], ["t"], body=body),
            helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0, new_axis=1),
        ],
        inputs={"x": ("k",), "n": ()},
        outputs={"y": (None, "k")},
        dtypes={"n": TensorProto.INT64},
    )
    graph = from_onnx(model, inputs={"n": 3})
    assert evaluated(graph, np.float32([1, 2]))[0].tolist() == [[0, 0], [1, 2], [2, 4]]
    with pytest.raises(UnsupportedOpError, match=r"number of steps.*must be known"):
        from_onnx(model)
