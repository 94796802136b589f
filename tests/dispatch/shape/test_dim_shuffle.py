"""Dimension shuffles of every shape and dtype."""

import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.elemwise import DimShuffle

from pytensor_onnx import export_onnx
from tests.conftest import (
    compare_onnx_and_py,
    op_types,
)
from tests.dispatch.values import (
    DTYPES,
    shapes,
    some,
)
from tests.properties import holds_for

SHUFFLES = [
    ((2, 3), (1, 0)),
    ((2, 3), ("x", 0, "x", 1)),
    ((2, 3), (1, "x", 0, "x")),
    ((1, 3, 1), (1,)),
    ((1, 3, 1), (1, "x", 2)),
    ((1, 1), ()),
    ((), ("x", "x")),
    ((0, 1, 2), (2, 0)),
    ((2, 3, 4), (2, 0, 1)),
    ((2, 1, 4, 1), (2, "x", 0, 3)),
    ((1, 2, 1, 3), ("x", "x", 1, "x", 3)),
]


@pytest.mark.parametrize(("shape", "order"), SHUFFLES)
def test_dimensions_shuffle(shape, order):
    x = pt.tensor("x", shape=tuple(1 if size == 1 else None for size in shape))
    compare_onnx_and_py([x], x.dimshuffle(order), [some("float64", shape)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_dimensions_shuffle_in_every_dtype(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 1, None))
    y = x.dimshuffle(2, "x", 0)
    program = compare_onnx_and_py([x], y, [some(dtype, (2, 1, 3))])
    assert op_types(program) == ["Squeeze", "Transpose", "Unsqueeze"]


@pytest.mark.slow
@holds_for(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_any_shuffle_agrees(data, dtype):
    shape = data.draw(shapes())
    axes = [i for i, size in enumerate(shape) if size != 1 or data.draw(st.booleans())]
    order = data.draw(st.permutations([*axes, *["x"] * data.draw(st.integers(0, 2))]))
    x = pt.tensor("x", dtype=dtype, shape=tuple(1 if size == 1 else None for size in shape))
    compare_onnx_and_py(
        [x], DimShuffle(input_ndim=x.ndim, new_order=order)(x), [some(dtype, shape)]
    )


def test_dropped_axes_stand_for_new_ones():
    x = pt.tensor("x", shape=(None, 1))
    for order in (("x", 0, "x"), (0, "x", "x")):
        assert op_types(export_onnx([x], x.dimshuffle(order))) == ["Unsqueeze"]
