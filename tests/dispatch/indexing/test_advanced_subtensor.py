import itertools

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import UnsupportedOpError, compile_onnx
from tests.conftest import compare_onnx_and_py, compare_together, op_types, raises_for
from tests.properties import holds_for

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]
SHAPE = (4, 3, 5)

S = np.s_
I1, J1 = np.array([0, -1, 2, 0]), np.array([1, -3, -1, 1])
I2, J2 = np.array([[0, 1, -1], [2, 2, -2]]), np.array([[1, 0, 2]])
COLUMN, ROW = np.array([[3], [0], [-1]]), np.array([1, -2])
EMPTY = np.zeros(0, "int64")
ZERO_D = np.array(-2)
MASK_4 = np.array([True, False, True, True])
MASK_3 = np.array([False, True, True])
MASK_5 = np.arange(5) % 2 == 0
MASK_4_3 = np.arange(12).reshape(4, 3) % 5 < 2
MASK_3_5 = np.arange(15).reshape(3, 5) % 4 == 1
MASK_ALL = np.arange(60).reshape(SHAPE) % 7 < 3
NOWHERE = np.zeros(4, bool)

SINGLE = [
    S[I1],
    S[:, J1],
    S[..., I1],
    S[I2],
    S[:, J2],
    S[..., I2],
    S[EMPTY],
    S[:, EMPTY],
    S[I1, 1:],
    S[::-1, J1],
    S[1:3, J1, ::-2],
    S[::2, ..., I2],
    S[-1:0:-2, J1, 5:1],
    S[None, I1],
    S[I1, None],
    S[:, None, J1],
    S[I1, ..., None],
]
SEVERAL = [
    S[I1, J1],
    S[:, J1, I1],
    S[I1, :, I1],
    S[I1, J1, I1],
    S[I2, J2],
    S[:, J2, I2],
    S[I2, :, J2],
    S[I1, J2[:, :1]],
    S[EMPTY, EMPTY],
    S[EMPTY, np.array([1])],
    S[I1, np.array([1])],
    S[COLUMN, ROW],
    S[ROW, COLUMN % 3],
    S[:, ROW, COLUMN],
    S[COLUMN, :, ROW],
    S[ROW, :, COLUMN],
    S[COLUMN[..., None], ROW[:, None], I1],
    S[COLUMN[None], ROW],
    S[I1, ::2, J1],
    S[::-1, J1, I1],
    S[I1, J1, 1:-1],
    S[I1, None, J1],
    S[None, I1, J1],
]
SCALARS = [
    S[ZERO_D, I1],
    S[I1, ZERO_D],
    S[:, ZERO_D, I1],
    S[ZERO_D, :, I1],
    S[I1, :, ZERO_D],
    S[ZERO_D, I2, 1:],
    S[ZERO_D, ZERO_D, I1],
    S[1, J1],
    S[-1, :, I2],
    S[1:, ZERO_D, I1],
    S[ZERO_D, ::-1, I1],
    S[ZERO_D, COLUMN % 3, ROW],
]
MASKS = [
    S[MASK_4],
    S[:, MASK_3],
    S[..., MASK_5],
    S[NOWHERE],
    S[MASK_4_3],
    S[:, MASK_3_5],
    S[MASK_ALL],
    S[MASK_4, 1:],
    S[::-1, MASK_3],
    S[1:, ::-1, MASK_5],
    S[1:, MASK_3_5],
    S[None, MASK_4],
    S[MASK_4, None],
    S[ZERO_D, MASK_3],
    S[ZERO_D, :, MASK_5],
    S[ZERO_D, MASK_3_5],
    S[MASK_4, :, np.array([1, 2, -1])],
    S[np.array([2, 0]), MASK_3],
    S[np.array([[2], [0]]), MASK_3],
    S[MASK_4, np.array([1]), ::2],
    S[MASK_4_3, np.array([0, 1, 2, 3, 4, -1])],
    S[MASK_4, :, MASK_5],
    S[MASK_4, MASK_3[[1, 1, 1]]],
]
INDICES = {"single": SINGLE, "several": SEVERAL, "scalars": SCALARS, "masks": MASKS}


