"""Models are changed so that the target runs them, with the same results, and no further."""

import functools
import itertools
import re

import numpy as np
import onnx
import onnx_ir as ir
import pytensor.tensor as pt
import pytest
from onnx_ir.passes.common import InlinePass

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.forms.exact import LIFTED
from tests.passes.conftest import Bare, bare, bare_op

NAN = np.nan
LARGE = 2**53
X = np.array([[1.0, -2.0, 0.5], [0.25, 4.0, -8.0]])


def reduced(build: Builder, op_type: str, value: ir.Value, axes=None, **attributes) -> ir.Value:
    given = [] if axes is None else [build.ints(axes)]
    return build.op(op_type, value, *given, **attributes)


def reduction(op_type: str, x, axes=None, **attributes) -> Bare:
    return bare(lambda build, value: reduced(build, op_type, value, axes, **attributes), x)


def assert_reductions(op_type: str, f, arrays, all_axes) -> None:
    """Compare the reductions of arrays along axes, with and without these, in one model."""
    cases = list(itertools.product(range(len(arrays)), all_axes, (0, 1)))

    def emit(build: Builder, *values: ir.Value) -> list[ir.Value]:
        return [reduced(build, op_type, values[i], a, keepdims=keep) for i, a, keep in cases]

    model = bare(emit, *arrays)
    model.legalise()
    for found, (i, axes, keepdims) in zip(model.run(), cases, strict=True):
        x = arrays[i]
        expected = f(x, axis=None if axes is None else tuple(axes), keepdims=bool(keepdims))
        case = f"{op_type} of {x.dtype} {x.shape} along {axes}, keepdims={keepdims}"
        np.testing.assert_array_equal(found, expected, strict=True, err_msg=case)


# Integer reductions


@pytest.mark.parametrize(
    ("op_type", "values", "expected"),
    [
        ("ReduceSum", [LARGE, 1], LARGE + 1),
        ("ReduceSum", [2**63 - 1, 1], -(2**63)),
        ("ReduceProd", [LARGE + 1, 3], 3 * LARGE + 3),
        ("ReduceProd", [2**62, 2, 3], -(2**63)),
        ("ReduceL1", [-LARGE, 1], LARGE + 1),
        ("ReduceSumSquare", [3 * 10**8 + 1, 1], (3 * 10**8 + 1) ** 2 + 1),
    ],
)
def test_integer_reductions_are_exact_and_wrap_around(op_type, values, expected):
    model = reduction(op_type, np.array(values), keepdims=0)
    model.legalise()
    assert model.run()[0] == expected


@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint64"])
@pytest.mark.parametrize(("op_type", "combine"), [("ReduceSum", np.sum), ("ReduceProd", np.prod)])
def test_integer_reductions_wrap_around_in_every_dtype(op_type, combine, dtype):
    x = np.array([np.iinfo(dtype).max, 2, 7, 5], dtype)
    model = reduction(op_type, x, keepdims=0)
    model.legalise()
    assert model.run()[0] == combine(x, dtype=dtype)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_integer_products_of_any_length_are_right(n):
    x = np.arange(2 * n).reshape(n, 2) - 3
    model = reduction("ReduceProd", x, [0], keepdims=0)
    model.legalise()
    np.testing.assert_array_equal(model.run()[0], x.prod(0))


