"""Errors at run time are PyTensor's exceptions, and say what happened where in the user's graph."""

import copy
import re
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.replace import clone_replace
from pytensor.raise_op import Assert, CheckAndRaise

from pytensor_onnx import InputError, PyTensorONNXError, RunError, compile_onnx, export_onnx
from pytensor_onnx.graph.names import find_place
from pytensor_onnx.running.run_errors import explain
from pytensor_onnx.running.session import Session

HERE = Path(__file__).name
X, M = np.arange(3.0), np.ones((3, 4))
x, y, m, n, t = pt.vector("x"), pt.vector("y"), pt.matrix("m"), pt.matrix("n"), pt.tensor3("t")
i, k = pt.lscalar("i"), pt.lvector("k")
VALUES = {x: X, y: np.ones(4), m: M, n: np.ones((3, 5)), t: np.ones((2, 3, 4)), i: 5, k: [0, 9]}


def scan(step, *args, **kwargs):
    return pytensor.scan(step, *args, return_updates=False, name="walk", **kwargs)


def in_loop(operation):
    """Return the last value of a loop that cannot move the operation out of its steps."""

    def step(state, *_):
        changed = {v: v + state for v in (x, y, m, t)}
        return pt.tanh(clone_replace(operation(), changed).sum())

    return lambda: scan(step, outputs_info=[pt.zeros(())], n_steps=2, non_sequences=list(VALUES))[
        -1
    ]


def in_function(operation):
    arguments = {v: v.type(name=v.name) for v in (x, y, m, n, t, i, k)}

    def call():
        inner = clone_replace(operation(), arguments)
        return OpFromGraph(list(arguments.values()), [inner], name="my_function")(*arguments)

    return call


def runs(result, modes=("ONNX", "program")):
    inputs = list(VALUES)
    if "ONNX" in modes:
        yield pytensor.function(inputs, result, mode="ONNX", on_unused_input="ignore")
    if "program" in modes:
        yield compile_onnx(inputs, result, verify=False)


def reference_error(result):
    mode = pytensor.compile.mode.Mode("py", "fast_compile")
    f = pytensor.function(list(VALUES), result, mode=mode, on_unused_input="ignore")
    with pytest.raises((IndexError, ValueError)) as raised:
        f(*VALUES.values())
    return IndexError if issubclass(raised.type, IndexError) else ValueError


e = pt.exp
CASES = {
    "element": (lambda: x[i], "index 5 into x is out of range for an axis of size 3"),
    "row from the end": (lambda: m[-i], "index -5 into m is out of range for an axis of size 3"),
    "elements": (lambda: x[k], "index 9 into x is out of range for an axis of size 3"),
    "column": (lambda: m[:, k], "index 9 into m is out of range for an axis of size 4"),
    "points": (lambda: m[k, k], "index 9 into m is out of range for an array of shape (3, 4)"),
    "of a result": (lambda: pt.cumsum(x)[i], "index 5 is out of range for an axis of size 3"),
    "indices of other lengths": (
        lambda: m[k, pt.arange(i)],
        "shape mismatch: indexing arrays could not be broadcast together",
    ),
    "set": (lambda: x[i].set(1.0), "index 5 into x is out of range for an array of shape (3,)"),
    "increment": (lambda: e(x)[k].inc(1.0), "index 9 is out of range for an array of shape (3,)"),
    "increment of points": (
        lambda: m[k, k].inc(1.0),
        "index 9 into m is out of range for an array of shape (3, 4)",
    ),
    "values of another length": (
        lambda: x[k % 2].set(y[: i - 1]),
        "values of shape (4,) do not fit the 2 elements that are set or incremented in an array "
        "of shape (3,)",
    ),
    "slice of values": (
        lambda: x[1:].set(e(y)),
        "an array of shape (4,) cannot be broadcast to the shape (2,)",
    ),
    "reshape": (lambda: x.reshape((2, -1)), "an array of shape (3,) cannot be reshaped to (2, -1)"),
    "reshape to sizes": (
        lambda: m.reshape((i, 2)),
        "an array of shape (3, 4) cannot be reshaped to (5, 2)",
    ),
    "split": (
        lambda: pt.split(x, [1, 1], n_splits=2)[0],
        "the sizes of a split sum to 2, for an array of shape (3,)",
    ),
    "negative split": (
        lambda: pt.split(x, pt.stack([i, 3 - i]), n_splits=2)[0],
        "the sizes of a split cannot be negative",
    ),
    "dot": (
        lambda: m[:, : i - 2] @ m.T,
        "the shapes (3, 3) and (4, 3) of a matrix product do not fit",
    ),
    "product with a vector": (
        lambda: m[:, : i - 2] @ y,
        "the shapes (3, 3) and (4, 1) of a matrix product do not fit",
    ),
    "inner product": (
        lambda: x[: i - 3] @ x,
        "the shapes (2,) and (3,) of a matrix product do not fit",
    ),
    "batched product": (
        lambda: t[:, :, : i - 2] @ t.transpose((0, 2, 1)),
        "the shapes (2, 3, 3) and (2, 4, 3) of a matrix product do not fit",
    ),
    "join": (
        lambda: pt.concatenate([e(m), e(n)[:, i - 5 :]]),
        "arrays that are joined differ in another axis: axis 1 has the sizes 4 and 5",
    ),
    "maximum of nothing": (
        lambda: e(x[i:]).max(),
        "zero-size array to reduction operation maximum which has no identity",
    ),
    "minimum of nothing": (
        lambda: pt.sqr(k[i:]).min(),
        "zero-size array to reduction operation minimum which has no identity",
    ),
    "argmax of nothing": (
        lambda: e(x[i:]).argmax(),
        "attempt to get argmax of an empty sequence",
    ),
    "sum": (
        lambda: x[: i - 2] + y[: i - 1],
        "operands cannot be broadcast together: one axis has the sizes 3 and 4",
    ),
    "choice": (
        lambda: pt.switch(x[: i - 2] > 0, y[: i - 1], 0.0),
        "operands cannot be broadcast together: one axis has the sizes 3 and 4",
    ),
    "negative size": (lambda: pt.zeros(-i) + i, "negative dimensions are not allowed"),
    "step of a slice": (lambda: x[:: i - 5], "the step of a slice cannot be zero"),
    "choose": (lambda: pt.choose(k, [x[:2], x[1:]]), "invalid entry in choice array"),
    "repeat": (
        lambda: pt.repeat(x, k),
        "repeats has another length than the axis that it is for",
    ),
}