def name_of(index):
    def part(entry):
        if isinstance(entry, np.ndarray):
            return f"{entry.dtype.kind}{list(entry.shape)}"
        if isinstance(entry, slice):
            return ":".join("" if s is None else str(s) for s in (entry.start, entry.stop))
        return str(entry)

    return ",".join(map(part, index if isinstance(index, tuple) else (index,)))


def symbolic(index, static):
    """Return an index with variables in place of its arrays, and these with their values."""
    variables, values, entries = [], [], []
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, np.ndarray):
            shape = entry.shape if static else (None,) * entry.ndim
            # The size of an axis to broadcast along is part of an index's form, not of its data.
            shape = tuple(1 if size == 1 else s for size, s in zip(entry.shape, shape, strict=True))
            variable = pt.tensor(f"i{len(values)}", dtype=str(entry.dtype), shape=shape)
            variables.append(variable)
            values.append(entry)
            entries.append(variable)
        else:
            entries.append(entry)
    return tuple(entries), variables, values


def array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    numbers = rng.integers(0 if dtype.startswith("u") else -50, 50, size=shape)
    return (numbers / 8 if dtype.startswith("f") else numbers).astype(dtype)


def tensor(name, value, static=False):
    shape = value.shape if static else (None,) * value.ndim
    return pt.tensor(name, dtype=str(value.dtype), shape=shape)


@pytest.mark.each_value
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("form", INDICES)
def test_an_index_selects_and_updates_as_in_numpy(form, static):
    value = array(SHAPE, "float64")

    def case(index):
        update = array(value[index].shape, "float64", seed=1)
        x, y = tensor("x", value, static), tensor("y", update, static)
        entries, variables, values = symbolic(index, static)
        view = x[entries]
        outputs = [view, *(updated(view, y, kind) for kind in ("set", "inc", "ignoring"))]
        return [x, y, *variables], outputs, [value, update, *values]

    compare_together({name_of(index): case(index) for index in INDICES[form]})


def updated(view, y, kind):
    if kind == "set":
        return pt.set_subtensor(view, y)
    return pt.inc_subtensor(view, y, ignore_duplicates=kind == "ignoring")


@pytest.mark.slow
@pytest.mark.parametrize("form", INDICES)
def test_gradient_of_an_index_adds_at_the_selected_positions(form):
    value = array(SHAPE, "float64")

    def case(index):
        x = tensor("x", value)
        entries, variables, values = symbolic(index, static=False)
        gradient = pt.grad((x[entries] ** 2).sum(), x)
        return [x, *variables], gradient, [value, *values]

    compare_together({name_of(index): case(index) for index in INDICES[form]})


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["set", "inc"])
@pytest.mark.parametrize(
    "index", [S[I1], S[:, J1], S[I1, :, I1], S[MASK_4], S[1:, J2]], ids=name_of
)
def test_gradients_of_an_update_are_those_of_pytensor(index, kind):
    value = array(SHAPE, "float64")
    update = array(value[index].shape, "float64", seed=1)
    x, y = tensor("x", value), tensor("y", update)
    entries, variables, values = symbolic(index, static=False)
    cost = (updated(x[entries], y, kind) ** 3).sum()
    compare_onnx_and_py([x, y, *variables], pt.grad(cost, [x, y]), [value, update, *values])


