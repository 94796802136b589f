"""Indices in int32, where the accelerator of a target has no kernels for int64."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx
from tests.conftest import PY

X = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")
ROWS, COLUMNS = np.array([5, -1, 0]), np.array([-5, 4, 2])
HUGE = [2**31 - 1, 2**31, 2**31 + 3, 2**32 + 1, 2**63 - 1]


def exported(inputs, output, **options):
    options = {"target": "webgpu", "assume_finite": True, "verify": False} | options
    return export_onnx(inputs, output, **options)


def wide_operators(program):
    """Return the operators that compute with int64, but for sizes and single integers."""
    lines = [line for line in map(str, program.changes) if "left to the processor" in line]
    kinds = lines[0].split(": ")[1].split(", ") if lines else []
    return {kind.split()[0] for kind in kinds if kind.endswith("of int64")}


def compare(inputs, output, *values):
    """Compare the results of a file with those of PyTensor's Python implementation."""
    program = exported(inputs, output)
    expected = pytensor.function(inputs, output, mode=PY)(*values)
    found = program(*values)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    return program


def positions_of_the_largest(x):
    return x[pt.arange(x.shape[0]), pt.argmax(x, axis=1)]


x = pt.matrix("x", dtype="float32")
i, j = pt.lvector("i"), pt.lvector("j")
EDGES = {"Cast", "Clip"}
GRAPHS = {
    "pairs": ([x, i, j], x[i, j], (X, ROWS, COLUMNS), EDGES),
    "pairs set": ([x, i, j], pt.set_subtensor(x[i, j], 0), (X, ROWS, COLUMNS), EDGES),
    "cross entropy": ([x, i], -pt.log(x**2)[pt.arange(3), i].mean(), (X[:3], COLUMNS), EDGES),
    "mask of lengths": (
        [x, i],
        pt.switch(pt.arange(x.shape[1]) < i[:, None], x, 0),
        (X[:5], np.array([0, 3, 5, 9, -2])),
        EDGES,
    ),
    "clipped positions": ([x, i], x[pt.clip(i + 1, 0, 2) * 2], (X, ROWS), None),
    "remainders of positions": ([x], x[:, pt.arange(x.shape[1]) % 3], (X,), set()),
    "remainders as numbers": (
        [x],
        x * pt.cast(pt.arange(x.shape[1]) % 3, "float32"),
        (X,),
        set(),
    ),
    "remainders of negative numbers": ([x], x[:, -pt.arange(x.shape[1]) % 3], (X,), None),
    "triangle": ([x], pt.tril(x), (X,), set()),
    "diagonal": ([x], pt.diagonal(x), (X[:, :4],), set()),
    "largest": ([x], positions_of_the_largest(x), (X,), set()),
    "largest of all": ([x], x.ravel()[pt.argmax(x)], (X,), set()),
    "count": ([x], (x > 0).sum(axis=1), (X,), set()),
    "ranks of positives": ([x], pt.cumsum(x > 0, axis=1), (X,), set()),
    "positions": (
        [x],
        x + pt.sin(pt.arange(x.shape[0]) / 7.0)[:, None].astype("float32"),
        (X,),
        set(),
    ),
    "rows by positions": ([x], x[(pt.arange(x.shape[0]) + 1) % x.shape[0]], (X,), None),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_int64_is_left_at_the_edges(name):
    inputs, output, values, left = GRAPHS[name]
    program = compare(inputs, output, *values)
    if left is not None:
        assert wide_operators(program) == left


def test_integers_that_are_data_stay_int64():
    values = np.array([2**40 + 1, -(2**33)]), np.array([7, 2**62])
    program = compare([i, j], i * 3 + j // 2, *values)
    assert {"Add", "Mul"} <= wide_operators(program)
    numbers = pt.lscalar("n")
    compare([numbers], (pt.arange(numbers) ** 2)[-3:], np.array(70_000))
    compare([numbers], pt.arange(numbers).sum(), np.array(100_000))
    compare([numbers], pt.arange(numbers) * 2**33 % 1009, np.array(50))
    compare([i], i[i > 2**31], np.array([5, *HUGE]))


def test_small_integers_are_widened_for_sums_beyond_int32():
    small = pt.vector("small", dtype="int32")
    compare([small], small.astype("int64") * 4 + 1, np.int32([2**31 - 1, -(2**31)]))
    bytes_ = pt.vector("bytes", dtype="uint8")
    program = compare([bytes_], x_at(bytes_), np.uint8([0, 3, 5]))
    assert not wide_operators(program)


def x_at(bytes_):
    """Return elements of a constant at sums of small positions."""
    at = bytes_.astype("int64") + pt.arange(bytes_.shape[0])
    return pt.constant(X.ravel())[pt.switch(at > 5, at - 1, at)]


def test_positions_in_branches_and_loops_are_right():
    n, v = pt.lscalar("n"), pt.vector("v", dtype="float32")
    branch = ifelse(n > 2, pt.arange(n) + 1, pt.cumsum((v > 0).astype("int64")))
    compare([n, v], branch, np.array(4), X[0])
    compare([n, v], branch, np.array(1), X[0])
    steps = pytensor.scan(
        lambda t, s: s * np.float32(0.5) + v[(t * 3) % v.shape[0]],
        sequences=[pt.arange(v.shape[0])],
        outputs_info=[pt.zeros((), "float32")],
        return_updates=False,
    )
    compare([v], steps, X[1])


@pytest.mark.parametrize("huge", [*HUGE, *(-h for h in HUGE)])
def test_integers_beyond_int32_keep_their_order_and_stay_out_of_bounds(huge):
    inputs, mask, (values, *_), _ = GRAPHS["mask of lengths"]
    compare(inputs, mask, values, np.array([1, huge, 2, huge, 3]))
    program = exported([x, i, j], x[i, j])
    with pytest.raises(IndexError):
        program(X, np.array([huge, 0]), np.array([0, 0]))
    wrapped = pt.switch(i < 0, i + x.shape[0], i)
    program = exported([x, i, j], x[wrapped, j])
    with pytest.raises(IndexError):
        program(X, np.array([huge, 0]), np.array([0, 0]))


@pytest.mark.slow
def test_draws_compute_with_int64_only_where_words_are():
    """The generator has words of 64 bits, which the processor computes with their places."""
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    n = pt.lscalar("n")
    next_rng, draws = pt.random.normal(size=(n,), rng=rng, dtype="float32", return_next_rng=True)
    web, webgpu = (
        export_onnx([n], draws, target=t, updates={rng: next_rng}, state_path=None, verify=False)
        for t in ("onnxruntime", "webgpu")
    )
    assert wide_operators(webgpu) <= EDGES | {"Add", "Unsqueeze"}
    np.testing.assert_array_equal(webgpu(np.array(7)), web(np.array(7)))


def test_the_report_counts_nodes_in_int32():
    program = exported([x], pt.tril(x))
    assert "indices in int32 in place of int64: 4 nodes" in program.report()
    assert "int32" not in exported([x], pt.tril(x), target="web").report()
