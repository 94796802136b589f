"""Tests of the pause in the collection of reference cycles."""

import gc

import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

from pytensor_onnx.conversion import convert
from pytensor_onnx.errors import UnsupportedOpError


class WatchesCollection(Op):
    """Op that no lowering knows, whose name asks whether cycles are collected."""

    seen: bool | None = None

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        raise NotImplementedError

    def __str__(self):
        type(self).seen = gc.isenabled()
        return "WatchesCollection"


def failing_conversion():
    x = pt.vector("x")
    with pytest.raises(UnsupportedOpError, match="WatchesCollection"):
        convert(FunctionGraph([x], [WatchesCollection()(x)], clone=False), opset_version=21)


def test_collection_pauses_during_a_conversion_and_goes_on_after_one_that_fails():
    WatchesCollection.seen = None
    failing_conversion()
    assert WatchesCollection.seen is False
    assert gc.isenabled()


def test_collection_that_is_off_stays_off():
    gc.disable()
    try:
        failing_conversion()
        assert not gc.isenabled()
    finally:
        gc.enable()