BROADCAST_UPDATES = [
    (S[I1], ()),
    (S[I1], (5,)),
    (S[I1], (3, 1)),
    (S[I1], (1, 1, 5)),
    (S[:, J1], (1, 5)),
    (S[:, J1], (4, 1, 1)),
    (S[I1, J1], (5,)),
    (S[I1, J1], (4, 1)),
    (S[I2, :, J2], (1, 3, 1)),
    (S[:, J1, I1], ()),
    (S[:, J1, I1], (4, 1)),
    (S[1:, J1], (1, 5)),
    (S[ZERO_D, :, I1], (3,)),
    (S[MASK_4], ()),
    (S[MASK_4], (3, 5)),
    (S[MASK_4], (1, 1, 5)),
    (S[MASK_4], (3, 3, 1)),
    (S[:, MASK_3], (4, 1, 5)),
    (S[:, MASK_3], (2, 1)),
    (S[MASK_4_3], (1, 5)),
    (S[MASK_4_3], (1, 1)),
    (S[:, MASK_3_5], (4, 1)),
    (S[:, MASK_3_5], ()),
    (S[MASK_ALL], ()),
    (S[MASK_ALL], (1,)),
    (S[NOWHERE], (3, 5)),
]


@pytest.mark.parametrize("kind", ["set", "inc"])
def test_values_of_an_update_are_broadcast(kind):
    value = array(SHAPE, "float64")

    def case(index, shape):
        x = tensor("x", value)
        y = pt.tensor("y", shape=tuple(1 if size == 1 else None for size in shape))
        entries, variables, values = symbolic(index, static=False)
        arrays = [value, array(shape, "float64", seed=1), *values]
        return [x, y, *variables], updated(x[entries], y, kind), arrays

    compare_together({(name_of(i), shape): case(i, shape) for i, shape in BROADCAST_UPDATES})


@pytest.mark.parametrize("index", [S[I1, J1], S[MASK_4], S[:, MASK_3], S[:, J1]], ids=name_of)
def test_a_size_of_one_found_at_run_time_is_broadcast_as_numpy_does(index):
    value = array(SHAPE, "float64")
    update = array((1,) * value[index].ndim, "float64", seed=1)
    x, y = tensor("x", value), tensor("y", update)
    entries, variables, values = symbolic(index, static=False)
    compare_onnx_and_py([x, y, *variables], x[entries].inc(y), [value, update, *values])


@pytest.mark.slow
def test_index_arrays_of_size_one_at_run_time_are_broadcast():
    x, i, j = pt.matrix("x"), pt.lvector("i"), pt.lvector("j")
    value = array((4, 5), "float64")
    one, three = np.array([-1]), np.array([0, 2, 3])
    for first, second in [(one, three), (three, one), (one, one), (three, three)]:
        compare_onnx_and_py([x, i, j], x[i, j], [value, first, second])
        counted = x[pt.arange(x.shape[0]), j]
        compare_onnx_and_py([x, j], counted, [value[: len(first)], second]) if len(
            {len(first), len(second)} - {1}
        ) < 2 else None


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_data_of_every_dtype_can_be_indexed_and_updated(dtype):
    def case(index):
        value = array(SHAPE, dtype)
        update = array(value[index].shape, dtype, seed=1)
        x, y = tensor("x", value), tensor("y", update)
        entries, variables, values = symbolic(index, static=False)
        view, first = x[entries], y.flatten()[0]
        outputs = [view, view.set(y), view.inc(y), view.set(first), view.inc(first)]
        return [x, y, *variables], outputs, [value, update, *values]

    indices = [S[I1], S[:, J1], S[I1, J1], S[1:, :, I2], S[MASK_4], S[:, MASK_3_5]]
    compare_together({name_of(index): case(index) for index in indices})


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_may_have_every_integer_dtype(dtype):
    def converted(entry):
        if not isinstance(entry, np.ndarray):
            return entry
        return abs(entry).astype(dtype) % 3 if dtype.startswith("u") else entry.astype(dtype)

    def case(index):
        index = tuple(map(converted, index if isinstance(index, tuple) else (index,)))
        value = array(SHAPE, "float64")
        x = tensor("x", value)
        entries, variables, values = symbolic(index, static=False)
        view = x[entries]
        return [x, *variables], [view, view.inc(1.0)], [value, *values]

    indices = [S[I1], S[:, J1], S[I1, J1], S[I1, 1:, J1], S[ZERO_D, I1]]
    compare_together({name_of(index): case(index) for index in indices})