@pytest.mark.parametrize(("operation", "message"), CASES.values(), ids=CASES)
def test_an_error_at_run_time_is_the_one_of_pytensor(operation, message):
    result = operation()
    kind = reference_error(result)
    for run in runs(result):
        with pytest.raises(kind, match=f"^{re.escape(message)}\n") as raised:
            run(*VALUES.values())
        assert isinstance(raised.value, RunError)
        text = str(raised.value)
        assert re.search(rf"\n    made at:  .*{HERE}:\d+  ", text)
        assert re.search(r"\n    in:       \w+", text)
        assert re.search(r"\n    runtime:  \[ONNXRuntimeError\]", text)


INNER = ["element", "increment", "reshape", "split", "dot", "join", "maximum of nothing", "sum"]


@pytest.mark.each_value
@pytest.mark.parametrize("case", INNER)
@pytest.mark.parametrize("within", [in_loop, in_function], ids=["loop", "function"])
def test_errors_within_loops_and_functions(case, within):
    operation, message = CASES[case]
    kind = reference_error(operation())
    (run,) = runs(within(operation)(), ["program"])
    with pytest.raises(kind) as raised:
        run(*VALUES.values())
    text = str(raised.value)
    assert text.partition("\n")[0].replace(" into x", "") == message.replace(" into x", "")
    assert re.search(rf"\n    made at:  .*{HERE}:\d+  ", text)
    assert ("loop:     walk" in text) == (within is in_loop)
    assert ("in my_function" in text) == (within is in_function)


def test_the_message_names_the_variable_of_the_user():
    taken = x[k]
    taken.name = "taken"
    for run in runs(pt.exp(taken) + 1):
        with pytest.raises(IndexError, match=r"\n    in:  .*, which computes taken\n"):
            run(*VALUES.values())


def test_errors_of_functions_that_update_state():
    total = pytensor.shared(np.zeros(3), name="total")
    f = pytensor.function([i], [], updates={total: total[i:] + total[i]}, mode="ONNX")
    with pytest.raises(IndexError, match=r"^index 7 into total is out of range") as raised:
        f(7)
    assert isinstance(raised.value, RunError)
    assert total.get_value().shape == (3,)


def test_copies_and_files_explain_errors_too(tmp_path):
    program = export_onnx([x, i], x[i], tmp_path / "m.onnx", verify=False)
    with pytest.raises(IndexError, match=HERE):
        copy.deepcopy(program)(X, 5)
    with pytest.raises(IndexError, match=r"^index 5 into x .*\n    in:       Subtensor{i}\n"):
        Session(tmp_path / "m.onnx").run({"x": X, "i": np.array(5)})
    assert HERE.encode() not in (tmp_path / "m.onnx").read_bytes()


