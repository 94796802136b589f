"""Files are verified within limits of time and memory, whatever they hold."""

import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytensor_onnx import VerificationError
from pytensor_onnx.exporting.files.file_verification import verify_file, verify_file_apart
from tests.conftest import sweep_rest

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info = helper.make_tensor_value_info


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def save(folder, nodes, inputs=(), constants=(), output=("y", FLOAT, None)):
    graph = helper.make_graph(nodes, "g", inputs, [info(*output)], initializer=constants)
    path = folder / "model.onnx"
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def of_shape(op_type, *shape):
    """Return nodes that expand one number to an array of a shape."""
    inputs = [info("x", FLOAT, [1, 1])] if op_type != "ConstantOfShape" else []
    node = helper.make_node(op_type, [*(v.name for v in inputs), "shape"], ["y"])
    return [node], inputs, [constant("shape", np.array(shape))], ("y", FLOAT, [None, None])


def endless_loop(nodes, shape, constants=()):
    """Return an endless Loop, whose body has nodes that compute `after` from `a`."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), *nodes],
        "body",
        [info("i", INT64, []), info("go", BOOL, []), info("a", FLOAT, shape)],
        [info("go_on", BOOL, []), info("after", FLOAT, shape)],
    )
    loop = helper.make_node("Loop", ["", "true", "start"], ["y"], body=body)
    start = np.ones([1] * len(shape), "float32")
    return (
        [loop],
        [],
        [constant("true", True), constant("start", start), *constants],
        (
            "y",
            FLOAT,
            shape,
        ),
    )


def adding():
    one = constant("one", np.float32(1))
    return endless_loop([helper.make_node("Add", ["a", "one"], ["after"])], [], [one])


def growing():
    return endless_loop([helper.make_node("Concat", ["a", "a"], ["after"], axis=0)], [None])


def integers():
    ends = [constant(n, np.int64(v)) for n, v in (("a", 0), ("b", 10**10), ("s", 1))]
    return [helper.make_node("Range", ["a", "b", "s"], ["y"])], [], ends, ("y", INT64, [None])


def large_input(*shape):
    node = helper.make_node("Identity", ["x"], ["y"])
    return [node], [info("x", FLOAT, shape)], [], ("y", FLOAT, shape)


def claimed(*dims, data=b""):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims)
    if data:
        tensor.raw_data = data
    node = helper.make_node("Identity", ["w"], ["y"])
    return [node], [], [tensor], ("y", FLOAT, [None] * len(dims))


def test_successful_steps_are_listed(tmp_path):
    inputs = [info("x", FLOAT, ["n", 3])]
    node = helper.make_node("Neg", ["x"], ["y"])
    assert list(verify_file(save(tmp_path, [node], inputs, output=("y", FLOAT, ["n", 3])))) == [
        "the ONNX checker accepts it",
        "ONNX Runtime loads it",
        "it runs on sampled inputs (x [3, 3]) and returns y: float32[3, 3]",
    ]


def test_a_loop_without_an_end_is_ended(tmp_path):
    path = save(tmp_path, *adding())
    outcome = verify_file_apart(path, timeout=2)
    assert outcome.error == f"{path} did not end within 2 s (--timeout takes another limit)"
    assert outcome.steps == ["the ONNX checker accepts it", "ONNX Runtime loads it"]


BOMBS = {
    "Expand": lambda: of_shape("Expand", 10**5, 10**5),
    "ConstantOfShape": lambda: of_shape("ConstantOfShape", 10**5, 10**5),
    "several gigabytes": lambda: of_shape("ConstantOfShape", 2 * 10**4, 3 * 10**4),
    "Range": integers,
    "Loop": growing,
    "input": lambda: large_input(10**5, 10**5),
    "gigabyte of input": lambda: large_input(10**4, 2 * 10**4),
}


@pytest.mark.parametrize(
    "bomb",
    sweep_rest(BOMBS, ("several gigabytes", "Range", "Loop", "gigabyte of input")),
)
@pytest.mark.few(1)
def test_files_that_take_all_memory_are_stopped(tmp_path, bomb):
    path = save(tmp_path, *BOMBS[bomb]())
    assert path.stat().st_size < 500
    outcome = verify_file_apart(path, timeout=60)
    assert outcome.error is not None
    assert outcome.error.startswith(f"{path} needs more than 1.0 GiB of memory: ")


LIMIT = "exceeds the 2147483648 byte limit"
"""Message of the runtime, for files that the checker of onnx before 1.23 accepts."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of_shape("Tile", 10**5, 10**5), "Tile output tensor would require more than"),
        (lambda: claimed(10**6, 10**6), "should contain one and only one value field"),
        (lambda: claimed(10**6, 10**6, data=b"abcd"), f"too small for the declared shape|{LIMIT}"),
        (lambda: claimed(2**40, 2**40, data=b"abcd"), "dimension product overflow|0-element"),
    ],
)
def test_sizes_that_are_claimed_only_are_refused(tmp_path, make, message):
    path = save(tmp_path, *make())
    with pytest.raises(VerificationError, match=message):
        list(verify_file(path))


def test_the_reason_of_a_refusing_checker_is_named(tmp_path):
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    path = save(tmp_path, [node], [info("x", FLOAT, [1])], output=("y", FLOAT, [1]))
    with pytest.raises(VerificationError, match=r"the ONNX checker refuses .*NoSuchOperator"):
        list(verify_file(path))


def test_a_model_that_does_not_run_is_refused(tmp_path):
    inputs = [info("x", FLOAT, [0]), info("index", INT64, [])]
    node = helper.make_node("Gather", ["x", "index"], ["y"])
    path = save(tmp_path, [node], inputs, output=("y", FLOAT, []))
    with pytest.raises(VerificationError, match="runs on no sampled inputs"):
        list(verify_file(path))


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        (info("s", TensorProto.STRING, ["n"]), "STRING"),
        (helper.make_tensor_sequence_value_info("s", FLOAT, None), "Sequence"),
    ],
)
def test_inputs_without_real_numbers_are_named(tmp_path, given, type_):
    path = save(tmp_path, [], [given, info("y", FLOAT, [1])], output=("y", FLOAT, [1]))
    with pytest.raises(VerificationError, match=rf"input 's' is of type {type_}"):
        list(verify_file(path))


def test_the_signal_that_ends_the_process_is_named(tmp_path, monkeypatch):
    path = save(tmp_path, *adding())
    start = subprocess.Popen
    code = "import os, sys; print(flush=True); os.kill(os.getpid(), 6)"
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **kw: start([command[0], "-c", code], **kw)
    )
    outcome = verify_file_apart(path, timeout=60)
    assert outcome.error == (
        f"{path} ended the process that verified it: SIGABRT, which running out of memory can cause"
    )