@pytest.mark.parametrize(
    ("x_dtype", "y_dtype"),
    [
        ("float32", "float64"),
        ("float64", "int8"),
        ("float32", "int64"),
        ("float16", "float32"),
        ("int8", "int64"),
        ("uint8", "int8"),
        ("int64", "bool"),
        ("uint16", "int32"),
        ("int64", "uint64"),
    ],
)
def test_values_of_another_dtype_are_put_as_numpy_puts_them(x_dtype, y_dtype):
    value, update = array(SHAPE, x_dtype), array((4, *SHAPE[1:]), y_dtype, seed=1)
    x, y, i = tensor("x", value), tensor("y", update), pt.lvector("i")
    compare_onnx_and_py([x, y, i], [x[i].set(y), x[i].inc(y)], [value, update, I1])


@pytest.mark.parametrize(
    ("x_dtype", "y_dtype"), [("int64", "float64"), ("bool", "int8"), ("uint64", "float32")]
)
def test_increments_that_numpy_rounds_after_every_step_are_refused(x_dtype, y_dtype):
    x, y = pt.vector("x", dtype=x_dtype), pt.vector("y", dtype=y_dtype)
    i = pt.lvector("i")
    with pytest.raises(UnsupportedOpError, match="cast the increment"):
        compile_onnx([x, y, i], [x[i].inc(y)])


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "index",
    [
        S[np.array([0, 4])],
        S[np.array([0, -5])],
        S[:, np.array([3])],
        S[:, np.array([-4])],
        S[np.array([0]), np.array([3])],
        S[np.array([-5]), np.array([0])],
        S[:, np.array([0]), np.array([5])],
        S[np.array([[0], [4]]), np.array([0])],
        S[np.array([0]), :, np.array([-6])],
        S[np.array(4), np.array([0])],
        S[1:, np.array([3])],
        S[np.array([2**40]), 1:],
    ],
    ids=name_of,
)
def test_an_index_out_of_range_is_an_error(index):
    value = array(SHAPE, "float64")
    for static in (True, False):
        x = tensor("x", value, static)
        entries, variables, values = symbolic(index, static)
        for name, result in read_and_updated(x[entries]).items():
            f = compile_onnx([x, *variables], [result], verify=False)
            with raises_for(f"{name}, {static=}", Exception, match=r"out of|index|indice|bounds"):
                f(value, *values)


def read_and_updated(view):
    return {"get": view, **{kind: updated(view, 1.0, kind) for kind in ("set", "inc")}}


@pytest.mark.parametrize(
    "index",
    [
        S[np.ones(3, bool)],
        S[np.ones(5, bool)],
        S[np.ones(1, bool)],
        S[:, np.ones(2, bool)],
        S[np.ones((3, 4), bool)],
        S[np.ones((4, 1), bool)],
        S[:, np.ones((5, 3), bool)],
        S[np.ones(2, bool), np.array([0, 1])],
    ],
    ids=name_of,
)
def test_a_mask_of_another_size_is_an_error(index):
    value = array(SHAPE, "float64")
    x = tensor("x", value)
    variables = [pt.tensor(dtype=e.dtype, shape=(None,) * e.ndim) for e in index_arrays(index)]
    replaced = iter(variables)
    entries = tuple(
        next(replaced) if isinstance(entry, np.ndarray) else entry
        for entry in (index if isinstance(index, tuple) else (index,))
    )
    for name, result in read_and_updated(x[entries]).items():
        f = compile_onnx([x, *variables], [result], verify=False)
        with raises_for(name, Exception, match=r"did not match|dimension"):
            f(value, *index_arrays(index))


