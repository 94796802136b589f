import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph import Apply, Op, node_rewriter

from pytensor_onnx.rewriting import register_onnx
from tests.conftest import compare_onnx_and_py


class Halve(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] / 2, dtype=inputs[0].dtype)


@register_onnx
@node_rewriter([Halve])
def halve_as_division(fgraph, node):
    (x,) = node.inputs
    return [(x / 2).astype(x.dtype)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_registered_rewrite_runs_in_exporter_and_mode_and_leaves_no_cast(dtype):
    x = pt.matrix("x", dtype=dtype)
    program = compare_onnx_and_py([x], Halve()(x), [np.arange(6, dtype=dtype).reshape(2, 3)])
    assert [node.op_type for node in program.model.graph] == ["Div"]
