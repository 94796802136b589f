import inspect
import re

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse
from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.compile.mode import Mode
from pytensor.compile.ops import deep_copy_op, view_op
from pytensor.gradient import disconnected_grad, grad_clip, grad_scale, zero_grad
from pytensor.graph import Apply, Op
from pytensor.printing import Print
from pytensor.raise_op import Assert, CheckAndRaise
from pytensor.scalar import float64 as scalar_float64
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

import pytensor_onnx
from pytensor_onnx import (
    ONNXLinker,
    UnsupportedOpError,
    UnsupportedTypeError,
    compile_onnx,
    export_function_onnx,
    export_onnx,
    onnx_funcify,
)
from pytensor_onnx.rewriting import ONNX_QUERY
from tests.conftest import compare_onnx_and_py, op_types

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
A = np.array([1.0, -2.0, 0.5])


def functions(program):
    return sorted(function.name for function in program.model.functions.values())


def body(program, name):
    (function,) = (f for f in program.model.functions.values() if f.name == name)
    return [node.op_type for node in function if node.op_type != "Constant"]


# Inner graphs


def test_equal_ops_share_one_function():
    x, y = pt.vectors("xy")
    ops = [OpFromGraph([x, y], [pt.exp(x) + y], name="step") for _ in range(2)]
    program = compare_onnx_and_py([x, y], ops[1](ops[0](x, y), x), [A, A + 1])
    assert op_types(program) == ["step", "step"]
    assert functions(program) == ["step"]
    assert body(program, "step") == ["Exp", "Add"]


def test_different_ops_of_one_name_are_different_functions():
    x = pt.vector("x")
    first, second = (OpFromGraph([x], [x + i], name="step") for i in (1, 2))
    program = compare_onnx_and_py([x], second(first(x)), [A])
    assert functions(program) == ["step", "step_1"]


def test_different_types_have_functions_of_their_own():
    class Double(SymbolicOp):
        __props__ = ()

        def build_inner_graph(self, x):
            return [x + x]

    x, y, z = pt.vector("x"), pt.matrix("y"), pt.vector("z", dtype="int8")
    program = compare_onnx_and_py(
        [x, y, z], [Double()(x), Double()(y), Double()(z)], [A, A[None], np.int8([1, 2])]
    )
    assert len(functions(program)) == 3


@pytest.mark.parametrize("name", ["Erf", "a name (odd)", "if", "2x", "x"])
def test_any_name_of_an_op_will_do(name):
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.erf(x) * 2], name=name)
    program = compare_onnx_and_py([x], op(x) + pt.erf(x), [A])
    assert len(set(functions(program))) == len(functions(program))


def test_functions_nest():
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.exp(x) + 1], name="inner")
    outer = OpFromGraph([x], [inner(x) * inner(inner(x))], name="outer")
    program = compare_onnx_and_py([x], outer(inner(x)), [A / 10])
    assert functions(program) == ["inner", "outer"]
    assert body(program, "outer") == ["inner", "inner", "Mul"]


def test_functions_have_several_outputs_and_unused_inputs():
    x, y, z = pt.vectors("xyz")
    op = OpFromGraph([x, y, z], [x + z, z, x * 2, x * 2, pt.constant(A)], on_unused_input="ignore")
    results = op(x, y, z)
    compare_onnx_and_py([x, y, z], results, [A, A + 1, A + 2])
    compare_onnx_and_py([x, y, z], [results[2], results[1]], [A, A + 1, A + 2])


def test_functions_hold_constants_and_read_shapes():
    x = pt.matrix("x")
    inner = x.reshape((x.shape[1], x.shape[0])) + np.arange(2.0) * pt.arange(x.shape[0])
    op = OpFromGraph([x], [inner, inner.shape], name="turn")
    y = pt.matrix("y")
    compare_onnx_and_py([y], op(op(y)[0] * 2), [np.ones((2, 2))])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0)], ids=str)
def test_functions_take_values_of_any_shape(shape):
    x = pt.tensor("x", shape=(None,) * len(shape))
    op = OpFromGraph([x], [x.sum(), pt.exp(x), x.shape])
    compare_onnx_and_py([x], op(x), [np.ones(shape)])


def test_gradients_through_functions():
    x, y = pt.vectors("xy")
    op = OpFromGraph([x, y], [pt.tanh(x) * y], name="gate")
    compare_onnx_and_py([x, y], pt.grad(op(op(x, y), y).sum(), [x, y]), [A, A + 1])


def test_inlined_graphs_vanish():
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.exp(x) + 1], inline=True)
    program = compare_onnx_and_py([x], op(x), [A])
    assert op_types(program) == ["Exp", "Add"]
    assert functions(program) == []