def index_arrays(index):
    return [e for e in (index if isinstance(index, tuple) else (index,)) if hasattr(e, "dtype")]


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (S[I1], (3, 3, 5)),
        (S[I1], (4, 3, 4)),
        (S[I1], (1, 3, 5)),
        (S[np.array([0])], (4, 3, 5)),
        (S[:, J1], (4, 3, 5)),
        (S[:, np.array([0])], (4, 3, 5)),
        (S[I1, J1], (3, 5)),
        (S[np.array([0]), np.array([0])], (4, 5)),
        (S[MASK_4], (2, 3, 5)),
        (S[np.array([True, False, False, False])], (4, 3, 5)),
        (S[:, MASK_3_5], (4, 3)),
        (S[1:, J1], (3, 3, 5)),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_an_error(index, shape):
    value, update = array(SHAPE, "float64"), array(shape, "float64", seed=1)
    x, y = tensor("x", value), tensor("y", update)
    entries, variables, values = symbolic(index, static=False)
    variables = [pt.tensor(v.name, dtype=v.dtype, shape=(None,) * v.ndim) for v in variables]
    replaced = iter(variables)
    entries = tuple(e if isinstance(e, slice) else next(replaced) for e in entries)
    inputs, arguments = [x, y, *variables], [value, update, *values]
    for kind in ("set", "inc"):
        result = updated(x[entries], y, kind)
        with pytest.raises((ValueError, IndexError)):
            pytensor.function(inputs, result, mode="FAST_COMPILE")(*arguments)
        f = compile_onnx(inputs, [result], verify=False)
        with raises_for(
            kind, Exception, match=r"shape|Indices|dimension|mismatch|invalid|broadcast"
        ):
            f(*arguments)


@pytest.mark.each_value
@pytest.mark.parametrize(
    "index",
    [S[I1], S[:, J1], S[I1, J1], S[COLUMN, ROW], S[MASK_4], S[:, MASK_3_5], S[MASK_4, J1[:3]]],
    ids=name_of,
)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_constant_indices_select_as_in_numpy(index, static):
    value = array(SHAPE, "float64")
    update = array(value[index].shape, "float64", seed=1)
    x, y = tensor("x", value, static), tensor("y", update, static)
    compare_onnx_and_py([x, y], [x[index], x[index].set(y), x[index].inc(2.0)], [value, update])


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (S[I1], ["Gather"]),
        (S[:, J1], ["Gather"]),
        (S[I2], ["Gather"]),
        (S[..., I2], ["Gather"]),
        (S[I1.astype("int32")], ["Gather"]),
        (S[ZERO_D, I1], ["Gather", "Gather"]),
        (S[1:, J1], ["Slice", "Gather"]),
        (S[COLUMN, ROW], ["Reshape", "Gather", "Gather"]),
    ],
    ids=str,
)
def test_one_array_on_an_axis_is_one_gather(index, expected):
    x = pt.tensor3("x")
    entries, variables, values = symbolic(index, static=False)
    program = compare_onnx_and_py([x, *variables], x[entries], [array(SHAPE, "float64"), *values])
    assert op_types(program) == expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, i, j: x[i, j], ["Unsqueeze", "Unsqueeze", "Concat", "GatherND"]),
        (lambda x, i, j: x[i[:, None], j], ["Gather", "Gather"]),
        (lambda x, i, j: x[i, 1:][:, j], ["Slice", "Gather", "Gather"]),
        (lambda x, i, j: x[x > 0], ["Greater", "Reshape", "Compress"]),
        (lambda x, i, j: x[x[:, 0] > 0], ["Gather", "Greater", "Compress"]),
        (lambda x, i, j: x[x > 0].set(0.0), ["Greater", "Where"]),
        (lambda x, i, j: x[x > 0].inc(1.0), ["Greater", "Add", "Where"]),
        (lambda x, i, j: x[i].inc(x[j]), ["Gather", "Unsqueeze", "ScatterND"]),
        (
            lambda x, i, j: x[:, i].set(x[:, j]),
            ["Gather", "Expand", "ScatterElements"],
        ),
        (
            lambda x, i, j: x[pt.arange(x.shape[0]), pt.argsort(x[:, 0])],
            ["Gather", "TopKSmallestAxis0_float64", "Unsqueeze", "GatherElements", "Squeeze"],
        ),
    ],
)
def test_common_indices_take_the_fewest_operators(make, expected):
    x = pt.matrix("x", shape=(6, 6))
    i, j = (pt.tensor(name, dtype="int64", shape=(4,)) for name in "ij")
    values = [array((6, 6), "float64"), I1, J1]
    program = compare_onnx_and_py([x, i, j], make(x, i, j), values)
    assert op_types(program) == expected


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_taking_along_an_axis_is_one_gather_elements(axis, static):
    value = array(SHAPE, "float64")
    x = tensor("x", value, static)
    taken = pt.take_along_axis(x, pt.argsort(x, axis=axis), axis=axis)
    program = compare_onnx_and_py([x], taken, [value])
    assert op_types(program)[-1] == "GatherElements"
    assert not {"Range", "Concat", "GatherND"} & set(op_types(program))
    gradient = compare_onnx_and_py([x], pt.grad((taken**2).sum(), x), [value])
    assert op_types(gradient)[-1] == "ScatterElements"
    assert not {"Range", "Concat", "GatherND"} & set(op_types(gradient))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_taking_along_an_axis_broadcasts_the_other_axes(axis):
    value, indices = array(SHAPE, "float64"), np.zeros((1, 1, 1), "int64")
    x, i = tensor("x", value), tensor("i", indices)
    compare_onnx_and_py([x, i], pt.take_along_axis(x, i, axis=axis), [value, indices])