# NaN


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("op_type", "f"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
def test_extremum_is_nan_wherever_the_nan_stands(op_type, f, dtype):
    arrays = []
    for position in np.ndindex(X.shape):
        x = X.astype(dtype)
        x[position] = NAN
        arrays.append(x)
    assert_reductions(op_type, f, arrays, [[0], [1], [0, 1], None])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("op_type", "f"), [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
def test_position_of_the_extremum_is_that_of_the_first_nan(op_type, f, axis, dtype):
    model = bare_op(op_type, X.astype(dtype), axis=axis, keepdims=0)
    model.legalise()
    for first, second in itertools.combinations(list(np.ndindex(X.shape)), 2):
        x = model.feeds["x0"] = X.astype(dtype)
        x[first] = x[second] = NAN
        np.testing.assert_array_equal(model.run()[0], f(x, axis=axis))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ArgMax", "ArgMin"])
def test_assume_finite_leaves_reductions_bare(op_type):
    attributes = {"axis": 1} if op_type.startswith("Arg") else {}
    model = bare_op(op_type, X, **attributes)
    assert model.legalise(assume_finite=True) == []
    assert model.operators() == [op_type]


# Int64 order, ranges, remainders

TRICKY = np.array([2**31, 7, 2**32 - 1, -(2**31) - 1, 3, -(2**33), 0, 2**31 + 9, -1])


@pytest.mark.parametrize(
    ("op_type", "others", "expected"),
    [
        ("Max", [np.int64(8)], np.maximum(TRICKY, 8)),
        (
            "Max",
            [np.int64(8), TRICKY[::-1].copy()],
            np.maximum(np.maximum(TRICKY, 8), TRICKY[::-1]),
        ),
        ("Max", [], TRICKY),
        ("Min", [np.int64(8)], np.minimum(TRICKY, 8)),
        ("Clip", [np.int64(8), np.int64(2**32)], np.clip(TRICKY, 8, 2**32)),
        ("Clip", [np.int64(8)], np.maximum(TRICKY, 8)),
        ("Sign", [], np.sign(TRICKY)),
        ("Relu", [], np.maximum(TRICKY, 0)),
    ],
)
def test_int64_is_compared_as_a_whole(op_type, others, expected):
    model = bare_op(op_type, TRICKY, *others)
    model.legalise()
    np.testing.assert_array_equal(model.run()[0], expected)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_sizes_are_compared_by_one_operator(op_type):
    def emit(build, x):
        size = build.Shape(x)
        (checked,) = build.cond(
            build.Equal(build.Size(x), 6), lambda inner: [size], lambda inner: [inner.Add(size, 1)]
        )
        return build.op(op_type, build.Sub(checked, 2), 0)

    model = bare(emit, np.zeros((1, 6)))
    assert model.legalise() == []
    np.testing.assert_array_equal(model.run()[0], [0, 4] if op_type == "Max" else [-1, 0])


def test_clip_may_lack_its_lower_bound():
    model = bare(lambda build, x: build.Clip(x, None, np.int64(2**32 - 2)), TRICKY)
    model.legalise()
    np.testing.assert_array_equal(model.run()[0], np.minimum(TRICKY, 2**32 - 2))


@pytest.mark.parametrize(("op_type", "f"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
def test_extremum_of_wide_integers_is_right(op_type, f):
    arrays = [TRICKY.reshape(3, 3).astype(dtype) for dtype in ("int64", "uint32", "uint64")]
    assert_reductions(op_type, f, arrays, [None, [0], [1], [-1], [0, 1], [1, 0]])


def test_extremum_of_a_number_is_the_number():
    model = reduction("ReduceMax", np.int64(2**31), keepdims=0)
    model.legalise()
    assert model.run()[0] == 2**31


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (LARGE + 1, LARGE + 3, 1),
        (LARGE + 3, LARGE + 1, -1),
        (0, 2**60 + 1, 2**59),
        (2**62, 2**62 + 7, 3),
        (-(2**63), 2**63 - 1, 2**62),
        (2**63 - 1, -(2**63), -(2**63)),
        (5, 5, 1),
        (5, 4, 1),
        (4, 5, -1),
        (-(2**63), -(2**63) + 3, 2),
        (1, 10, 4),
        (10, 1, -3),
    ],
)
def test_ranges_of_large_numbers_have_the_right_elements(start, stop, step):
    model = bare_op("Range", *map(np.int64, (start, stop, step)))
    assert model.legalise() == ["Range of int64 made exact"]
    # Not np.arange, which counts in double as well.
    assert model.run()[0].tolist() == list(range(start, stop, step))


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 2**63 - 1, -1), (-(2**63), 2**63 - 1, -1)])
def test_no_range_divides_the_smallest_number_by_minus_one(start, stop, step):
    model = bare_op("Range", *map(np.int64, (start, stop, step)))
    model.legalise()
    assert model.run()[0].size == 0


