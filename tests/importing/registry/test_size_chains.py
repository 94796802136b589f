"""Chains of operators on sizes, whose known elements stay known, in int64 and int32."""

import numpy as np
import pytensor.tensor as pt
import pytest
from onnx import NodeProto, TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx
from pytensor_onnx.importing.registry import size_chains
from tests.importing.models import by_runtime, evaluated, model_of

CONSTANTS = {"zero": [0], "one": [1], "two": [2], "four": [4], "minus": [-1], "order": [1, 0]}
AXES = {"first": [0], "all": [-1], "pair": [1, 2]}
"""Constants that are int64 in all chains."""


def node(operator: str, *operands: str, **attributes) -> NodeProto:
    return helper.make_node(operator, operands, ["r"], **attributes)


SQUEEZED = [
    helper.make_node("Slice", ["v", "zero", "one"], ["n"]),
    helper.make_node("Squeeze", ["n", "first"], ["q"]),
    node("Unsqueeze", "q", "first"),
]
CHOSEN = [helper.make_node("Equal", ["v", "minus"], ["is"]), node("Where", "is", "one", "v")]
CHAINS: dict[str, tuple[list[NodeProto], tuple[int | None, ...]]] = {
    "Add": ([node("Add", "v", "one")], (None, 4)),
    "Cast": ([node("Cast", "v", to=TensorProto.INT64)], (None, 3)),
    "Concat": ([node("Concat", "v", "four", axis=0)], (None, 3, 4)),
    "Div": ([node("Div", "v", "two")], (None, 1)),
    "Equal": (CHOSEN, (None, 3)),
    "Gather": ([node("Gather", "v", "order")], (3, None)),
    "Identity": ([node("Identity", "v")], (None, 3)),
    "Max": ([node("Max", "v", "four")], (None, 4)),
    "Min": ([node("Min", "v", "two")], (None, 2)),
    "Mul": ([node("Mul", "v", "two")], (None, 6)),
    "ReduceProd": ([node("ReduceProd", "v")], (None,)),
    "Reshape": ([node("Reshape", "v", "all")], (None, 3)),
    "Slice": ([node("Slice", "v", "minus", "low", "zero", "minus")], (3, None)),
    "Squeeze": (SQUEEZED, (None,)),
    "Sub": ([node("Sub", "v", "one")], (None, 2)),
    "Unsqueeze": (SQUEEZED, (None,)),
    "Where": (CHOSEN, (None, 3)),
}


def test_there_is_a_chain_for_each_operator():
    assert set(CHAINS) == set(size_chains._CHAINS)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_known_sizes_stay_known(dtype, name):
    """TensorFlow's shapes are int32: tf2onnx casts them there and back."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    chain, shape = CHAINS[name]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["c"], to=number),
        helper.make_node("Slice", ["c", "zero", "two"], ["v"]),
        *chain,
        helper.make_node("Cast", ["r"], ["t"], to=TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["t"], ["filled"]),
        helper.make_node("Concat", ["t", "t"], ["twice"], axis=0),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 3, 4)},
        outputs={"filled": (None,) * len(shape), "twice": (2 * len(shape),)},
        constants={
            **{k: np.array(v, dtype) for k, v in {**CONSTANTS, "low": [-9]}.items()},
            **{k: np.array(v, "int64") for k, v in AXES.items()},
        },
        dtypes={"twice": TensorProto.INT64},
    )
    graph = from_onnx(model)
    assert graph.outputs[0].type.shape == shape
    x = np.zeros((2, 3, 4), "float32")
    expected = by_runtime(model, x)
    exported = export_onnx(graph.inputs, graph.outputs, verify=False)(x)
    for found in (evaluated(graph, x), exported):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_known_condition_chooses_any_integer():
    numbers = pt.lscalars("a", "b")
    chosen = size_chains.size_result("Where", [pt.constant(False), *numbers], {})
    assert chosen is numbers[1]


def test_a_size_that_is_cast_there_and_back_is_the_size():
    """A Reshape to the own shape is nothing."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["narrow"], to=TensorProto.INT32),
        helper.make_node("Cast", ["narrow"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "wide"], ["y"]),
    ]
    model = model_of(nodes, inputs={"x": ("n", 3)}, outputs={"y": ("n", 3)})
    graph = from_onnx(model)
    program = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert [n.op_type for n in program.model.graph] in ([], ["Identity"])


def test_shapes_are_cut_by_slices_of_opset_9():
    """Starts and ends are attributes before opset 10."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s"], ["b"], starts=[-3], ends=[-2]),
        helper.make_node("Concat", ["b", "c"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2, 3)},
        outputs={"y": ("n", 6)},
        constants={"c": np.int64([6])},
        opset=9,
    )
    graph = from_onnx(model)
    assert graph.outputs[0].type.shape == (None, 6)
    x = np.arange(12, dtype="float32").reshape(2, 2, 3)
    np.testing.assert_array_equal(evaluated(graph, x)[0], x.reshape(2, 6))
