"""Graphs of definitions, before their conversion."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.op import Scan

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.rewriting.loops.inner_loops import prepare_definition


def prepared(x: pt.TensorVariable, result: pt.TensorVariable) -> FunctionGraph:
    fgraph = FunctionGraph([x], [result], clone=False)
    prepare_definition(fgraph)
    return fgraph


def test_equal_nodes_are_merged_and_numbers_computed_within_loops_too():
    x = pt.vector("x")
    half = pt.constant(0.5)
    [result] = iterate(
        lambda y, x: [pt.exp(x) * y + pt.exp(x) * -half], [x], [x], n_steps=pt.constant(3)
    )
    fgraph = prepared(x, result)
    [loop] = [node for node in fgraph.toposort() if isinstance(node.op, Scan)]
    kinds = [node.op for node in loop.op.fgraph.apply_nodes]
    assert (kinds.count(pt.exp), kinds.count(pt.neg)) == (1, 0)
    expected = result.eval({x: [0.1, -0.2]}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(
        fgraph.outputs[0].eval({fgraph.inputs[0]: [0.1, -0.2]}, mode="FAST_COMPILE"), expected
    )


def test_both_zeros_stay_apart():
    x = pt.vector("x")
    zero = pt.constant(np.array(0.0))
    fgraph = prepared(x, (x - zero) / (x - pt.constant(np.array(-0.0))))
    subtractions = [n for n in fgraph.apply_nodes if n.op == pt.sub]
    assert len(subtractions) == 2