def test_range_of_a_count_is_left_alone():
    model = bare(lambda build, n: build.Range(np.int64(0), n, np.int64(1)), np.int64(4))
    assert model.legalise() == []
    assert list(model.run()[0]) == [0, 1, 2, 3]


def test_truncated_remainder_of_large_integers_is_exact():
    x, y = np.array([LARGE + 1, -LARGE - 1, 2**62 + 3]), np.array([2, 2, -5])
    model = bare_op("Mod", x, y, fmod=1)
    model.legalise()
    np.testing.assert_array_equal(model.run()[0], [1, -1, 2])
    assert list(np.fmod(x, y)) == [1, -1, 2]


# Casts


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_narrow_integers_computed_wider_wrap_around(dtype):
    info = np.iinfo(dtype)
    x = np.array([[info.max, info.min], [info.max, 3]], dtype)
    model = bare(lambda build, v: build.Einsum(v, v, equation="ij,jk->ik"), x)
    assert model.legalise() == [f"Einsum of {dtype} computed in int32: no kernel"]
    np.testing.assert_array_equal(model.run()[0], x @ x, strict=True)


@pytest.mark.parametrize("dtype", ["bool", "uint16", "uint32", "uint64", "int8", "int16"])
def test_where_selects_in_dtypes_without_a_kernel(dtype):
    x = np.array([0, 1, 255, 254, 2**63 - 1, 7]).astype(dtype)
    condition = np.array([[True, False, True, False, True, False], [False] * 6])
    for target in ("onnxruntime", "web"):
        model = bare_op("Where", condition, x, x[::-1].copy())
        model.legalise(target)
        expected = np.where(condition, x, x[::-1])
        np.testing.assert_array_equal(model.run()[0], expected, strict=True)


@pytest.mark.slow
def test_no_double_is_narrowed():
    x, y = pt.matrices("x", "y")
    unary = [pt.erf, pt.erfc, pt.tan, pt.arcsin, pt.arccosh, pt.tanh, pt.sigmoid, pt.softplus]
    outputs = [f(x) for f in unary]
    outputs += [pt.special.softmax(x @ y, axis=1), x.max(axis=0), x.argmax(axis=1), x % y, x // y]
    outputs += [pt.switch(x > 0, x, y), pt.log1p(x), x.sum(), x.prod(), x.mean(), pt.round(x)]
    outputs += pt.grad(pt.log1pexp(x @ y).sum(), [x, y])
    program = export_onnx([x, y], outputs, verify=False)
    proto = ir.to_proto(InlinePass()(ir.from_proto(program.proto)).model)
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    types = {v.type.tensor_type.elem_type for v in inferred.graph.value_info}
    floats = {t for t in types if onnx.TensorProto.DataType.Name(t).startswith(("FLOAT", "BFLOAT"))}
    assert onnx.TensorProto.DOUBLE in types
    assert floats == set()


# Zero dimensions and empty arrays


FLOAT_ONLY = {"Softmax", "LogSoftmax", "Hardmax"}


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [(op_type, "float32") for op_type in sorted(LIFTED)]
    + [(op_type, "int64") for op_type in LIFTED if op_type not in FLOAT_ONLY],
)
def test_operators_along_an_axis_serve_a_number(op_type, dtype):
    x = np.array(3, dtype)
    expected = {"Softmax": 1, "LogSoftmax": 0, "Hardmax": 1, "ArgMax": 0, "ArgMin": 0}
    axis = [np.int64(0)] if op_type.startswith("Cum") else []
    model = bare_op(op_type, x, *axis, opset=26 if op_type == "CumProd" else 21)
    assert model.legalise()[0] == f"{op_type} of a 0-d value lifted to one dimension"
    (found,) = model.run()
    assert found == expected.get(op_type, 3)
    assert found.shape == ()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "float64"])
