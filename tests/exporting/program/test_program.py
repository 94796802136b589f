"""An exported program is called like the function, and saved in one step."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

import pytensor_onnx.exporting.program.weight_files
from pytensor_onnx import InputError, VerificationError, compile_onnx, export_onnx


@pytest.fixture
def program():
    x, n = pt.matrix("x"), pt.iscalar("n")
    return compile_onnx([x, n], [x * n, x.sum()], dynamic_axes={"x": {0: "batch"}})


def test_arguments_convert_where_nothing_is_lost(program):
    product, total = program([[1, 2], [3, 4]], 2)
    np.testing.assert_array_equal(product, [[2.0, 4.0], [6.0, 8.0]])
    assert product.dtype == "float64"
    assert total == 10.0


def test_wrong_rank_names_input_and_expectation(program):
    with pytest.raises(InputError, match=r"x: float64\[batch, x_dim1\] was given float64\[3\]"):
        program(np.ones(3), 1)


def test_wrong_dtype_names_input_and_expectation(program):
    with pytest.raises(InputError, match=r"n: int32\[\] was given float64\[\]"):
        program(np.ones((1, 1)), 1.5)


def test_an_integer_beyond_the_dtype_names_input_and_expectation(program):
    with pytest.raises(InputError, match=r"n: int32\[\] was given int64\[\]"):
        program(np.ones((1, 1)), 2**40)


def test_objects_that_are_no_numbers_name_input_and_expectation(program):
    with pytest.raises(InputError, match=r"input x: .* was given object\[1, 2\]"):
        program(np.array([[1.0, None]]), 1)


def test_all_wrong_inputs_are_named_at_once(program):
    with pytest.raises(InputError, match=r"input x: .*; input n: "):
        program(np.ones(3), 1.5)


def test_wrong_number_of_arguments_lists_the_inputs(program):
    with pytest.raises(InputError, match=r"2 inputs are expected \(x: .*n: .*\), 1 were given"):
        program(np.ones((1, 1)))


def test_dimensions_of_one_name_must_agree():
    x, y = pt.vector("x"), pt.vector("y")
    program = compile_onnx([x, y], x + y)
    with pytest.raises(InputError, match=r"dimension 'x_dim0' is 2 in x and 3 in y"):
        program(np.ones(2), np.ones(3))


def test_run_time_broadcasting_is_refused_as_in_pytensor():
    x, y = pt.vector("x"), pt.vector("y")
    with pytest.raises(InputError, match="is 1 in x and 3 in y"):
        compile_onnx([x, y], x + y)(np.ones(1), np.ones(3))


def test_dimensions_named_equal_by_the_user_must_agree():
    x, y = pt.vector("x"), pt.vector("y")
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    program = compile_onnx([x, y], [x.sum(), y.sum()], dynamic_axes=axes)
    with pytest.raises(InputError, match="'batch'"):
        program(np.ones(2), np.ones(3))


def test_known_sizes_reach_the_inputs():
    x, w = pt.matrix("x"), pytensor.shared(np.ones((3, 4)), name="w")
    program = compile_onnx([x], x @ w)
    with pytest.raises(InputError, match=r"x: float64\[x_dim0, 3\]"):
        program(np.ones((2, 2)))


def test_model_and_proto_are_the_same_model(program):
    assert isinstance(program.model, ir.Model)
    assert isinstance(program.proto, onnx.ModelProto)
    assert len(program.proto.graph.node) == len(list(program.model.graph))


def test_saving_replaces_an_older_file_and_leaves_nothing_else(program, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"older")
    assert program.save(path) == path
    onnx.checker.check_model(onnx.load(path), full_check=True)
    assert list(tmp_path.iterdir()) == [path]


def test_failed_saving_keeps_the_older_file(program, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"older")

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(pytensor_onnx.exporting.program.weight_files.ir, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        program.save(path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_large_weights_go_to_a_second_file(tmp_path, monkeypatch):
    monkeypatch.setattr(pytensor_onnx.graph.weights, "LARGEST_MESSAGE", 1000)
    w = pytensor.shared(np.random.default_rng(0).normal(size=(40, 40)), name="w")
    x = pt.vector("x")
    program = export_onnx([x], x @ w, tmp_path / "model.onnx")
    assert {p.name for p in tmp_path.iterdir()} == {"model.onnx", "model.onnx.data"}
    assert (tmp_path / "model.onnx").stat().st_size < 3000
    session = pytensor_onnx.running.session.Session(tmp_path / "model.onnx")
    a = np.arange(40.0)
    np.testing.assert_allclose(session.run({"x": a})[0], a @ w.get_value(), rtol=1e-12)
    np.testing.assert_allclose(program(a), a @ w.get_value(), rtol=1e-12)


def test_program_prints_its_signature(program):
    assert repr(program).startswith("ONNXProgram(x: float64[batch, x_dim1], n: int32[] -> ")


def test_inputs_may_be_given_by_name(program):
    a = np.array([[1.0, 2.0]])
    for product, total in (program(n=3, x=a), program(a, n=3), program(a, 3)):
        np.testing.assert_array_equal(product, [[3.0, 6.0]])
        assert total == 3.0


def test_an_input_may_have_any_name():
    names = ("self", "arguments", "named", "a-b")
    variables = [pt.scalar(name) for name in names]
    program = compile_onnx(variables, sum(variables))
    assert program(**dict.fromkeys(names, 2.0)) == 8.0


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {"x": 1, "z": 2}, r"^there is no input 'z'; n is missing \(the inputs are x: .*, n: "),
        ((1,), {"x": 1, "n": 1}, r"^x is given twice \(the inputs are x: "),
        ((), {"x": 1}, r"^n is missing \("),
        ((1, 1, 1), {"z": 1}, r"^there is no input 'z'"),
        ((1, 1, 1), {"n": 1}, r"^n is given twice"),
        ((1,), {}, r"2 inputs are expected"),
    ],
)
def test_wrong_names_are_listed(program, arguments, named, message):
    with pytest.raises(InputError, match=message):
        program(*arguments, **named)


def counter():
    x, total = pt.scalar("x"), pytensor.shared(0.0, name="total")
    return export_onnx([x], total + x, updates={total: total + x}, verify=False)


def test_state_is_no_argument():
    with pytest.raises(
        InputError, match=r"total is a part of the state: set program.state\['total'"
    ):
        counter()(x=1.0, total=3.0)


def test_threads_lose_no_updates():
    program = counter()

    def increment(_):
        for _ in range(200):
            program(1.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(8)))
    assert program.state["total"] == 8 * 200


def test_programs_without_state_take_no_lock(program):
    with program._lock:
        assert program(np.ones((1, 1)), 2)[1] == 1.0


COPIES = [copy.copy, copy.deepcopy, lambda program: pickle.loads(pickle.dumps(program))]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("called", [False, True])
def test_copies_have_a_state_of_their_own(copied, called):
    program = counter()
    if called:
        program(2.0)
    other = copied(program)
    assert "session" not in vars(other)
    assert other.state == program.state
    before = float(program.state["total"])
    assert other(x=5.0) == before + 5.0
    assert (program.state["total"], other.state["total"]) == (before, before + 5.0)


@pytest.mark.parametrize("copied", COPIES)
def test_copies_save_verify_and_report(copied, tmp_path):
    x, w = pt.matrix("x"), pytensor.shared(np.ones((3, 2)), name="w")
    checked = Assert("must be positive")(x, (x > 0).all())
    y = pytensor.scan(lambda row: pt.erfc(row @ w), sequences=[checked], return_updates=False)
    program = export_onnx([x], y, dynamic_axes={"x": {0: "batch"}})
    other = copied(program)
    assert other.proto == program.proto
    assert other.report() == program.report()
    assert repr(other) == repr(program)
    other.verify([np.ones((2, 3))])
    np.testing.assert_array_equal(other(np.ones((2, 3))), program(np.ones((2, 3))))
    with pytest.raises(AssertionError, match="must be positive"):
        other(-np.ones((2, 3)))
    assert other.save(tmp_path / "model.onnx").exists()


def test_a_copy_that_is_wrong_names_the_node(program):
    other = copy.deepcopy(program)
    node = next(n for n in other.model.graph if n.op_type == "Mul")
    node.op_type = "Add"
    with pytest.raises(VerificationError, match=r"first node that diverges is .* Mul"):
        other.verify([np.ones((2, 3)), 3])
    program.verify([np.ones((2, 3)), 3])


def test_scalars_are_numpy_scalars_as_in_pytensor():
    s, i = ps.float64("s"), ps.int64("i")
    results = [s * 2, i + 1, s > 1, pt.tensor_from_scalar(s)]
    expected = pytensor.function([s, i], results, mode="FAST_COMPILE")(1.5, 2)
    for found in (
        compile_onnx([s, i], results, verify=False)(1.5, 2),
        pytensor.function([s, i], results, mode="ONNX")(1.5, 2),
        pytensor.function([s, i], results, mode="ONNX")(s=1.5, i=2),
    ):
        assert found == expected
        assert [type(a) for a in found] == [type(b) for b in expected]
