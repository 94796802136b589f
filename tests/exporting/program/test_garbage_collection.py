"""Exports collect garbage less often, and leave Python's thresholds as they were."""

import gc

import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.exporting.program.converting import fewer_collections


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


class Unknown(Op):
    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]


def test_thresholds_are_those_of_before(thresholds):
    x = pt.vector("x")
    export_onnx([x], x + 1, verify=False)
    assert gc.get_threshold() == thresholds
    with pytest.raises(UnsupportedOpError):
        export_onnx([x], Unknown()(x))
    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize("first", [0, 10**6])
def test_higher_thresholds_and_none_are_kept(first):
    gc.set_threshold(first, 10, 10)
    with fewer_collections():
        assert gc.get_threshold() == (first, 10, 10)


def test_overlapping_exports_leave_the_thresholds_of_before(thresholds):
    first, second = fewer_collections(), fewer_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds
