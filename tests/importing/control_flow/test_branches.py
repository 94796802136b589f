"""Branches of models."""

import numpy as np
import pytensor
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, from_onnx
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
