"""Attention as its definition in NumPy has it, on every backend and in every form of export."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import InputError, export_onnx
from pytensor_onnx.nn import attention
from tests.conftest import RELATIVE_TOLERANCE, compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)
B, S, T, D, E = 2, 3, 5, 4, 6
PAST = ("past_key", "past_value")


def define(q, k, v, mask=None, *, is_causal=False, scale=None, softcap=0.0, past=()):
    """Loop over heads and queries in float64."""
    q, k, v = (x.astype("float64") for x in (q, k, v))
    if past:
        k, v = (np.concatenate([p, x], axis=2) for p, x in zip(past, (k, v), strict=True))
    first = past[0].shape[2] if past else 0
    shape = (*q.shape[:3], k.shape[2])
    mask = None if mask is None else np.broadcast_to(mask, shape)
    result = np.empty((*q.shape[:3], v.shape[3]))
    for b, h, i in np.ndindex(*q.shape[:3]):
        head = h // (q.shape[1] // k.shape[1])
        scores = k[b, head] @ q[b, h, i] * (q.shape[3] ** -0.5 if scale is None else scale)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        if is_causal:
            scores[first + i + 1 :] = -np.inf
        if mask is not None and mask.dtype == bool:
            scores[~mask[b, h, i]] = -np.inf
        elif mask is not None:
            scores = scores + mask[b, h, i]
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max())
        result[b, h, i] = weights / weights.sum() @ v[b, head]
    return result, k, v


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def arrays(dtype="float64", *, heads=2, kv_heads=2, s=S, t=T):
    shapes = [(B, heads, s, D), (B, kv_heads, t, D), (B, kv_heads, t, E)]
    return [RNG.normal(size=shape).astype(dtype) for shape in shapes]


def symbols(values, names=("q", "k", "v"), *, lengths=None):
    """Return variables that know the number of heads and their size."""
    return [
        pt.tensor(name, dtype=str(x.dtype), shape=(None, x.shape[1], lengths, x.shape[3]))
        for name, x in zip(names, values, strict=True)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.few(1)
def test_all_forms_agree_with_the_definition(dtype, kv_heads):
    values = arrays(dtype, heads=4, kv_heads=kv_heads)
    q, k, v = variables = symbols(values)
    bias = RNG.normal(size=(S, T)).astype(dtype)
    allowed = RNG.random((B, 4, S, T)) < 0.6
    allowed[..., 0] = True
    cases = [
        {},
        {"is_causal": True, "scale": 0.3},
        {"mask": bias},
        {"mask": allowed, "softcap": 1.5},
        {"mask": bias[None, None] * 2, "is_causal": True},
    ]
    results = [attention(q, k, v, **case) for case in cases]
    rtol = RELATIVE_TOLERANCE[dtype]
    compare_onnx_and_py(variables, results, values, rtol=rtol, atol=rtol)
    found = pytensor.function(variables, results, mode="ONNX")(*values)
    for case, result in zip(cases, found, strict=True):
        np.testing.assert_allclose(result, define(*values, **case)[0], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_may_be_merged_in_the_last_axis(kv_heads, is_causal):
    values = arrays(heads=4, kv_heads=kv_heads)
    merged = [merge(x) for x in values]
    names = [pt.tensor(shape=(None, None, x.shape[2])) for x in merged]
    result = attention(*names, is_causal=is_causal, q_num_heads=4, kv_num_heads=kv_heads)
    program = compare_onnx_and_py(names, result, merged)
    expected = merge(define(*values, is_causal=is_causal)[0])
    np.testing.assert_allclose(program(*merged)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("s", [1, 3])
@pytest.mark.parametrize("opset", [21, 23])
def test_past_keys_and_values_come_first_and_go_out(s, opset):
    values = arrays("float32", s=s, t=s)
    past = arrays("float32", t=7)[1:]
    new, old = symbols(values, lengths=s), symbols(past, PAST)
    results = attention(*new, is_causal=True, past_key=old[0], past_value=old[1])
    program = compare_onnx_and_py(
        [*new, *old],
        results,
        [*values, *past],
        rtol=1e-5,
        atol=1e-6,
        opset_version=opset,
    )
    found = program(*values, *past)
    for a, b in zip(found, define(*values, is_causal=True, past=past), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    lengths = [str(value.shape[2]) for value in program.model.graph.outputs[1:]]
    assert set(lengths) == {f"past_key_dim2+{s}"}


def test_one_new_query_meets_all_keys_without_a_mask():
    values, past = arrays("float32", s=1, t=1), arrays("float32", t=7)[1:]
    new, old = symbols(values, lengths=1), symbols(past, PAST)
    results = attention(*new, is_causal=True, past_key=old[0], past_value=old[1])
    program = export_onnx([*new, *old], results, verify=False)
    assert sorted(op_types(program)) == [
        *("Concat", "Concat", "MatMul", "MatMul", "Mul", "Softmax", "Transpose")
    ]


def test_attention_is_one_operator_from_opset_23_on_where_onnx_says_the_same():
    values = arrays("float32")
    variables = symbols(values)
    mask = pt.matrix("mask", dtype="float32")
    for opset in (23, 24, 26):
        program = export_onnx(variables, attention(*variables), opset_version=opset)
        assert op_types(program) == ["Attention"]
        np.testing.assert_allclose(program(*values), define(*values)[0], rtol=1e-5, atol=1e-6)
    masked = export_onnx([*variables, mask], attention(*variables, mask), opset_version=23)
    assert "Attention" not in op_types(masked)
    wide = symbols(arrays("float64"))
    assert "Attention" not in op_types(export_onnx(wide, attention(*wide), opset_version=23))


def test_short_form_equals_one_written_by_hand():
    variables = symbols(arrays("float32"), lengths=T)
    mask = pt.tensor("mask", dtype="float32", shape=(T, T))
    program = export_onnx([*variables, mask], attention(*variables, mask))
    assert op_types(program) == ["Transpose", "MatMul", "Mul", "Add", "Softmax", "MatMul"]


def test_grouped_heads_are_not_repeated():
    values = arrays(heads=4, kv_heads=2)
    widths = [x.shape[1] * x.shape[3] for x in values]
    q, k, v = (pt.tensor(shape=(None, T, width), dtype="float32") for width in widths)
    program = export_onnx([q, k, v], attention(q, k, v, q_num_heads=4, kv_num_heads=2))
    assert set(op_types(program)) == {
        *("Reshape", "Transpose", "Unsqueeze", "MatMul", "Mul", "Softmax")
    }


def test_query_that_meets_no_key_gives_nan_and_no_queries_give_nothing():
    values = arrays()
    mask = np.ones((S, T), bool)
    mask[1] = False
    allowed = pt.matrix("allowed", dtype="bool")
    variables = symbols(values)
    program = compare_onnx_and_py(
        [*variables, allowed], attention(*variables, allowed), [*values, mask]
    )
    (found,) = program(*values, mask)
    np.testing.assert_array_equal(np.isnan(found).all(axis=(0, 1, 3)), [False, True, False])
    compare_onnx_and_py(variables, attention(*variables), arrays(s=0))


def test_nan_and_infinity_reach_only_results_that_use_them():
    values = arrays(t=S)
    values[0][0, 0, 1] = np.nan
    values[2][1, 1, 2, 0] = np.inf
    variables = symbols(values)
    result = attention(*variables, is_causal=True)
    compare_onnx_and_py(variables, result, values)


def gradients(result, variables):
    return pt.grad((result * pt.arange(result.size).reshape(result.shape)).sum(), variables)


@pytest.mark.parametrize("case", [{"is_causal": True}, {"softcap": 2.0, "scale": 0.2}], ids=str)
def test_gradients_are_the_slopes_of_the_definition(case):
    values = [*arrays(heads=4, kv_heads=2, s=2, t=2), RNG.normal(size=(2, 2))]
    variables = [*symbols(values[:3]), pt.matrix("mask")]
    result = attention(*variables, **case)
    program = export_onnx(variables, gradients(result, variables))

    def cost(values):
        found = define(*values, **case)[0]
        return (found * np.arange(found.size).reshape(found.shape)).sum()

    directions = [RNG.normal(size=x.shape) for x in values]
    for i, (direction, found) in enumerate(zip(directions, program(*values), strict=True)):
        moved = [
            [x + step * direction if i == j else x for j, x in enumerate(values)]
            for step in (1e-6, -1e-6)
        ]
        slope = (cost(moved[0]) - cost(moved[1])) / 2e-6
        # Central differences with a step of 1e-6 have an error of about 1e-9 relative to the cost.
        np.testing.assert_allclose((found * direction).sum(), slope, rtol=1e-6, atol=1e-6)


def test_boolean_masks_do_not_stand_in_the_way_of_gradients():
    values = arrays()
    variables = symbols(values)
    allowed = pt.matrix("allowed", dtype="bool")
    result = attention(*variables, allowed)
    mask = np.tri(S, T, dtype=bool)
    inputs = [*variables, allowed]
    compare_onnx_and_py(inputs, gradients(result, variables), [*values, mask], rtol=1e-10)


@pytest.mark.compiled
def test_numba_computes_and_differentiates_the_same():
    values = arrays()
    variables = symbols(values)
    result = attention(*variables, is_causal=True)
    outputs = [result, *gradients(result, variables)]
    found, expected = (
        pytensor.function(variables, outputs, mode=mode)(*values) for mode in ("NUMBA", "ONNX")
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_batches_that_differ_are_refused():
    q, k, v = values = arrays()
    variables = symbols(values)
    program = export_onnx(variables, attention(*variables))
    with pytest.raises(InputError, match="q_dim0"):
        program(q, k[:1], v)


@pytest.mark.parametrize(
    ("shapes", "options", "error", "message"),
    [
        (((2, 4, 3, 5),) * 2 + ((2, 3, 5),), {}, ValueError, "rank"),
        (((2, 4, 3, 5), (2, 3, 3, 5), (2, 3, 3, 5)), {}, ValueError, "4 heads of queries"),
        (((2, 3, 12),) * 3, {}, ValueError, "numbers of heads"),
        (((2, 3, 12),) * 3, {"q_num_heads": 5}, ValueError, "width 12, which 5 heads"),
        (((2, 4, 3, 5),) * 3, {"q_num_heads": 4}, ValueError, "numbers of heads"),
        (((2, 4, 3, 5),) * 3, {"past_key": pt.tensor4("p")}, ValueError, "together"),
        (((2, 4, 3, 5),) * 3, {"mask": pt.lmatrix("m")}, TypeError, "mask of bool or float64"),
        (((2, 4, 3, 5),) * 3, {"mask": np.ones((4, 3))}, ValueError, "mask that broadcasts"),
        (((2, 3, 12),) * 3, {"mask": np.ones((2, 1, 3)), "q_num_heads": 4}, ValueError, "mask"),
    ],
)
def test_operands_that_do_not_fit_are_named(shapes, options, error, message):
    q, k, v = (pt.tensor(shape=shape) for shape in shapes)
    with pytest.raises(error, match=message):
        attention(q, k, v, **options)


def test_dtypes_do_not_mix():
    q, k = pt.tensor4("q", dtype="float32"), pt.tensor4("k", dtype="float64")
    with pytest.raises(TypeError, match="floats of one dtype"):
        attention(q, k, k)


def test_one_batch_of_queries_is_repeated_for_several_of_keys():
    q, k, v = arrays("float32")
    one = pt.tensor("q", dtype="float32", shape=(1, *q.shape[1:]))
    keys, values = symbols([k, v], ("k", "v"))
    result = attention(one, keys, values)
    outputs = [result, result.shape]
    program = export_onnx([one, keys, values], outputs, opset_version=23)
    found, shape = program(q[:1], k, v)
    expected = define(np.repeat(q[:1], B, axis=0), k, v)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert tuple(shape) == expected.shape