@pytest.mark.parametrize("inline_functions", [False, True])
def test_a_function_that_is_called_more_than_once(inline_functions):
    a, j = pt.vector("a"), pt.lscalar("j")
    inner = OpFromGraph([a, j], [pt.exp(a)[j]], name="inner")
    outer = OpFromGraph([a, j], [inner(a, j) + inner(a * 2, j + 1)], name="outer")
    first = outer(x, i)
    second = outer(x, i - 6)
    program = export_onnx([x, i], first + second, verify=False, inline_functions=inline_functions)
    with pytest.raises(IndexError) as raised:
        program(X, 3)
    found = set(re.findall(rf"{HERE}:\d+  (\w+) =", str(raised.value)))
    assert found
    assert found <= {"first", "second"}


class CustomError(Exception):
    pass


def test_exceptions_of_the_user_keep_their_class_and_say_where():
    result = CheckAndRaise(CustomError, "not yet")(x, x.sum() < 0)
    for run in runs(result):
        with pytest.raises(CustomError) as raised:
            run(*VALUES.values())
        assert str(raised.value) == "not yet"
        assert HERE in "".join(raised.value.__notes__)


def test_assertions_are_errors_of_this_package_as_well():
    for run in runs(Assert("is positive")(x, x.sum() < 0)):
        with pytest.raises(AssertionError, match=r"^is positive\n") as raised:
            run(*VALUES.values())
        assert isinstance(raised.value, PyTensorONNXError)


def test_sizes_of_inputs_that_differ_name_the_dimension():
    for run in runs(x + y):
        with pytest.raises(InputError, match=r"dimension '\w+' is 3 in x and 4 in y"):
            run(*VALUES.values())


A, TWO = np.ones((3, 4), "float32"), np.array([1, 2])
RUNTIME = {
    "Gather": (
        "float[n,m] a, int64 b",
        "Gather(a, b)",
        [A, np.array(5)],
        "index 5 is out of range for an axis of size 3",
    ),
    "Gather of none": ("float[n,m] a, int64 b", "Gather(a, b)", [A[:0], np.array(1)], "size 0"),
    "GatherND": (
        "float[n,m] a, int64[k] b",
        "GatherND(a, b)",
        [A, TWO + 5],
        "index 6 is out of range",
    ),
    "GatherElements": (
        *("float[n,m] a, int64[k,l] b", "GatherElements(a, b)", [A, np.full((1, 4), 8)]),
        "an index is out of range",
    ),
    "Add": ("float[n,m] a, float[k,l] b", "Add(a, b)", [A, A[:2]], "sizes 2 and 3"),
    "Expand": (
        *("float[n,m] a, int64[k] b", "Expand(a, b)", [A, np.array([2, 4])]),
        "an array cannot be broadcast to the shape that is asked for",
    ),
    "ScatterND": (
        "float[n,m] a, int64[k,l] b, float[p,q] c",
        "ScatterND(a, b, c)",
        [A, np.zeros((2, 1), "int64"), A],
        "values of shape (3, 4) do not fit the 2 elements",
    ),
    "Reshape": (
        *("float[n,m] a, int64[k] b", "Reshape(a, b)", [A, np.array([5, -1])]),
        "an array of shape (3, 4) cannot be reshaped to (5, -1)",
    ),
    "Reshape to unknown": (
        *("float[n,m] a, int64[k] b", "Reshape(a, b)", [A, np.array([-1, -1])]),
        "only one size of the new shape may be -1",
    ),
    "Reshape to negative": (
        *("float[n,m] a, int64[k] b", "Reshape(a, b)", [A, np.array([-2, 4])]),
        "negative dimensions are not allowed: -2",
    ),
    "Split": ("float[n,m] a, int64[k] b", "Split(a, b)", [A, np.array([1, 1])], "sum to 2"),
    "Split negative": (
        *("float[n,m] a, int64[k] b", "Split(a, b)", [A, np.array([4, -1])]),
        "the sizes of a split cannot be negative",
    ),
    "Split too long": (
        *("float[n,m] a, int64[k] b", "Split(a, b)", [A, np.array([2, 2])]),
        "the sizes of a split are more than the axis has: 2 where 1 are left",
    ),
    "Concat": (
        *("float[n,m] a, float[k,l] b", "Concat<axis=0>(a, b)", [A, A[:, :2]]),
        "axis 1 has the sizes 4 and 2",
    ),
    "Gemm": (
        *("float[n,m] a, float[k,l] b", "Gemm(a, b)", [A, A]),
        "the shapes of a matrix product do not fit",
    ),
    "MatMul": (
        *("float[n,m] a, float[k,l] b", "MatMul(a, b)", [A, A]),
        "the shapes of a matrix product do not fit",
    ),
    "Gemm with a bias": (
        *("float[n,m] a, float[k] b", "Gemm<transB=1>(a, a, b)", [A, A[0, :2]]),
        "a product and its addend cannot be broadcast together",
    ),
    "Einsum": (
        *("float[n,m] a, float[k,l] b", 'Einsum<equation="ij,jk->ik">(a, b)', [A, A]),
        "the shapes of a product do not fit: (3, 4) where the other operand has 4",
    ),
    "Squeeze": (
        *("float[n,m] a, int64[k] b", "Squeeze(a, b)", [A, np.array([1])]),
        "axis 1 cannot be dropped: it has the size 4",
    ),
    "Conv": (
        *("float[n,c,d] a, float[k,l,e] b", "Conv(a, b)", [A[None], np.ones((1, 2, 1), "f")]),
        "an image of 3 channels does not fit filters for 2 channels in 1 groups",
    ),
    "ConvTranspose": (
        "float[n,c,d] a, float[k,l,e] b",
        "ConvTranspose(a, b)",
        [A[None], np.ones((2, 2, 1), "f")],
        "an image of 3 channels does not fit filters for 2 channels",
    ),
    "LayerNormalization": (
        *("float[n,m] a, float[k] b", "LayerNormalization(a, b)", [A, A[0, :3]]),
        "a scale of shape (3,) does not fit an array of shape (3, 4)",
    ),
    "Tile": (
        *("float[n,m] a, int64[k] b", "Tile(a, b)", [A, np.array([1, -1])]),
        "negative dimensions are not allowed",
    ),
    "Slice": (
        *("float[n,m] a, int64[k] b", "Slice(a, b, b, b, b)", [A, np.array([0])]),
        "the step of a slice cannot be zero",
    ),
    "Range": (
        *("int64 a, int64 b", "Range(a, b, a)", [np.array(0), np.array(5)]),
        "the step of a range cannot be zero",
    ),
    "Div": ("int64[k] a, int64[k] b", "Div(a, b)", [TWO, 0 * TWO], "integer division by zero"),
    "Scan": (
        "float[n,m] a, float[k,m] b",
        "Scan<num_scan_inputs=2, body=each (float[m] p, float[m] q) => (float[m] r) "
        "{r = Add(p, q)}>(a, b)",
        [A, A[:2]],
        "the sequences of a loop differ in length: 3 and 2",
    ),
    "rank": ("float[n,m] a, float[k] b", "Add(a, b)", [A, A], "input b has 2 axes, but 1"),
    "size": ("float[n,5] a", "Exp(a)", [A], "axis 1 of input a has the size 4, but 5 is"),
}


