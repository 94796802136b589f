"""Graphs whose operations have more operands than NumPy's functions take are verified."""

import warnings
from functools import reduce

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.scalar import float64
from pytensor.scalar.basic import Composite, add
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py


def _wide_composite(n):
    xs = [float64(f"x{i}") for i in range(n)]
    return Elemwise(Composite(xs, [reduce(lambda a, x: a * 0.5 + x, xs), xs[0] - xs[-1]]))


def _wide_loop(n):
    x, *others = [float64(f"x{i}") for i in range(n)]
    return Elemwise(ScalarLoop([x], [x / 2 + add(*others)], others))


def _sum(n):
    xs = [pt.vector() for _ in range(n)]
    return OpFromGraph(xs, [pt.add(*xs)])


GRAPHS = {
    "sum": lambda xs: pt.add(*xs),
    "product": lambda xs: pt.mul(*xs),
    "composite": lambda xs: _wide_composite(len(xs))(*xs),
    "scalar loop": lambda xs: _wide_loop(len(xs))(pt.constant(3), *xs),
    "scan": lambda xs: pytensor.scan(
        pt.add,
        outputs_info=[pt.zeros(3)],
        non_sequences=xs,
        n_steps=2,
        return_updates=False,
    ),
    "function": lambda xs: OpFromGraph(xs, [pt.mul(*xs)])(*xs),
    "function of a function": lambda xs: OpFromGraph(xs, [OpFromGraph(xs, [pt.add(*xs)])(*xs)])(
        *xs
    ),
    "batched function": lambda xs: Blockwise(
        _sum(len(xs)), signature=f"{','.join(['(n)'] * len(xs))}->(n)"
    )(*(x[None] for x in xs)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_forty_operands_are_verified(name):
    rng = np.random.default_rng(0)
    xs = [pt.vector(f"x{i}") for i in range(40)]
    program = compare_onnx_and_py(xs, GRAPHS[name](xs), [rng.normal(size=3) for _ in xs])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert "equal to PyTensor" in str(program.verify().verification)


@pytest.mark.slow
def test_hundreds_of_operands_are_verified():
    xs = [pt.scalar(f"x{i}") for i in range(300)]
    program = export_onnx(xs, pt.add(*(pt.exp(x) for x in xs)))
    assert "equal to PyTensor" in str(program.verification)