@pytest.mark.parametrize(("op_type", "f"), [("ReduceSum", np.sum), ("ReduceProd", np.prod)])
def test_sum_and_product_of_no_elements_are_those_of_numpy(op_type, f, dtype):
    arrays = [np.full(shape, 3, dtype) for shape in ((0, 3), (3, 0), (0, 0), (2, 3))]
    assert_reductions(op_type, functools.partial(f, dtype=dtype), arrays, [[0], [1], [0, 1]])


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [("ReduceMax", "int64"), ("ReduceMin", "uint64"), ("ArgMax", "float64"), ("ArgMin", "int64")],
)
def test_extremum_of_nothing_is_an_error_and_none_of_no_rows_is_empty(op_type, dtype):
    if op_type.startswith("Arg"):
        model = bare_op(op_type, np.zeros((3, 4), dtype), axis=1, keepdims=0)
    else:
        model = reduction(op_type, np.zeros((3, 4), dtype), [1], keepdims=0)
    model.legalise()
    model.feeds["x0"] = np.zeros((0, 4), dtype)
    assert model.run()[0].shape == (0,)
    model.feeds["x0"] = np.zeros((3, 0), dtype)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        model.run()


# Nodes left alone, refused, reported


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [
        ("Acos", [X.astype("float32")]),
        ("Tan", [X.astype("float32")]),
        ("Tanh", [X]),
        ("ReduceMax", [X]),
        ("ReduceSum", [X.astype(int)]),
        ("Max", [X.astype(int), X.astype(int)]),
    ],
)
def test_portable_leaves_operators_alone(op_type, operands):
    model = bare_op(op_type, *operands)
    assert model.legalise("portable") == []
    assert model.operators() == [op_type]
    assert not model.model.functions


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [
        ("Add", [X, X]),
        ("Exp", [X]),
        ("Where", [X > 0, X, X]),
        ("NonMaxSuppression", [np.ones((1, 2, 4), "float32"), np.ones((1, 1, 2), "float32")]),
    ],
)
def test_nodes_with_correct_kernels_are_unchanged(op_type, operands):
    model = bare_op(op_type, *operands)
    assert model.legalise() == []
    assert model.operators() == [op_type]


def test_all_nodes_that_cannot_run_are_listed_at_once():
    def emit(build: Builder, x: ir.Value) -> list[ir.Value]:
        (chosen,) = build.cond(
            build.Greater(build.Size(x), 3),
            lambda then: then.Det(x),
            lambda otherwise: otherwise.ReduceSum(x, keepdims=0),
        )
        return [
            chosen,
            build.call("Determinant", lambda build, x: build.Det(x), x),
            build.OneHot(build.cast(x, "int64"), np.array(3), np.array([0.0, 1.0])),
        ]

    with pytest.raises(UnsupportedOpError) as raised:
        bare(emit, np.eye(2)).legalise()
    assert str(raised.value).splitlines() == [
        "the target 'onnxruntime' cannot run these operations:",
        "- node 'det': Det of float64",
        "- node 'one_hot': OneHot of float64",
        "- node 'determinant_float64': Det of float64",
    ]


def test_changes_are_counted_by_kind():
    def emit(build: Builder, x: ir.Value) -> list[ir.Value]:
        largest = build.ReduceMax(build.Erf(build.Erf(x)))
        return [largest, build.ReduceSum(build.cast(x, "int64"), keepdims=0)]

    assert bare(emit, X).legalise() == [
        "Erf of float64 computed by a function: no kernel (2 times)",
        "ReduceMax of float64 guarded: NaN propagates",
        "ReduceSum of int64 made exact",
    ]


