"""Operators that move, reduce and multiply arrays compute as ONNX Runtime's kernels do."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pytensor_onnx.kernels import regions
from tests.kernels.conftest import assert_same_bits, model_of, open_session, values

KINDS = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
KINDS |= {"int32": TensorProto.INT32, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}
MOST = 2**63 - 1


def ints(*numbers):
    return np.array(numbers, "int64")


# Operator, shape of its data, its other operands, attributes.
MOVES = [
    ("Slice", (6, 4), [ints(1), ints(5), ints(0), ints(2)], {}),
    ("Slice", (6, 4), [ints(-1, 3), ints(-MOST, 0), ints(0, 1), ints(-2, -1)], {}),
    ("Slice", (6, 4), [ints(2), ints(MOST), ints(-1)], {}),
    ("Slice", (6, 4), [ints(4, 9), ints(2, 12)], {}),
    ("Slice", (0, 4), [ints(0), ints(2)], {}),
    ("Slice", (5,), [ints(-9), ints(9), ints(0), ints(3)], {}),
    ("Transpose", (2, 3, 4), [], {"perm": [2, 0, 1]}),
    ("Transpose", (1, 5), [], {}),
    ("Transpose", (0, 5), [], {}),
    ("Reshape", (2, 6), [ints(3, -1)], {}),
    ("Reshape", (2, 6), [ints(0, 2, 3)], {}),
    ("Reshape", (0, 6), [ints(6, 0)], {"allowzero": 1}),
    ("Squeeze", (1, 3, 1), [ints(-1)], {}),
    ("Squeeze", (1, 3, 1), [], {}),
    ("Unsqueeze", (3,), [ints(0, -1)], {}),
    ("Unsqueeze", (), [ints(0)], {}),
    ("Flatten", (2, 3, 4), [], {"axis": 2}),
    ("Expand", (3, 1), [ints(2, 1, 4)], {}),
    ("Expand", (), [ints(3)], {}),
    ("Expand", (1,), [ints(0)], {}),
    ("Tile", (2, 3), [ints(2, 3)], {}),
    ("Pad", (2, 3), [ints(1, 0, 0, 2)], {}),
    ("Pad", (3, 4, 2), [ints(-1, 2, 0, 1, -3, 0)], {}),
    ("Pad", (3,), [ints(-1, -1)], {}),
    ("Pad", (3,), [ints(-3, 2)], {}),
    ("Pad", (2, 3), [ints(2, 0, 1, 5)], {"mode": "edge"}),
    ("Pad", (3, 4, 2), [ints(2, 0, 1, 0, 3, 1)], {"mode": "reflect"}),
    ("Pad", (3, 2), [ints(3, 0, 0, 2)], {"mode": "wrap"}),
    ("Pad", (0, 2), [ints(0, 1, 0, 0)], {"mode": "edge"}),
    ("Trilu", (3, 5), [ints(1)[0]], {"upper": 0}),
    ("Trilu", (2, 4, 3), [ints(-1)[0]], {"upper": 1}),
    ("Trilu", (3, 3), [], {}),
    ("Gather", (5, 3), [ints(4, -5, 0)], {}),
    ("Gather", (5, 3), [ints(2)[0]], {"axis": 1}),
    ("Gather", (5,), [ints(-1)[0]], {}),
    ("Gather", (2, 3, 2), [np.array([[0, 2], [-1, 1]], "int32")], {"axis": -2}),
    ("Gather", (4,), [np.zeros((0, 2), "int64")], {}),
    ("GatherElements", (4, 3), [np.array([[0, -1], [1, 2]])], {"axis": 1}),
    ("GatherElements", (4, 3), [np.array([[3, 0, -2]])], {"axis": 0}),
    ("GatherND", (4, 3, 2), [np.array([[0, 2], [-1, 1]])], {}),
    ("GatherND", (4, 3), [np.array([[2], [0], [1], [-1]])], {"batch_dims": 1}),
]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("name", "shape", "others", "attributes"), MOVES)
def test_moved_elements(name, shape, others, attributes, dtype, run_both):
    if name == "Trilu" and dtype == "uint8":
        pytest.skip("ONNX Runtime has no kernel to compare with")
    feed = {"a": values(dtype, shape)}
    constants = {f"c{i}": value for i, value in enumerate(others)}
    node = helper.make_node(name, ["a", *constants], ["out"], **attributes)
    model = model_of([node], feed, {"out": KINDS[dtype]}, constants)
    [expected], [found] = run_both(model, feed)
    assert_same_bits(found, expected)


@pytest.mark.parametrize(("dtype", "shape"), [("float64", (0, 300)), ("bool", (1, 60))])
def test_a_constant_of_more_elements_than_words(dtype, shape, run_both):
    """The reader compares the bytes of a constant with the tape: it may have few bytes or none."""
    feed, constants = {"a": values(dtype, (2, shape[1]))}, {"c": values(dtype, shape)}
    node = helper.make_node("Concat", ["a", "c"], ["out"], axis=0)
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}, constants), feed)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined_and_split_arrays(axis, dtype, run_both):
    feed = {"a": values(dtype, (2, 3, 2)), "b": values(dtype, (2, 3, 2), 1)}
    nodes = [
        helper.make_node("Concat", ["a", "b", "a"], ["joined"], axis=axis),
        helper.make_node("Split", ["joined"], ["x", "y", "z"], axis=axis, num_outputs=3),
    ]
    outputs = dict.fromkeys(("joined", "x", "y", "z"), KINDS[dtype])
    for expected, found in zip(*run_both(model_of(nodes, feed, outputs), feed), strict=True):
        assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scattered_elements(reduction, dtype, run_both):
    feed = {
        "a": values(dtype, (4, 3)),
        "u": values(dtype, (2, 3), 1),
        "w": values(dtype, (3, 3), 2),
    }
    feed |= {"i": np.array([[0, -1, 2], [0, 1, 2]]), "j": np.array([[1], [-2], [1]])}
    nodes = [
        helper.make_node("ScatterElements", ["a", "i", "u"], ["x"], reduction=reduction),
        helper.make_node("ScatterND", ["a", "j", "w"], ["y"], reduction=reduction),
    ]
    model = model_of(nodes, feed, {"x": KINDS[dtype], "y": KINDS[dtype]})
    for expected, found in zip(*run_both(model, feed), strict=True):
        assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(("count", "size"), [(64, 32), (300, 1), (2000, 37), (5000, 203)])
def test_parts_added_at_known_places_are_added_in_their_order(
    count, size, is_sorted, dtype, run_both
):
    rng = np.random.default_rng(count)
    # Sums of many different numbers of parts.
    places = (rng.uniform(size=count) ** 3 * size).astype("int64")
    places = np.sort(places) if is_sorted else places
    feed = {"a": values(dtype, size), "u": rng.normal(size=count).astype(dtype)}
    feed["u"][::97] = np.resize([np.inf, -0.0, np.nan, 1e30], len(feed["u"][::97]))
    node = helper.make_node("ScatterND", ["a", "i", "u"], ["out"], reduction="add")
    model = model_of([node], feed, {"out": KINDS[dtype]}, {"i": places[:, None]})
    _, [found] = run_both(model, feed)
    with np.errstate(all="ignore"):
        expected = feed["a"].copy()
        np.add.at(expected, places, feed["u"])
    assert_same_bits(found, expected)


@pytest.mark.parametrize("name", ["Gather", "GatherElements", "ScatterElements", "GatherND"])
@pytest.mark.parametrize("index", [4, -5, MOST, -MOST])
def test_index_out_of_range_is_an_error(name, index, run_both):
    feed = {"a": np.arange(4.0), "i": ints(index, 0)}
    feed["i"] = feed["i"][:1, None] if name == "GatherND" else feed["i"]
    inputs = ["a", "i"]
    if name == "ScatterElements":
        feed["u"] = np.arange(2.0)
        inputs.append("u")
    model = model_of([helper.make_node(name, inputs, ["out"])], feed, {"out": KINDS["float64"]})
    with pytest.raises(Exception, match=r"bound|ind(ex|ices)"):
        run_both(model, feed)
    fused = open_session(regions.fuse(model.SerializeToString()).model, with_library=True)
    with pytest.raises(
        onnxruntime.capi.onnxruntime_pybind11_state.Fail, match=r"out of data bounds"
    ):
        fused.run(None, feed)


@pytest.mark.parametrize("name", ["GatherND", "ScatterND"])
@pytest.mark.parametrize("place", [(4, 0), (0, 3), (-5, 0), (0, -4), (MOST, 0), (0, -MOST)])
def test_a_place_of_two_indices_out_of_range_is_an_error(name, place, monkeypatch):
    monkeypatch.setattr(regions, "FEWEST_NODES", 1)
    feed = {"a": np.arange(12.0).reshape(4, 3), "i": np.array([[1, 2], place])}
    if name == "ScatterND":
        feed["u"] = np.arange(2.0)
    model = model_of([helper.make_node(name, list(feed), ["out"])], feed, {"out": KINDS["float64"]})
    fused = open_session(regions.fuse(model.SerializeToString()).model, with_library=True)
    with pytest.raises(Exception, match=r"out of data bounds"):
        fused.run(None, feed)


EXTREMES = ["ReduceMax", "ReduceMin"]
SUMS = ["ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum"]
AXES = [None, (0,), (1,), (-1,), (0, 2), (1, 2), (0, 1)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8"])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name, axes, dtype, run_both):
    feed = {"a": values(dtype, (5, 4, 6))}
    if feed["a"].dtype.kind == "f":
        feed["a"] = np.where(np.isnan(feed["a"]) | (feed["a"] == 0), np.ones((), dtype), feed["a"])
    constants = {} if axes is None else {"axes": ints(*axes)}
    for keeps in (0, 1):
        node = helper.make_node(name, ["a", *constants], ["out"], keepdims=keeps)
        model = model_of([node], feed, {"out": KINDS[dtype]}, constants)
        [expected], [found] = run_both(model, feed)
        assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_largest_and_smallest_elements(axis, dtype, run_both, monkeypatch):
    monkeypatch.setattr(regions, "FASTER_OUTSIDE", frozenset())
    feed = {"a": np.random.default_rng(1).integers(-4, 4, (9, 7, 8)).astype(dtype)}
    outputs = {"values": KINDS[dtype], "places": KINDS["int64"]}
    for largest in (0, 1):
        for count in (0, 1, 5, 7):
            options = {"axis": axis, "largest": largest}
            node = helper.make_node("TopK", ["a", "k"], list(outputs), **options)
            model = model_of([node], feed, outputs, {"k": ints(count)})
            for found, expected in zip(*run_both(model, feed), strict=True):
                assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_places_of_extremes(name, axis, dtype, run_both):
    feed = {"a": values(dtype, (5, 4, 6))}
    for keeps in (0, 1):
        for last in (0, 1):
            options = {"axis": axis, "keepdims": keeps, "select_last_index": last}
            node = helper.make_node(name, ["a"], ["out"], **options)
            [expected], [found] = run_both(model_of([node], feed, {"out": KINDS["int64"]}), feed)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", [*SUMS, "ReduceProd"])
def test_sums_err_no_more_than_the_runtime(name, axes, dtype, run_both):
    rng = np.random.default_rng(1)
    shape = (7, 5, 6) if name == "ReduceProd" else (150, 11, 170)
    feed = {"a": rng.uniform(0.5, 1.5, shape).astype(dtype)}
    constants = {} if axes is None else {"axes": ints(*axes)}
    node = helper.make_node(name, ["a", *constants], ["out"], keepdims=0)
    model = model_of([node], feed, {"out": KINDS[dtype]}, constants)
    [expected], [found] = run_both(model, feed)
    exact = exactly(name, feed["a"].astype("longdouble"), axes)
    error, others = (np.abs(x - exact) / np.spacing(np.abs(expected)) for x in (found, expected))
    # Each factor of a product adds a rounding, whatever the order.
    least = np.sqrt(feed["a"].size) if name == "ReduceProd" else 2
    assert np.max(error) <= max(least, 1.2 * np.max(others))


@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("shape", [(5, 3), (8, 2), (139, 3), (300, 7), (300, 9)])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_narrow_arrays(name, shape, axis, run_both):
    feed = {"a": np.random.default_rng(5).normal(size=shape)}
    node = helper.make_node(name, ["a", "axes"], ["out"], keepdims=0)
    model = model_of([node], feed, {"out": KINDS["float64"]}, {"axes": ints(axis)})
    [expected], [found] = run_both(model, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-12 if name == "ReduceSum" else 0)


@pytest.mark.parametrize("shapes", [((300, 1), (3,)), ((2, 90, 5), (90, 1)), ((171, 1, 4), (3, 1))])
def test_broadcasts_of_short_rows(shapes, run_both):
    feed = {k: values("float64", x) for k, x in zip("ab", shapes, strict=True)}
    nodes = [helper.make_node("Mul", ["a", "b"], ["out"])]
    [expected], [found] = run_both(model_of(nodes, feed, {"out": KINDS["float64"]}), feed)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("name", [*SUMS, "ReduceProd"])
@pytest.mark.parametrize(("shape", "axes"), [((0, 3), (0,)), ((3, 0), (0,)), ((2, 0, 3), (0, 2))])
def test_sums_without_elements(name, shape, axes, run_both):
    assert_same_without_elements(name, "float64", shape, axes, run_both)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8"])
def test_extremes_without_elements(name, dtype, run_both):
    assert_same_without_elements(name, dtype, (2, 0, 3), (1,), run_both)


def assert_same_without_elements(name, dtype, shape, axes, run_both):
    feed = {"a": np.empty(shape, dtype)}
    node = helper.make_node(name, ["a", "axes"], ["out"])
    model = model_of([node], feed, {"out": KINDS[dtype]}, {"axes": ints(*axes)})
    [expected], [found] = run_both(model, feed)
    assert_same_bits(found, expected)


def exactly(name, x, axes):
    match name:
        case "ReduceMean":
            return x.mean(axes)
        case "ReduceSumSquare":
            return (x * x).sum(axes)
        case "ReduceL2":
            return np.sqrt((x * x).sum(axes))
        case "ReduceLogSum":
            return np.log(x.sum(axes))
        case "ReduceProd":
            return x.prod(axes)
    return x.sum(axes)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("settings", [{}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative_sums(axis, settings, dtype, run_both):
    feed = {"a": values(dtype, (4, 3, 5))}
    node = helper.make_node("CumSum", ["a", "axis"], ["out"], **settings)
    model = model_of([node], feed, {"out": KINDS[dtype]}, {"axis": ints(axis)[0]})
    [expected], [found] = run_both(model, feed)
    assert_same_bits(found, expected)


PRODUCTS = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((9,), (9,)), ((0, 4), (4, 2))]
PRODUCTS += [((3, 0), (0, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((1, 1), (1, 1)), ((30, 41), (41, 23))]
PRODUCTS += [((7, 3), (3, 9)), ((11, 27), (27,)), ((27, 11), (11, 1)), ((2, 8, 6), (6, 16))]
# The last columns of the right matrix, which fill no vector, and rows left over.
PRODUCTS += [((5, 9), (9, n)) for n in (2, 3, 6, 7)] + [((n, 1), (1, 3)) for n in (2, 8)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_products(left, right, dtype, run_both):
    rng = np.random.default_rng(2)
    feed = {"a": rng.normal(size=left) * 9, "b": rng.normal(size=right) * 9}
    feed = {k: v.astype(dtype) for k, v in feed.items()}
    node = helper.make_node("MatMul", ["a", "b"], ["out"])
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    assert found.shape == expected.shape
    assert_near(found, expected, np.abs(feed["a"]) @ np.abs(feed["b"]))


def assert_near(found, expected, size):
    bound = 8 * np.finfo(found.dtype).eps * size if found.dtype.kind == "f" else 0
    assert np.all(np.abs(found - expected) <= bound)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_of_transposed_matrices_of_few_rows_and_columns(turned, dtype, run_both):
    rng = np.random.default_rng(5)
    sizes = [(1, 7, 6), (2, 300, 3), (5, 6, 1), (6, 513, 5), (7, 2, 8), (4, 9, 13)]
    feed, nodes = {}, []
    for i, (m, k, n) in enumerate(sizes):
        for name, shape, turn in (("a", (m, k), turned[0]), ("b", (k, n), turned[1])):
            feed[f"{name}{i}"] = rng.normal(size=shape[::-1] if turn else shape).astype(dtype)
        operands = [f"a{i}", f"b{i}"]
        nodes.append(
            helper.make_node("Gemm", operands, [f"out{i}"], transA=turned[0], transB=turned[1])
        )
    outputs = {f"out{i}": KINDS[dtype] for i in range(len(sizes))}
    expected, found = run_both(model_of(nodes, feed, outputs), feed)
    for i in range(len(sizes)):
        a, b = (
            feed[f"{x}{i}"].T if t else feed[f"{x}{i}"] for x, t in zip("ab", turned, strict=True)
        )
        assert_near(found[i], expected[i], np.abs(a) @ np.abs(b))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [5, 13])
def test_elements_of_a_product_have_the_same_bits_in_any_row_and_column(n, dtype, run_both):
    rng = np.random.default_rng(6)
    feed = {
        "a": rng.normal(size=(7, 12)).astype(dtype),
        "b": rng.normal(size=(12, n)).astype(dtype),
    }
    model = model_of([helper.make_node("MatMul", ["a", "b"], ["out"])], feed, {"out": KINDS[dtype]})
    _, [found] = run_both(model, feed)
    turned = {"a": feed["a"][::-1].copy(), "b": feed["b"][:, ::-1].copy()}
    _, [found_turned] = run_both(model, turned)
    assert_same_bits(found_turned[::-1, ::-1], found)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("k", [3, 8, 24, 29])
def test_a_row_times_a_vector_has_the_same_bits_among_any_rows(k, dtype, run_both):
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(9, k)).astype(dtype), rng.normal(size=k).astype(dtype)
    node = helper.make_node("MatMul", ["a", "b"], ["out"])

    def product(rows):
        feed = {"a": rows, "b": b}
        return run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)[1][0]

    whole = product(a)
    for first, last in [(0, 8), (1, 8), (3, 9), (4, 6), (5, 8)]:
        assert_same_bits(product(a[first:last]), whole[first:last])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("addend", [None, (), (1, 5), (3, 1), (5,), (3, 5)])
@pytest.mark.parametrize("scales", [{}, {"alpha": 0.5, "beta": 2.0}])
def test_products_with_addends(turned, addend, scales, dtype, run_both):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    feed = {"a": a.T if turned[0] else a, "b": b.T if turned[1] else b}
    if addend is not None:
        feed["c"] = rng.normal(size=addend)
    feed = {k: np.ascontiguousarray(v, dtype).reshape(v.shape) for k, v in feed.items()}
    node = helper.make_node(
        "Gemm", list(feed), ["out"], transA=turned[0], transB=turned[1], **scales
    )
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    assert_near(found, expected, np.abs(a) @ np.abs(b) + 2 * np.abs(feed.get("c", 0)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(4, 5, 3), (2, 3, 130), (1, 0, 2)], ids=str)
def test_softmax(name, axis, shape, dtype, run_both):
    feed = {"a": np.random.default_rng(4).normal(scale=3, size=shape).astype(dtype)}
    node = helper.make_node(name, ["a"], ["out"], axis=axis)
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-14)