@pytest.mark.parametrize(("inputs", "node", "values", "message"), RUNTIME.values(), ids=RUNTIME)
def test_every_message_of_the_runtime_has_a_meaning(inputs, node, values, message):
    outputs = "y, z" if node.startswith("Split") else "y"
    kind = "int64" if inputs.startswith("int64") else "float"
    text = f"""<ir_version: 10, opset_import: ["": 21]>
    main ({inputs}) => ({kind}[*] y) {{ {outputs} = {node} }}""".replace("[*]", "")
    model = ir.from_onnx_text(text)
    model.graph.outputs[0].shape = None
    session = Session(model)
    with pytest.raises(PyTensorONNXError) as raised:
        session.run(dict(zip("abc", values, strict=False)))
    assert message in str(raised.value).partition("\n")[0]
    assert isinstance(raised.value, ValueError | IndexError | ZeroDivisionError)


def test_an_error_of_the_runtime_that_has_no_meaning_names_the_operation():
    model = compile_onnx([x], pt.exp(x), verify=False).model
    text = "Non-zero status code returned while running Exp node. Name:'output_0' Status Message: ?"
    error = explain(RuntimeError(text), model, {}, {}, {})
    assert type(error) is RunError
    assert str(error).splitlines()[:2] == ["ONNX Runtime failed", "    in:       Exp"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exp", ("", "exp")),
        ("_inlfunc_f_exp", ("f", "exp")),
        ("_inlfunc_f_g_token_12_exp_1", ("f_g", "exp_1")),
        ("exp_1/MatmulTransposeFusion/", ("", "exp_1")),
        ("_inlfunc_f_token_2_exp/MatMulAddFusion", ("f", "exp")),
        ("expanded", None),
    ],
)
def test_nodes_are_found_by_the_names_that_the_runtime_gives_them(name, expected):
    text = """<ir_version: 10, opset_import: ["": 21, "d": 1]>
    main (float[n] x) => (float[n] y) {
        [exp] a = Exp(x)
        [exp_1] b = d.f(a)
        [call] y = d.f_g(b)
    }
    <domain: "d", opset_import: ["": 21]> f (x) => (y) { [exp] y = Exp(x) }
    <domain: "d", opset_import: ["": 21]> f_g (x) => (y) { [exp_1] y = Exp(x) }
    """
    place = find_place(ir.from_onnx_text(text), name)
    assert (place and (place.function, place.node.name)) == expected