def test_picking_one_element_of_each_row_needs_no_counting():
    x = pt.matrix("x")
    value = array((4, 5), "float64")
    picked = x[pt.arange(x.shape[0]), pt.argmax(x, axis=1)]
    program = compare_onnx_and_py([x], picked, [value])
    # Tools that infer shapes ignore the batch_dims of GatherND.
    assert op_types(program)[-2:] == ["GatherElements", "Squeeze"]
    assert not {"Range", "Concat", "Expand"} & set(op_types(program))
    program = compare_onnx_and_py([x], pt.grad((picked**2).sum(), x), [value])
    assert op_types(program)[-1] == "ScatterElements"
    assert not {"Range", "Concat", "Expand"} & set(op_types(program))


@pytest.mark.parametrize(
    "mask", [np.zeros(0, bool), np.array([True, True]), np.array([False, True])]
)
def test_a_mask_beside_a_number_selects_rows_of_one_column(mask):
    x, n = pt.tensor("x", shape=(len(mask), 2)), int(mask.sum())
    y = pt.vector("y")
    results = [x[mask, -1], x[mask, 0].set(y), x[mask, -2].inc(y)]
    compare_onnx_and_py([x, y], results, [array((len(mask), 2), "float64"), array((n,), "float64")])


def test_a_batch_of_indices_gathers_by_batch():
    value, indices = array((4, 3, 5), "float64"), array((4, 2, 2), "uint8").astype("int64") % 3
    x = tensor("x", value, static=True)
    i = tensor("i", indices, static=True)
    rows = pt.arange(4)[:, None, None]
    program = compare_onnx_and_py([x, i], x[rows, i], [value, indices])
    assert op_types(program) == ["Unsqueeze", "GatherND"]
    compare_onnx_and_py([x, i], x[rows, i].inc(1.0), [value, indices])


@pytest.mark.slow
def test_static_shapes_leave_no_shape_arithmetic():
    value = array(SHAPE, "float64")
    x = tensor("x", value, static=True)
    for index in itertools.chain(*INDICES.values()):
        entries, variables, _ = symbolic(index, static=True)
        if any(v.dtype == "bool" for v in variables):
            continue
        view = x[entries]
        update = pt.tensor("y", shape=view.type.shape)
        for result in (view, view.set(update), view.inc(1.0)):
            program = compile_onnx([x, update, *variables], [result], verify=False)
            assert not {"Shape", "Size", "If", "Where"} & set(op_types(program)), index


