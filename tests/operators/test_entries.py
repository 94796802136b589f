"""Properties in the entries of operators hold for the runtime's results."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.bounds import Bounds
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.entries import ELEMENTWISE, OPERATORS
from pytensor_onnx.operators.inference import signature
from tests.graph.conftest import run

HOLDS = {
    "numbers": lambda x: ~np.isnan(x),
    "finite": np.isfinite,
    "sign": lambda x: ~(x < 0),
}
NUMBERS = np.array(
    [0, -0.0, 0.5, 1, -1, 7, -7, 1e20, -1e20, np.inf, -np.inf, np.nan], dtype="float32"
)
CASES = [
    (fact, op_type)
    for fact in HOLDS
    for op_type, entry in OPERATORS.items()
    if getattr(entry, fact) is not None and (op_type in ELEMENTWISE or op_type[:6] == "Reduce")
]


@pytest.mark.parametrize(("fact", "op_type"), CASES)
def test_results_have_the_properties_of_operands(fact, op_type):
    build = Builder(ModelScope(21))
    types, entry = signature(op_type, 21), OPERATORS[op_type]
    count = 1 if op_type.startswith("Reduce") else max(types.required, 1 + types.variadic)
    operands = [NUMBERS] * count
    for i in range(count)[getattr(entry, fact)]:
        operands[i] = NUMBERS[HOLDS[fact](NUMBERS)]
    grids = list(np.meshgrid(*operands, indexing="ij"))
    if op_type == "Where":
        grids[0] = grids[0] > 0
    xs = [
        ir.val(f"x{i}", dtype=ir.DataType.from_numpy(grid.dtype), shape=grid.shape)
        for i, grid in enumerate(grids)
    ]
    y = build.op(op_type, *xs, **({"to": ir.DataType.FLOAT16} if op_type == "Cast" else {}))
    (result,) = run(build, xs, [y], **{x.name: grid for x, grid in zip(xs, grids, strict=True)})
    assert HOLDS[fact](result).all()


@pytest.mark.parametrize(
    "emit",
    [
        lambda build, x: build.Compress(x, np.array([True, False])),
        lambda build, x: build.ReverseSequence(x, build.ints([1, 2])),
        lambda build, x: build.Split(x, num_outputs=2, outputs=2)[1],
        lambda build, x: build.Where(np.array(True), x, build.ints([2])),
    ],
)
def test_moved_integers_have_the_bounds_of_the_operands(emit):
    build = Builder(ModelScope(21))
    flags = ir.val("x", dtype=ir.DataType.BOOL, shape=(2, 2))
    assert Bounds().of(emit(build, build.cast(flags, "int64"))) in ((0, 1), (0, 2))
