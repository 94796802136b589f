"""Loops that need not be loops become graphs of the same values, and so do their gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import loops, scan

LENGTHS = [0, 1, 2, 50]
# Sums of all steps: rounding errors add up, in another order where all are added at once.
RTOL = 1e-9


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def x0():
    return pt.scalar("x0")


@pytest.fixture
def m():
    return pt.matrix("m")


def values(*shape):
    return np.random.default_rng(3).uniform(0.5, 1.5, size=shape)


ACCUMULATIONS = {
    "sum": lambda e, y: y + e,
    "sum of terms": lambda e, y: y + pt.exp(e) * 2 + e,
    "difference": lambda e, y: y - e,
    "product": lambda e, y: y * e,
}
EXTREMES = {"maximum": pt.maximum, "minimum": pt.minimum}


@pytest.mark.parametrize("step", ACCUMULATIONS.values(), ids=ACCUMULATIONS)
def test_accumulation(x, x0, step):
    y = scan(step, sequences=[x], outputs_info=[x0])
    first, *others = ([values(length), 0.5] for length in LENGTHS)
    program = compare_onnx_and_py([x, x0], y, first, also=others, rtol=RTOL, opset_version=26)
    assert loops(program) == []


def test_the_update_of_a_state_as_an_output(x):
    def step(e, y):
        return [e * y, e * y]

    one = pt.constant(np.float64(1))
    _, products = pytensor.scan(step, [x], [one, None], return_updates=False)
    first, *others = ([values(length)] for length in [1, 3])
    program = compare_onnx_and_py([x], products, first, also=others, opset_version=26)
    assert loops(program) == []


NARROW = {
    "float64 - uint8": lambda b, f, y: y - b,
    "float64 + uint8 + uint8": lambda b, f, y: pt.add(y, b, b),
    "float64 - bool": lambda b, f, y: y - (b > 100),
    "float64 + float32 + float32": lambda b, f, y: pt.add(y, f, f),
    "recurrence - uint8": lambda b, f, y: 0.5 * y - b,
    "recurrence of uint8 * uint8": lambda b, f, y: pt.mul(y, b, b) + b,
}


@pytest.mark.parametrize("step", NARROW.values(), ids=NARROW)
def test_terms_of_narrower_dtypes_are_combined_in_the_dtype_of_the_state(step):
    b, f = pt.vector("b", dtype="uint8"), pt.vector("f", dtype="float32")
    y = scan(step, sequences=[b, f], outputs_info=[pt.constant(0.5, dtype="float64")])
    terms = [np.array([200, 3, 128], "uint8"), np.array([16777215, 1.1, 3e38], "float32")]
    compare_onnx_and_py([b, f], [y, y[-1]], terms, rtol=1e-15)


@pytest.mark.parametrize("step", [ACCUMULATIONS["sum"], ACCUMULATIONS["sum of terms"]])
def test_gradient_of_a_sum(x, x0, step):
    y = scan(step, sequences=[x], outputs_info=[x0])
    gradients = pt.grad((y**2).sum(), [x, x0])
    first, *others = ([values(length), 0.5] for length in LENGTHS[1:])
    program = compare_onnx_and_py([x, x0], gradients, first, also=others, rtol=RTOL)
    assert loops(program) == []


@pytest.mark.slow
def test_gradient_of_a_product(x, x0):
    y = scan(lambda e, y: y * e, sequences=[x], outputs_info=[x0])
    gradients = pt.grad((y**2).sum(), [x, x0])
    first, *others = ([values(length), 0.5] for length in LENGTHS[1:])
    compare_onnx_and_py([x, x0], gradients, first, also=others, rtol=RTOL)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("length", LENGTHS[1:])
@pytest.mark.parametrize("step", (ACCUMULATIONS | EXTREMES).values(), ids=ACCUMULATIONS | EXTREMES)
def test_last_value_of_an_accumulation(x, x0, step, length):
    y = scan(step, sequences=[x], outputs_info=[x0])[-1]
    program = compare_onnx_and_py([x, x0], y, [values(length), 0.5], rtol=RTOL)
    assert loops(program) == []
    gradients = pt.grad(y**2, [x, x0])
    compare_onnx_and_py([x, x0], gradients, [values(length), 0.5], rtol=RTOL)


def test_last_value_after_no_steps_is_the_initial_one(x, x0):
    y = scan(pt.maximum, sequences=[x], outputs_info=[x0])
    whole = pt.concatenate([x0[None], y])[-1]
    compare_onnx_and_py([x, x0], whole, [values(0), 0.5])


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_extreme_with_nan(x, x0, extreme):
    y = scan(extreme, sequences=[x], outputs_info=[x0])
    for values in ([1.0, np.nan, 0.0], [np.nan, np.inf], [-np.inf, 1.0, np.nan]):
        compare_onnx_and_py([x, x0], [y, y[-1]], [np.array(values), 0.5])


@pytest.mark.parametrize(
    "options", [{}, {"target": "web", "precision": "float64"}, {"inline_functions": True}]
)
def test_running_extreme_takes_no_scan(x, m, options):
    largest = scan(pt.maximum, sequences=[x], outputs_info=[pt.constant(0.7, dtype="float64")])
    smallest = scan(lambda e, y: pt.minimum(pt.exp(e), y), [m], [pt.ones(3)])
    first, *others = ([values(length), values(length, 3)] for length in [*LENGTHS, 64, 65])
    program = compare_onnx_and_py(
        [x, m], [largest, smallest, largest[-3:]], first, also=others, **options
    )
    assert "Scan" not in loops(program)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int64", "uint64", "float16", "float32"]
)
def test_running_extreme_of_every_dtype(dtype):
    x, x0 = pt.vector("x", dtype=dtype), pt.scalar("x0", dtype=dtype)
    outputs = [scan(extreme, [x], [x0]) for extreme in EXTREMES.values()]
    numbers = np.random.default_rng(0).integers(0, 100, size=30).astype(dtype)
    compare_onnx_and_py([x, x0], outputs, [numbers, np.array(50, dtype)])


def test_running_extreme_of_large_rows_stays_in_a_loop():
    m = pt.matrix("m", shape=(None, 100))
    y = scan(pt.maximum, sequences=[m], outputs_info=[pt.zeros(100)])
    assert loops(compare_onnx_and_py([m], y, [values(4, 100)])) == ["Scan"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32"])
@pytest.mark.parametrize("step", [lambda e, y: y + e, lambda e, y: y * e])
def test_dtypes_wrap_around_and_round_step_by_step(dtype, step):
    x, x0 = pt.vector("x", dtype=dtype), pt.scalar("x0", dtype=dtype)
    y = scan(step, sequences=[x], outputs_info=[x0])
    inputs = [np.arange(1, 60).astype(dtype), np.array(3, dtype)]
    with np.errstate(all="ignore"):
        compare_onnx_and_py([x, x0], [y, y[-1]], inputs, rtol=1e-5, opset_version=26)


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_and_terms_that_broadcast(m, length):
    total = scan(lambda e, y: y + e, sequences=[m], outputs_info=[pt.zeros(m.shape[1])])
    spread = scan(lambda e, y: y + e.sum(), sequences=[m], outputs_info=[pt.ones(m.shape[1])])
    first, *others = ([values(length, width)] for width in [1, 3])
    program = compare_onnx_and_py([m], [total, spread], first, also=others, rtol=RTOL)
    assert loops(program) == []


@pytest.mark.slow
def test_sum_of_sums(x, x0):
    y, z, product = scan(
        lambda e, y, z: (y + e, z + y, y * z), sequences=[x], outputs_info=[x0, x0, None]
    )
    program = compare_onnx_and_py([x, x0], [y, z, product], [values(7), 0.5], rtol=RTOL)
    assert loops(program) == []
    assert loops(compare_onnx_and_py([x, x0], product, [values(7), 0.5], rtol=RTOL)) == []


def test_sum_of_products_of_matrices(m):
    w = pt.matrix("w")
    y = scan(lambda e, y: y + w @ e, sequences=[m], outputs_info=[pt.zeros(w.shape[0])])
    inputs, arrays = [m, w], [values(5, 3), values(2, 3)]
    assert loops(compare_onnx_and_py(inputs, [y, y[-1]], arrays, rtol=RTOL)) == []
    gradients = pt.grad((y**2).sum(), [m, w])
    compare_onnx_and_py(inputs, gradients, arrays, rtol=RTOL)


MAPS = {
    "reduction": lambda row: row.sum() * row.max(),
    "elementwise": lambda row: pt.exp(row) * row.sum(),
    "product": lambda row: pt.outer(row, row).sum(axis=0),
    "slices": lambda row: row[1:] - row[:-1],
    "element": lambda row: row[-1],
    "joined": lambda row: pt.concatenate([row, -row[::-1]]),
    "constant": lambda row: pt.zeros(2),
    "softmax": pt.special.softmax,
}


@pytest.mark.parametrize("function", MAPS.values(), ids=MAPS)
def test_map(m, function):
    first, *others = ([values(length, 3)] for length in [1, 2, 50])
    program = compare_onnx_and_py([m], scan(function, sequences=[m]), first, also=others)
    assert loops(program) == []


@pytest.mark.slow
@pytest.mark.parametrize("function", [MAPS["elementwise"], MAPS["product"], MAPS["slices"]])
def test_gradient_of_a_map(m, function):
    y = scan(function, sequences=[m])
    program = compare_onnx_and_py([m], pt.grad((y**2).sum(), m), [values(4, 3)], rtol=RTOL)
    assert loops(program) == []


def test_gradients_of_steps_with_branches_are_finite_where_the_other_branch_is_infinite(x):
    def step(row):
        p = pt.sigmoid(row) ** np.array([0.0, 1.0, 0.0])
        logp = pt.switch(np.array([True, False, True]), pt.log(p), pt.log1p(-p)).sum()
        return pt.grad(logp, row)

    # In Python, without rewrites, the gradient is NaN; in mode NUMBA it is finite.
    found = compile_onnx([x], scan(step, sequences=[x]))(values(4))
    np.testing.assert_allclose(found, -1 / (1 + np.exp(-values(4))), rtol=1e-12)


def test_map_of_no_rows_knows_the_size_of_a_row(m):
    run = compile_onnx([m], scan(lambda row: pt.exp(row) * row.sum(), sequences=[m]))
    assert run(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("kept", [-1, slice(-3, None)])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_last_values_of_a_map(m, kept, length):
    y = scan(lambda row: row.sum() + row, sequences=[m])
    program = compare_onnx_and_py([m], y[kept], [values(length, 3)])
    assert loops(program) == []
    first = next(iter(program.model.graph))
    assert first.op_type in ("Shape", "Slice", "Gather"), "only the rows that are kept are computed"


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_elements_by_a_counter(x, length):
    y = scan(lambda i, x: x[i] * 2 + x[0], sequences=[pt.arange(x.shape[0])], non_sequences=[x])
    assert loops(compare_onnx_and_py([x], y, [values(length)])) == []


def test_rows_by_given_indices(m):
    where = pt.lvector("where")
    y = scan(lambda i, m: m[i].sum() + m[:, i], sequences=[where], non_sequences=[m])
    first, *others = ([values(3, 3), np.array(indices)] for indices in [[0], [2, 2, -1]])
    program = compare_onnx_and_py([m, where], y, first, also=others)
    assert loops(program) == []


@pytest.mark.slow
def test_jacobian(x):
    jacobian = pytensor.gradient.jacobian(pt.tanh(x) * x.sum(), x)
    first, *others = ([values(length)] for length in LENGTHS)
    program = compare_onnx_and_py([x], jacobian, first, also=others, rtol=RTOL)
    assert loops(program) == []


def test_length_known():
    x = pt.matrix("x", shape=(4, 3))
    y = scan(lambda e, y: y + e, sequences=[x], outputs_info=[pt.zeros(3)])
    z = scan(lambda e: e * e.sum(), sequences=[x])
    assert loops(compare_onnx_and_py([x], [y, z], [values(4, 3)], rtol=RTOL)) == []


STAYING = {
    "a recurrence of second degree": lambda e, y: 0.5 * y * y + e,
    "a function of the state": lambda e, y: y + e * pt.tanh(y),
    "a condition": lambda e, y: ifelse(e > 1, y + e, y),
    "a check": lambda e, y: y + Assert("small")(e, e < 10),
}


@pytest.mark.parametrize("step", STAYING.values(), ids=STAYING)
def test_others_stay_loops(x, x0, step):
    y = scan(step, sequences=[x], outputs_info=[x0])
    assert len(loops(compare_onnx_and_py([x, x0], y, [values(5), 0.5]))) == 1


def test_sequence_that_may_be_too_short_is_summed_after_a_check(x, x0):
    n = pt.iscalar("n")
    y = scan(lambda e, y: y + e, sequences=[x], outputs_info=[x0], n_steps=n)
    program = compare_onnx_and_py([x, x0, n], [y, y[-1]], [values(7), 0.5, 5], rtol=RTOL)
    assert loops(program) == []
    with pytest.raises(ValueError, match="ends before its steps do"):
        program(np.ones(3), 0.0, 5)


SLICES = {
    "growing": lambda i, x: x[:i].sum(),
    "past the end": lambda i, x: x[i : i + 3].max(),
    "backwards": lambda i, x: x[i::-1].prod(),
}


@pytest.mark.parametrize("step", SLICES.values(), ids=SLICES)
def test_slices_of_different_lengths(x, step):
    y = scan(step, sequences=[pt.arange(1, x.shape[0])], non_sequences=[x])
    compare_onnx_and_py([x], [y, pt.grad(y.sum(), x)], [values(5)], rtol=RTOL)