def test_functions_can_be_written_out():
    x = pt.vector("x")
    op = OpFromGraph([x], [pt.exp(x) + 1], name="step")
    program = export_onnx([x], op(op(x)), inline_functions=True)
    assert op_types(program) == ["Exp", "Add", "Exp", "Add"]
    np.testing.assert_allclose(program(A), np.exp(np.exp(A) + 1) + 1)


# Checks


class CustomError(Exception):
    """Raised by the checks of this module."""


def failing(result, *inputs):
    yield pytensor.function(inputs, result, mode="ONNX")
    yield compile_onnx(inputs, result, verify=False)


@pytest.mark.each_value
@pytest.mark.parametrize("error", [AssertionError, ValueError, ZeroDivisionError, CustomError])
@pytest.mark.parametrize(
    "message", ["x must be > 0", "", "tab\t, new\nline, 'quotes' \"and\" ünïcode", "x" * 500]
)
def test_a_failed_check_raises_the_exception_of_pytensor(error, message):
    x = pt.vector("x")
    result = CheckAndRaise(error, message)(x, pt.all(x > 0)) * 2
    for f in failing(result, x):
        np.testing.assert_array_equal(f(A**2), 2 * A**2)
        with pytest.raises(error, match=f"^{re.escape(message)}"):
            f(A)
        np.testing.assert_array_equal(f(A**2), 2 * A**2)


def test_each_check_has_its_own_message():
    x = pt.vector("x")
    checked = Assert("small")(x, (x < 10).all())
    checked = Assert("small and large")(checked * 1.5, (x > -10).all())
    checked = CheckAndRaise(ValueError, "small")(checked + 1, x.sum() < 20)
    for f in failing(checked, x):
        with pytest.raises(AssertionError, match=r"^small\n"):
            f([11.0])
        with pytest.raises(AssertionError, match=r"^small and large\n"):
            f([-11.0])
        with pytest.raises(ValueError, match=r"^small\n"):
            f([9.0, 9.0, 9.0])


def test_all_conditions_must_hold():
    x, y = pt.scalars("xy")
    result = Assert("both")(x + y, x > 0, y > 0, pt.constant(True))
    for f in failing(result, x, y):
        assert f(1.0, 2.0) == 3
        for values in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0)):
            with pytest.raises(AssertionError, match="both"):
                f(*values)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_values_of_any_dtype_and_shape_pass_a_check(shape, dtype):
    x, c = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape)), pt.scalar("c", dtype="bool")
    result = Assert("c")(x, c)
    compare_onnx_and_py([x, c], result, [np.ones(shape, dtype), True])
    for f in failing(result, x, c):
        with pytest.raises(AssertionError, match="c"):
            f(np.ones(shape, dtype), False)


def test_checks_within_functions():
    x = pt.vector("x")
    op = OpFromGraph([x], [Assert("inner check")(x, x.sum() > 0) * 2], name="checked")
    result = op(op(x) - 1)
    compare_onnx_and_py([x], result, [A + 2])
    for f in failing(result, x):
        with pytest.raises(AssertionError, match=r"^inner check\n"):
            f(A - 3)
        with pytest.raises(AssertionError, match=r"^inner check\n"):
            f(A + 0.2)


def test_a_check_that_is_known_to_hold_leaves_no_node():
    x = pt.matrix("x")
    result = Assert("equal")(pt.exp(x), pt.eq(x.shape[0], pt.exp(x).shape[0]), True)
    assert op_types(export_onnx([x], result)) == ["Exp"]


def test_a_file_says_which_check_failed(tmp_path):
    import onnxruntime

    x = pt.vector("x")
    export_onnx([x], Assert("x is small")(x, x.sum() < 1) * 2, tmp_path / "m.onnx", verify=False)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match="Name:'check_x_is_small'"):
        session.run(None, {"x": np.ones(3)})


# Values that pass through


@pytest.mark.parametrize("op", [deep_copy_op, view_op])
def test_copies_and_views_leave_no_node(op):
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], [op(pt.exp(x)), op(x)], [A[None]])
    assert sorted(op_types(program)) == ["Exp", "Identity"]


