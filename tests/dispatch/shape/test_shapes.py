import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.reshape import join_dims, split_dims
from pytensor.tensor.shape import Reshape, Shape_i, specify_shape

from pytensor_onnx import InputError, compile_onnx
from tests.conftest import REWRITTEN, compare_onnx_and_py, op_types
from tests.properties import holds_for

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]


def array(shape, dtype="float64"):
    return (np.arange(np.prod(shape, dtype=int)) % 7 % 4).reshape(shape).astype(dtype)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 1, 4)], ids=str)
def test_shapes_are_read(shape, static):
    x = pt.tensor("x", shape=shape if static else (None,) * len(shape))
    results = [x.shape, *x.shape, x.size, x.shape[:1], x.shape[::-1], pt.prod(x.shape)]
    program = compare_onnx_and_py([x], results, [array(shape)])
    if static:
        assert "Shape" not in op_types(program)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_shape_of_every_dtype_is_int64(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    compare_onnx_and_py([x], [x.shape, Shape_i(0)(x)], [array((2, 3), dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_reshaped(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    compare_onnx_and_py([x], x.reshape((3, -1)), [array((2, 6), dtype)])


@pytest.mark.each_value
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 6), (3, 4)),
        ((2, 6), (-1,)),
        ((2, 6), (3, -1, 2)),
        ((2, 6), (12, 1)),
        ((1,), ()),
        ((1, 1), ()),
        ((), (1,)),
        ((), (1, -1)),
        ((), ()),
        ((0, 3), (3, 0)),
        ((0, 3), (-1, 3)),
        ((0, 3), (0,)),
        ((2, 0), (2, -1)),
        ((2, 0), (5, 0, 7)),
    ],
    ids=str,
)
def test_shapes_known_at_export(shape, target, static):
    x = pt.tensor("x", shape=shape if static else (None,) * len(shape))
    program = compare_onnx_and_py([x], x.reshape(target), [array(shape)])
    assert set(op_types(program)) <= {"Reshape", "Squeeze", "Unsqueeze", "Identity"}


def test_shapes_computed_from_the_shape():
    x = pt.tensor3("x")
    a, b, c = x.shape
    results = [
        x.reshape((a * b, c)),
        x.reshape((a, b * c)),
        x.reshape((b, a, c)),
        x.reshape((c, b, a)),
        x.reshape((a * b * c,)),
        x.reshape((a, 1, b, c)),
        x.reshape(x.shape[::-1]),
        x.reshape(pt.concatenate([x.shape[:1], [pt.prod(x.shape[1:])]])),
        x.reshape((a // 1, b, c)),
    ]
    first, *others = (
        [array(shape)] for shape in [(2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0), (1, 1, 1)]
    )
    compare_onnx_and_py([x], results, first, also=others)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_shapes_given_at_run_time(dtype):
    x, shape = pt.matrix("x"), pt.tensor("shape", dtype=dtype, shape=(None,))
    n = pt.scalar("n", dtype=dtype)
    results = [x.reshape(shape, ndim=3), x.reshape((n, 6)), x.reshape((n, -1))]
    compare_onnx_and_py([x, shape, n], results, [array((3, 4)), np.array([2, 3, 2], dtype), 2])


def test_one_size_given_at_run_time_may_be_left_open():
    x, shape = pt.matrix("x"), pt.lvector("shape")
    compare_onnx_and_py([x, shape], x.reshape(shape, ndim=2), [array((3, 4)), np.array([2, -1])])


@pytest.mark.parametrize("target", [[5, 2], [-1, 5], [-1, -1], [-2, -6], [3, 4, 1]], ids=str)
def test_a_shape_that_does_not_fit_fails(target):
    x, shape = pt.matrix("x"), pt.lvector("shape")
    f = compile_onnx([x, shape], x.reshape(shape, ndim=2), verify=False)
    assert f(array((3, 4)), np.array([2, 6])).shape == (2, 6)
    with pytest.raises((Exception, AssertionError), match=r"reshape|dimension|given"):
        f(array((3, 4)), np.array(target))


def test_a_size_given_at_run_time_is_not_the_open_one():
    x, n = pt.matrix("x"), pt.lscalar("n")
    f = compile_onnx([x, n], x.reshape((n, 2)), verify=False)
    assert f(array((3, 4)), 6).shape == (6, 2)
    with pytest.raises(Exception, match="reshape"):
        f(array((3, 4)), 3)


@pytest.mark.parametrize(
    ("build", "nodes"),
    [
        (lambda x: x.reshape((x.shape[0], -1)), ["Reshape"]),
        (lambda x: x.reshape((x.shape[0], x.shape[1], 2, -1)), ["Reshape"]),
        (lambda x: x.flatten(), ["Reshape"]),
        (lambda x: x.flatten(2), ["Reshape"]),
        (lambda x: x.reshape((-1, x.shape[2])), ["Shape", "Concat", "Reshape"]),
        (lambda x: x.shape, ["Shape"]),
        (pt.zeros_like, ["Shape", "ConstantOfShape"]),
        (lambda x: pt.ones(x.shape[1:]), ["Shape", "ConstantOfShape"]),
        (lambda x: pt.zeros((x.shape[0], 5)), ["Shape", "Concat", "ConstantOfShape"]),
        (lambda x: (x[1:-1] * 2).reshape((-1,)), ["Slice", "Mul", "Reshape"]),
    ],
)
def test_no_node_reads_a_size_that_needs_no_reading(build, nodes):
    x = pt.tensor3("x")
    program = compare_onnx_and_py([x], build(x), [array((3, 3, 4))])
    assert op_types(program) == nodes


def test_a_size_is_read_once():
    x = pt.matrix("x")
    n = x.shape[0]
    program = compare_onnx_and_py([x], [pt.zeros((n, 2)), pt.ones((n, 3)), x * n], [array((2, 2))])
    assert op_types(program).count("Shape") == 1


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (0, 3, 4)], ids=str)
@pytest.mark.parametrize("static", [True, False])
def test_axes_are_joined(shape, static):
    x = pt.tensor("x", shape=shape if static else (None,) * 3)
    results = [join_dims(x, 0, n) for n in (0, 1, 2, 3)] + [join_dims(x, 2, 1), join_dims(x, 3, 0)]
    if 0 not in shape:
        results.append(join_dims(x, 1, 2))
    # PyTensor's Op itself fails where a size is zero.
    program = compare_onnx_and_py([x], results, [array(shape)], reference=REWRITTEN)
    if static:
        assert "Shape" not in op_types(program)


@pytest.mark.parametrize("static", [True, False])
def test_axes_are_split(static):
    x = pt.tensor("x", shape=(2, 12, 3) if static else (None,) * 3)
    n = pt.lscalar("n")
    results = [
        split_dims(x, (3, 4), axis=1),
        split_dims(x, (n, 12 // n), axis=1),
        split_dims(x, (1, 2, 1), axis=0),
        split_dims(x, (3,), axis=2),
        split_dims(join_dims(x), x.shape, axis=0),
    ]
    compare_onnx_and_py([x, n], results, [array((2, 12, 3)), 4])


@pytest.mark.parametrize(("op", "values"), [(join_dims, ()), (split_dims, ((2, 3),))])
def test_ops_that_pytensor_would_rewrite_are_lowered_too(op, values):
    x = pt.tensor("x", shape=(6, 4) if op is join_dims else (6,))
    from pytensor.graph.fg import FunctionGraph

    from pytensor_onnx.conversion import ConversionOptions, convert

    result = op(x, *values)
    converted = convert(
        FunctionGraph([x], [result], clone=False), ConversionOptions(opset_version=21)
    )
    assert [node.op_type for node in converted.model.graph] == ["Reshape"]
    assert tuple(converted.model.graph.outputs[0].shape) == result.type.shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_value_of_the_shape_asserted_passes(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    compare_onnx_and_py([x], specify_shape(x, (2, None)), [array((2, 3), dtype)])


@pytest.mark.parametrize(
    ("shape", "expected", "listing"),
    [((3,), (2,), r"\(2,\)"), ((3, 4), (None, 5), r"\(None, 5\)"), ((0, 4), (1, 4), r"\(1, 4\)")],
)
def test_a_value_of_another_shape_than_asserted_fails(shape, expected, listing):
    x = pt.tensor("x", shape=(None,) * len(shape))
    result = specify_shape(x, expected) * 2
    message = f"SpecifyShape: Got .*expected {listing}"
    functions = [
        pytensor.function([x], result, mode="FAST_COMPILE"),
        pytensor.function([x], result, mode="ONNX"),
    ]
    for f in functions:
        with pytest.raises(AssertionError, match=message):
            f(array(shape))
    with pytest.raises(InputError, match=r"input x: .* was given"):
        compile_onnx([x], result, verify=False)(array(shape))


def test_sizes_that_inputs_must_have_are_theirs():
    x, y, z = pt.vector("x"), pt.vector("y"), pt.vector("z")
    rng = pt.random.rng("rng")
    draw = rng.binomial(pt.cast(z, "int64"), np.full((5, 4), 0.5))[1]
    results = [specify_shape(x, (3,)) * 2, y.sum() + pt.alloc(y, 2, 4), draw]
    program = compile_onnx([x, y, z, rng], results, verify=False)
    assert [value.shape for value in program.inputs[:3]] == [(3,), (4,), (4,)]
    with pytest.raises(InputError, match=r"input y: .* was given"):
        program(np.zeros(3), np.zeros(5), np.zeros(4), np.random.default_rng(1))


def test_the_size_asserted_is_computed_at_run_time():
    x, y = pt.vector("x"), pt.matrix("y")
    result = specify_shape(x, (y.shape[1],)) + 1
    compare_onnx_and_py([x, y], result, [array((3,)), array((2, 3))])
    for f in (
        pytensor.function([x, y], result, mode="ONNX"),
        compile_onnx([x, y], result, verify=False),
    ):
        with pytest.raises(AssertionError, match="SpecifyShape"):
            f(array((3,)), array((2, 4)))


def test_a_shape_known_to_hold_is_not_checked():
    x = pt.matrix("x", shape=(3, None))
    result = specify_shape(pt.exp(x), (3, x.shape[1]))
    program = compare_onnx_and_py([x], result, [array((3, 2))])
    assert op_types(program) == ["Exp"]


def test_gradients_through_changes_of_shape():
    x = pt.matrix("x")
    y = specify_shape((x.reshape((-1,)) ** 2).reshape((x.shape[1], x.shape[0])), (3, 2))
    compare_onnx_and_py([x], pt.grad((y * pt.arange(2)).sum(), x), [array((2, 3))])


def test_an_array_without_elements_takes_sizes_from_inputs():
    """The type that PyTensor gives the result has a zero in place of the unknown size."""
    x, n = pt.matrix("x", shape=(3, 0)), pt.lscalar("n")
    first, *others = ([array((3, 0)), count] for count in [0, 2])
    compare_onnx_and_py([x, n], x.reshape((n, 1, 0)), first, also=others)


def test_an_assertion_on_an_array_without_elements_asks_for_the_size_that_it_has():
    """The type that PyTensor gives the reshaped array has a zero in place of the unknown size."""
    x, n = pt.matrix("x", shape=(2, 0)), pt.lscalar("n")
    result = specify_shape(x.reshape((n, 0)), (3, None))
    compare_onnx_and_py([x, n], result, [array((2, 0)), 3])
    with pytest.raises(AssertionError, match="SpecifyShape"):
        compile_onnx([x, n], result, verify=False)(array((2, 0)), 2)


def test_an_assertion_on_a_computed_size_holds_where_that_size_is_used_again():
    x = pt.matrix("x", shape=(None, 2))
    result = specify_shape(pt.exp(x[:7]).sum(axis=1), (7,)) + x[:7, 0]
    compare_onnx_and_py([x], result, [array((9, 2))])
    # The sum needs the size as well, and its check may come first.
    with pytest.raises((AssertionError, ValueError), match=r"SpecifyShape|the sizes 5 and 7"):
        compile_onnx([x], result, verify=False)(array((5, 2)))


@st.composite
def reshapes(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    factors = [f for size in shape for f in ((2, 2) if size == 4 else (size,))]
    factors = draw(st.permutations([*factors, *draw(st.lists(st.just(1), max_size=2))]))
    target = []
    while factors:
        count = draw(st.integers(1, len(factors)))
        target.append(int(np.prod(factors[:count])))
        factors = factors[count:]
    if target and 0 not in target and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    return shape, tuple(target)


@pytest.mark.slow
@holds_for(drawn=reshapes(), dtype=st.sampled_from(DTYPES), symbolic=st.booleans())
def test_any_reshape(drawn, dtype, symbolic):
    shape, target = drawn
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape))
    sizes = pt.lvector("sizes")
    result = Reshape(len(target))(x, sizes if symbolic else np.array(target, "int64"))
    compare_onnx_and_py([x, sizes], result, [array(shape, dtype), np.array(target, "int64")])


def test_reshape_to_the_shape_that_is_there_leaves_no_node():
    x, n = pt.tensor3("x"), pt.tensor("x", shape=(None, 12))
    same = [x.reshape(x.shape), pt.vector("v").reshape((-1,))]
    split = n.reshape((n.shape[0], 3, 4))
    back = split.dimshuffle(0, 2, 1).reshape((n.shape[0], -1))
    program = compare_onnx_and_py(
        [x, same[1].owner.inputs[0], n],
        [pt.exp(same[0]), pt.exp(same[1]), back],
        [array((2, 0, 3)), array((3,)), array((2, 12))],
    )
    assert sorted(op_types(program)) == ["Exp", "Exp", "Reshape", "Reshape", "Transpose"]


def test_of_reshapes_one_after_the_other_the_last_stays():
    x = pt.tensor("x", shape=(None, 7, 12))
    split = split_dims(x, shape=(3, 4), axis=2)
    back = join_dims(split, start_axis=2, n_axes=2)
    program = compare_onnx_and_py([x], [pt.exp(back), split.reshape((-1,))], [array((2, 7, 12))])
    assert sorted(op_types(program)) == ["Exp", "Reshape"]
