"""Elementwise operations broadcast, and take inputs of any memory layout."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import (
    compare_onnx_and_py,
    compare_together,
    op_types,
)
from tests.dispatch.values import some

BROADCAST = [
    ((), ()),
    ((), (3,)),
    ((1,), (4,)),
    ((2, 1), (1, 3)),
    ((2, 3), (3,)),
    ((4, 1, 3), (2, 1)),
    ((0,), (1,)),
    ((0, 3), (1, 3)),
    ((3, 0), (3, 1)),
    ((2, 0, 3), (3,)),
]


@pytest.mark.slow
def test_operands_broadcast():
    def symbol(name, shape):
        return pt.tensor(name, shape=tuple(1 if size == 1 else None for size in shape))

    def case(first, second):
        x, y = symbol("x", first), symbol("y", second)
        outputs = [x + y, x < y, pt.switch(x < y, x, y), pt.arctan2(y, x)]
        return [x, y], outputs, [some("float64", first), some("float64", second)]

    compare_together({shapes: case(*shapes) for shapes in BROADCAST})


@pytest.mark.parametrize("static", [True, False])
def test_equal_sizes_need_no_broadcast(static):
    x, y = (pt.tensor(name, shape=(2, 3) if static else (None, None)) for name in "xy")
    program = compare_onnx_and_py([x, y], x * y, [np.ones((2, 3))] * 2)
    assert op_types(program) == ["Mul"]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "fortran": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "read_only": read_only,
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_the_memory_layout_of_inputs_does_not_matter(dtype):
    def case(layout):
        x = pt.matrix("x", dtype=dtype)
        return [x], [x + x, x.T, x.sum(axis=0), pt.exp(x)], [layout(some(dtype, (3, 4)))]

    compare_together({name: case(layout) for name, layout in LAYOUTS.items()})