def test_print_is_left_out_with_a_warning():
    x = pt.vector("x")
    with pytest.warns(UserWarning, match="the value of x"):
        program = compare_onnx_and_py([x], Print("the value of x")(x) * 2, [A])
    assert op_types(program) == ["Mul"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.few(1)
def test_fused_loops_of_a_compiled_function_are_exported(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    f = pytensor.function([x, y], [(x + y) * 2 - x, x * y + 1], mode="FAST_RUN")
    assert any(
        isinstance(getattr(node.op, "scalar_op", None), Composite)
        for node in f.maker.fgraph.toposort()
    )
    values = [np.array([1, 2, 3], dtype), np.array([4, 5, 6], dtype)]
    for found, expected in zip(export_function_onnx(f)(*values), f(*values), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)


def test_a_fused_loop_of_several_outputs_and_dtypes():
    a, b = scalar_float64("a"), scalar_float64("b")
    op = Elemwise(Composite([a, b], [a + b, a > b, a * 2]))
    x, y = pt.matrix("x"), pt.tensor("y", shape=(1, None))
    compare_onnx_and_py([x, y], op(x, y), [np.ones((2, 3)), A[None]])


# What cannot be converted


class Opaque(Op):
    __props__ = ("number",)

    def __init__(self, number):
        self.number = number

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]


def test_one_error_lists_all_that_cannot_be_converted():
    x = pt.vector("x")
    first = Opaque(1)(x)
    line = inspect.currentframe().f_lineno - 1
    second = Opaque(2)(pt.exp(first))
    second.name = "wanted"
    inner = pt.vector("inner")
    nested = OpFromGraph([inner], [Opaque(3)(inner) + 1], name="nested")
    outer = OpFromGraph([inner], [nested(inner) * 2])
    with pytest.raises(UnsupportedOpError) as caught:
        export_onnx([x], [second, outer(first)])
    text = str(caught.value)
    assert text.startswith("3 parts of the graph")
    for expected in (
        "Opaque{number=1}",
        "Opaque{number=2}, which computes wanted",
        "Opaque{number=3}",
    ):
        assert text.count(f"- {expected}") == 1
    assert f"{__file__}:{line}" in text
    assert "first = Opaque(1)(x)" in text
    assert text.count(f"{__file__}:") == 3
    assert "no lowering is registered for" in text
    assert "onnx_funcify.register(Opaque)" in text


def test_the_linker_raises_the_same_error():
    x = pt.vector("x")
    off = Mode(ONNXLinker(python_fallback=False), ONNX_QUERY)
    with pytest.raises(UnsupportedOpError, match="2 parts"):
        pytensor.function([x], [Opaque(1)(x), Opaque(2)(x)], mode=off)


def test_an_input_that_is_no_dense_tensor_is_refused():
    matrix = sparse.matrix("bsr", "matrix", dtype="float64")
    with pytest.raises(UnsupportedTypeError, match=r"(?s)variable matrix.*dense"):
        export_onnx([matrix], sparse.dense_from_sparse(matrix))


def test_all_inputs_that_cannot_be_converted_are_listed():
    y, z = (sparse.matrix("bsr", name, dtype="float64") for name in "yz")
    with pytest.raises(UnsupportedTypeError) as caught:
        export_onnx([y, z], sparse.dense_from_sparse(y).sum() + sparse.dense_from_sparse(z).sum())
    assert "variable y" in str(caught.value)
    assert "variable z" in str(caught.value)


def test_a_lowering_of_ones_own_takes_three_lines():
    class Cube(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] ** 3

    @pytensor_onnx.onnx_funcify.register(Cube)
    def lower_cube(op, node, build, x):
        return build.Mul(build.Mul(x, x), x)

    x = pt.vector("x")
    program = compare_onnx_and_py([x], Cube()(x) + 1, [A])
    assert op_types(program) == ["Mul", "Mul", "Add"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda build, x: None, "returned 0 values"),
        (lambda build, x: [x, x], "returned 2 values"),
        (lambda build, x: build.Greater(x, 0), "returned BOOL"),
        (lambda build, x: build.Unsqueeze(x, [0]), "returned rank 2"),
        (lambda build, x: build.Add(1, 2), "no operand tells the dtype"),
    ],
)
def test_a_lowering_that_returns_something_else_is_refused(returned, message):
    class Wrong(Opaque):
        pass

    onnx_funcify.register(Wrong)(lambda op, node, build, x: returned(build, x))
    x = pt.vector("x")
    with pytest.raises(TypeError, match=message) as raised:
        export_onnx([x], Wrong(1)(x))
    text = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert re.search(r"(raised while|the lowering of) Wrong\{", text)
    assert re.search(r"made at:? +\S*test_basic\.py:\d+  export_onnx", text)


def test_checked_size_is_known_to_be_the_size():
    x, y = pt.matrix("x"), pt.vector("y")
    n = Assert("short")(x.shape[1], x.shape[1] <= 4)
    result = pt.exp(x).reshape((x.shape[0], n)) + y
    program = compare_onnx_and_py([x, y], result, [np.ones((2, 3)), np.ones(3)])
    assert "Reshape" not in op_types(program)


@pytest.mark.slow
def test_marks_for_gradients_leave_no_node():
    x = pt.vector("x")
    marked = [
        zero_grad(x),
        disconnected_grad(x),
        grad_clip(x, -1.0, 1.0),
        grad_scale(x, 2.0),
    ]
    program = compare_onnx_and_py([x], [pt.exp(y) for y in marked], [np.array([1.0, -2.0])])
    assert set(op_types(program)) == {"Exp", "Identity"}
    slopes = [pt.grad((y * x**3).sum(), x) for y in marked]
    compare_onnx_and_py([x], slopes, [np.array([1.0, -2.0])])