def test_a_mask_that_is_too_short_is_refused_by_any_runtime():
    x, mask = pt.vector("x"), pt.vector("mask", dtype="bool")
    program = compile_onnx([x, mask], [x[mask]])
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    feeds = {"x": array((3,), "float64"), "mask": np.ones(3, bool)}
    assert session.run(None, feeds)[0].shape == (3,)
    with pytest.raises(Exception, match="boolean_index_did_not_match_indexed_array_along_axis_0"):
        session.run(None, feeds | {"mask": np.ones(2, bool)})


def test_indices_work_in_inner_graphs():
    a, i, mask = pt.matrix("a"), pt.lvector("i"), pt.vector("mask", dtype="bool")
    outputs = [a[i], a[mask], a[:, i].set(0.0), a[mask].inc(1.0), a[pt.arange(a.shape[0]), i]]
    x, j, m = pt.matrix("x"), pt.lvector("j"), pt.vector("m", dtype="bool")
    called = OpFromGraph([a, i, mask], outputs)(x, j, m)
    values = [array((4, 3), "float64"), np.array([0, -1, 1, 2]), MASK_4]
    compare_onnx_and_py([x, j, m], called, values)


@st.composite
def cases(draw):
    """Draw an array, an index of some form that is valid for it, and values that fit."""
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    dtype = draw(st.sampled_from(DTYPES))
    broadcast = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    entries = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)) > 0:
        kind = draw(st.sampled_from(["array", "array", "mask", "slice", "scalar", "new"]))
        if kind == "array":
            entries.append(draw(integer_arrays(shape[axis], broadcast)))
        elif kind == "mask":
            rank = draw(st.integers(1, min(2, len(shape) - axis)))
            entries.append(draw(npst.arrays("bool", shape[axis : axis + rank])))
            axis += rank - 1
        elif kind == "slice" and not any(getattr(e, "ndim", 0) > 1 for e in entries):
            # PyTensor, the reference, may drop a slice after a mask of several axes.
            entries.append(draw(slices(shape[axis])))
        elif kind == "scalar" and shape[axis]:
            entries.append(np.array(draw(st.integers(-shape[axis], shape[axis] - 1))))
        elif kind == "new":
            entries.append(None)
            continue
        else:
            entries.append(slice(None))
        axis += 1
    if not any(isinstance(entry, np.ndarray) and entry.ndim for entry in entries):
        entries = [draw(integer_arrays(shape[0], broadcast or (2,)))]
    return shape, dtype, tuple(entries), draw(st.booleans())


@st.composite
def integer_arrays(draw, size, broadcast):
    dims = [draw(st.sampled_from([d, d, 1])) for d in broadcast]
    dims = dims[draw(st.integers(0, len(dims))) :]
    dtype = draw(st.sampled_from(INTEGERS))
    if not size:
        dims = [*dims, 0]
    low = 0 if dtype.startswith("u") else -size
    return draw(npst.arrays(dtype, dims, elements=st.integers(low, max(size - 1, low))))


def slices(size):
    bound = st.none() | st.integers(-size - 1, size + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -2]))


@pytest.mark.slow
@holds_for(case=cases(), kind=st.sampled_from(["get", "set", "inc", "ignoring"]), data=st.data())
def test_every_index_agrees_with_numpy(case, kind, data):
    shape, dtype, index, static = case
    value = array(shape, dtype)
    entries, variables, values = symbolic(index, static)
    x = tensor("x", value, static)
    try:
        selected = value[index]
        view = x[entries]
    except IndexError:
        return
    if view.ndim != selected.ndim:
        return
    if kind == "get":
        compare_onnx_and_py([x, *variables], view, [value, *values])
        return
    dims = selected.shape[data.draw(st.integers(0, selected.ndim)) :]
    dims = tuple(data.draw(st.sampled_from([d, d, 1])) for d in dims)
    update = array(dims, dtype, seed=1)
    y = pt.tensor("y", dtype=dtype, shape=tuple(1 if d == 1 else None for d in dims))
    result = updated(view, y, kind)
    compare_onnx_and_py([x, y, *variables], result, [value, update, *values])