# Subgraphs, functions, new nodes


def in_branch(build: Builder, x: ir.Value) -> ir.Value:
    return build.cond(
        build.Greater(build.Size(x), 0),
        lambda then: then.ReduceMax(then.Erf(x), then.ints([0]), keepdims=0),
        lambda otherwise: otherwise.ReduceSum(x, otherwise.ints([0]), keepdims=0),
    )[0]


def in_loop(build: Builder, x: ir.Value) -> ir.Value:
    def step(body: Builder, i: ir.Value, state: ir.Value) -> ir.Value:
        return body.Add(state, body.ReduceMax(body.Erf(state), body.ints([0]), keepdims=1))

    return build.loop(build.constant(np.int64(2)), None, [x], step)[0]


def in_function(build: Builder, x: ir.Value) -> ir.Value:
    def body(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ReduceMax(inner.Erf(x), inner.ints([0]), keepdims=0)

    return build.call("Largest", body, x)


def in_nested_function(build: Builder, x: ir.Value) -> ir.Value:
    return build.call("Outer", lambda inner, x: in_branch(inner, in_function(inner, x)), x)


NESTED = {
    "branch": (in_branch, lambda erf, x: erf(x).max(0)),
    "loop": (
        in_loop,
        lambda erf, x: (y := x + erf(x).max(0, keepdims=True)) + erf(y).max(0, keepdims=True),
    ),
    "function": (in_function, lambda erf, x: erf(x).max(0)),
    "nested function": (in_nested_function, lambda erf, x: erf(erf(x).max(0)).max(0)),
}


@pytest.mark.parametrize("where", NESTED)
@pytest.mark.parametrize("with_nan", [False, True])
def test_inner_graphs_are_legalised(where, with_nan):
    from scipy.special import erf

    emit, reference = NESTED[where]
    x = X.copy()
    if with_nan:
        x[1, 1] = NAN
    model = bare(emit, x)
    model.legalise()
    np.testing.assert_allclose(model.run()[0], reference(erf, x), rtol=1e-15)


def test_operators_that_a_form_emits_are_legalised_too():
    """A maximum of uint64 is one of int64, which in turn is compared right."""
    x = np.array([2**63, 2**31, 7, 2**32], "uint64")
    model = reduction("ReduceMin", x, keepdims=0)
    assert model.legalise() == [
        "ReduceMin of uint64 computed in int64: no kernel",
        "ReduceMin of int64 made exact",
    ]
    assert model.run()[0] == 7


@pytest.mark.parametrize("emit", [emit for emit, _ in NESTED.values()])
def test_legalising_twice_changes_nothing(emit):
    model = bare(emit, X)
    assert model.legalise()
    once = ir.to_proto(model.model).SerializeToString()
    assert model.legalise() == []
    assert ir.to_proto(model.model).SerializeToString() == once


ALL = {
    "ArgMax": [X],
    "Softmax": [np.array(1.0)],
    "ReduceProd": [X.astype(int)],
    "Sign": [X.astype(int)],
    "Where": [X > 0, X > 1, X < 1],
    "Trilu": [X.astype("int8")],
    "Range": [np.int64(3), np.int64(9), np.int64(2)],
    "TopK": [X.astype("uint64"), np.array([2])],
}


@pytest.mark.parametrize("op_type", ALL)
def test_legalising_a_form_changes_nothing(op_type):
    model = bare_op(op_type, *ALL[op_type], outputs=2 if op_type == "TopK" else 1)
    assert model.legalise()
    once = model.operators()
    assert model.legalise() == []
    assert model.operators() == once


def whole(build: Builder, x: ir.Value) -> list[ir.Value]:
    i = build.cast(x, "int64")
    results = [emit(build, x) for emit, _ in NESTED.values()]
    return [*results, build.Sign(i), build.ReduceProd(i), build.Max(i, 5), build.ArgMax(x, axis=1)]


def test_names_are_unique_in_the_model_and_in_each_function():
    model = bare(whole, X)
    model.legalise()
    model.run()
    for graph in [model.model.graph, *model.model.functions.values()]:
        nodes = list(graph.all_nodes())
        values = [str(v.name) for node in nodes for v in node.outputs]
        values += [str(v.name) for v in graph.inputs]
        assert len(set(values)) == len(values)
        names = [str(node.name) for node in nodes]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-z][a-z0-9_.]*", name) for name in values)


def test_names_in_a_function_do_not_depend_on_the_rest_of_the_model():
    def busy(build: Builder, x: ir.Value) -> list[ir.Value]:
        return [build.Identity(build.Where(build.IsNaN(x), x, x)) for _ in range(5)] + [
            build.call(
                "Ordered", lambda build, i: build.Neg(build.Max(i, 3)), build.cast(x, "int64")
            )
        ]

    model = bare(busy, X)
    model.legalise()
    (function,) = model.model.functions.values()
    names = [v.name for node in function for v in node.outputs if node.op_type == "Where"]
    assert names == ["where"]


def test_no_constant_is_left_without_use():
    model = bare(whole, X)
    model.legalise()
    for value in model.model.graph.initializers.values():
        assert value.uses()


def test_every_dimension_is_named():
    """Unnamed dimensions make a runtime plan its memory in quadratic time."""
    model = bare(whole, X)
    model.legalise()
    for node in model.model.graph:
        for value in node.outputs:
            for dim in value.shape or ():
                assert isinstance(dim, int) or dim.value is not None


def test_provenance_goes_to_the_nodes_of_a_form():
    model = bare_op("Sign", TRICKY)
    for node in model.model.graph:
        node.metadata_props["pytensor.op"] = "Elemwise{sign}"
    model.legalise()
    assert {n.metadata_props["pytensor.op"] for n in model.model.graph} == {"Elemwise{sign}"}


def test_names_of_outputs_are_kept():
    model = bare_op("Sign", TRICKY)
    model.model.graph.outputs[0].name = "signs"
    model.legalise()
    assert [v.name for v in model.model.graph.outputs] == ["signs"]


# Opsets

FORMS = {
    "extremum": (
        lambda build, x: build.ReduceMax(x, build.ints([1]), keepdims=0),
        np.where(X > 3, NAN, X),
    ),
    "position": (lambda build, x: build.ArgMin(x, axis=1), np.where(X > 3, NAN, X)),
    "int64": (
        lambda build, x: [
            *(build.op(op, x, build.ints([0])) for op in ("ReduceMax", "ReduceProd", "ReduceSum")),
            *(build.Sign(x), build.Max(x, 3), build.Clip(x, 1, 5)),
        ],
        TRICKY.reshape(3, 3),
    ),
    "uint64": (
        lambda build, x: [
            build.ReduceMin(x, build.ints([0])),
            build.ArgMin(x, axis=0),
            build.CumSum(x, np.int64(0)),
            build.TopK(x, build.ints([1]), outputs=2)[0],
        ],
        TRICKY.reshape(3, 3).astype("uint64"),
    ),
    "functions": (
        lambda build, x: [build.op(op, x) for op in ("Erf", "Tan", "Sigmoid", "Asinh", "Softplus")],
        100 * X,
    ),
}


@pytest.mark.few(13)
@pytest.mark.parametrize("opset", [18, 19, 20, 22, 23, 24, 25, 26])
@pytest.mark.parametrize("form", FORMS)
def test_forms_run_in_every_opset_with_the_same_results(form, opset):
    emit, x = FORMS[form]
    results = []
    for version in (21, opset):
        model = bare(emit, x, opset=version)
        model.legalise()
        results.append(model.run())
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)
