"""Every operation of the records, in every layer: see `tests/operations/record.py`."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

from pytensor_onnx import ONNXProgram, export_onnx, from_onnx
from pytensor_onnx.graph.traversal import STANDARD_DOMAIN
from pytensor_onnx.kernels import regions
from tests import coverage_recorder
from tests.conftest import PY, assert_same, compare_onnx_and_py
from tests.functions.special.accuracy import assert_accurate, assert_ends
from tests.kernels.conftest import open_session
from tests.operations import OPERATIONS, Operation
from tests.operations.record import WIDE, Group
from tests.web.tapes import needs_tapes, run_in_node, saved


def named(is_meant: Callable[[Operation], Any] = lambda _: True) -> pytest.MarkDecorator:
    """Give a test the names of operations."""
    found = {name: x.is_slow for name, x in OPERATIONS.items() if is_meant(x)}
    marks = {True: pytest.mark.slow, False: ()}
    return pytest.mark.parametrize(
        "name", [pytest.param(n, marks=marks[x]) for n, x in found.items()]
    )


WITH_KERNELS = [name for name, operation in OPERATIONS.items() if operation.kernel]
Calls = list[list[np.ndarray]]


@cache
def graphs_of(name: str) -> list[Group]:
    return OPERATIONS[name].groups(OPERATIONS[name].dtypes)


@cache
def kernel_graphs_of(name: str) -> list[Group]:
    return OPERATIONS[name].kernel_groups()


@cache
def exported(name: str) -> ONNXProgram:
    """Return the model of all graphs of an operation."""
    return export_onnx(*joined(graphs_of(name)), verify=False)


@cache
def expected(name: str) -> Calls:
    return references(OPERATIONS[name], graphs_of(name))


def joined(groups: list[Group]) -> tuple[list[Variable], list[Variable]]:
    """Return the inputs and the outputs of all graphs."""
    return [v for g in groups for v in g.inputs], [v for g in groups for v in g.outputs]


def evenly(groups: list[Group], most: int) -> list[Group]:
    """Return so many of the graphs at most, evenly spread."""
    count = min(most, len(groups))
    return [groups[i * len(groups) // count] for i in range(count)]


def calls(groups: list[Group]) -> Iterator[list[np.ndarray]]:
    """Yield arguments of all graphs, until each had all of its own."""
    for k in range(max(len(group.feeds) for group in groups)):
        yield [x for group in groups for x in group.feeds[k % len(group.feeds)]]


def references(operation: Operation, groups: list[Group]) -> Calls:
    """Return the results of each call by the reference of an operation."""
    with np.errstate(all="ignore"), pytensor.config.change_flags(cxx=""):
        if operation.reference is None:
            function = pytensor.function(*joined(groups), mode=PY)
            return [function(*arguments) for arguments in calls(groups)]
        found = [
            [operation.reference(*group.feeds[k]) for group in groups]
            for k in range(len(groups[0].feeds))
        ]
    return [[x for r in each for x in (r if isinstance(r, list) else [r])] for each in found]


def assert_right(
    operation: Operation, groups: list[Group], found: Calls, truths: Calls, ulp: int | None = None
) -> None:
    """Compare the results of all calls with those of the reference, by tolerances or in ulp."""
    labels = [f"{group}, output {i}" for group in groups for i in range(len(group.outputs))]
    for k, (results, wanted) in enumerate(zip(found, truths, strict=True)):
        for label, a, b in zip(labels, results, wanted, strict=True):
            rtol, atol, eps = operation.rtol, operation.atol, operation.eps
            if eps is None and ulp is not None and b.dtype.kind == "f":
                info = np.finfo(b.dtype)
                rtol, atol = ulp * float(info.eps), ulp * float(info.smallest_subnormal)
            try:
                signed_zeros = operation.signed_zeros
                assert_same(a, b, rtol=rtol, atol=atol, eps=eps, signed_zeros=signed_zeros)
            except AssertionError as error:
                error.add_note(f"{operation} {label}, call {k}")
                raise


def listed(found: np.ndarray | Sequence[np.ndarray]) -> list[np.ndarray]:
    return [found] if isinstance(found, np.ndarray) else list(found)


@named()
def test_exported_file(name):
    groups, program = graphs_of(name), exported(name)
    found = [listed(program(*arguments)) for arguments in calls(groups)]
    assert_right(OPERATIONS[name], groups, found, expected(name))
    coverage_recorder.record(program, found[0], expected(name)[0], OPERATIONS[name].atol)


@pytest.mark.sweep
@named(lambda x: x.swept)
def test_exported_file_of_every_dtype(name):
    operation = OPERATIONS[name]
    groups = operation.groups(operation.swept)
    program = export_onnx(*joined(groups), verify=False)
    found = [listed(program(*arguments)) for arguments in calls(groups)]
    assert_right(operation, groups, found, references(operation, groups))


@named()
@pytest.mark.few(30)
def test_mode(name):
    groups = evenly(graphs_of(name), 4)
    function = pytensor.function(*joined(groups), mode="ONNX")
    found = [function(*arguments) for arguments in calls(groups)]
    assert_right(OPERATIONS[name], groups, found, references(OPERATIONS[name], groups))


@named()
def test_import(name, request):
    """The import of a file is exported with its functions, equal results, and hardly more nodes."""
    if OPERATIONS[name].import_fails:
        request.applymarker(pytest.mark.xfail(reason=OPERATIONS[name].import_fails, strict=True))
    groups, program = graphs_of(name), exported(name)
    most = max(1, OPERATIONS[name].imported * len(groups) // len(joined(groups)[1]))
    if len(groups) > most:
        groups = evenly(groups, most)
        program = export_onnx(*joined(groups), verify=False)
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs, verify=False)
    assert len(again.model.graph) <= OPERATIONS[name].nodes_again * len(program.model.graph)
    if OPERATIONS[name].imports_ops:
        assert standard_functions(program) <= standard_functions(again)
    labels = [group for group in groups for _ in group.outputs]
    for arguments in calls(groups):
        pairs = zip(labels, *(listed(x(*arguments)) for x in (again, program)), strict=True)
        for label, a, b in pairs:
            assert a.dtype == b.dtype, str(label)
            eps = np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0
            rtol = OPERATIONS[name].ulp_again * float(eps)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=0, err_msg=str(label))


def standard_functions(program: ONNXProgram) -> set[str]:
    """Return the functions that stand for Ops."""
    return {f.name for f in program.model.functions.values() if f.domain == STANDARD_DOMAIN}


@pytest.mark.few(51)
@named(lambda x: x.kernel)
def test_kernel(name):
    operation, groups = OPERATIONS[name], kernel_graphs_of(name)
    session = fused(*joined(groups))
    names = [x.name for x in session.get_inputs()]
    found = [session.run(None, dict(zip(names, x, strict=True))) for x in calls(groups)]
    assert_right(operation, groups, found, references(operation, groups), operation.ulp)


def fused(inputs: list[Variable], outputs: list[Variable]) -> onnxruntime.InferenceSession:
    """Return a session in which the native library runs all nodes of a graph."""
    program = export_onnx(inputs, outputs, verify=False)
    fusion = regions.fuse(program.proto.SerializeToString(), every_size=True)
    assert not fusion.stayed, [str(x) for x in fusion.stayed]
    return open_session(fusion.model, with_library=True)


@pytest.mark.few(6)
@named(lambda x: x.kernel and x.accuracy)
def test_accuracy_of_kernel(name):
    """Kernels are as accurate as the functions in whose place they run."""
    operation, op_name = OPERATIONS[name], OPERATIONS[name].accuracy.op_type.__name__
    for dtype in WIDE:
        x = pt.vector("x", dtype=dtype)
        session = fused([x], operation.apply(x))
        run = partial(run_of_one, session)
        assert_accurate(op_name, dtype, run)
        assert_ends(op_name, dtype, run)


def run_of_one(session: onnxruntime.InferenceSession, x: np.ndarray) -> np.ndarray:
    return session.run(None, {"x": x})[0]


@pytest.mark.slow
def test_web_page(tmp_path):
    """Node runs one tape of all operations with kernels, as pages do."""
    needs_tapes()
    graphs = {name: evenly(kernel_graphs_of(name), 4) for name in WITH_KERNELS}
    together = [group for groups in graphs.values() for group in groups]
    inputs, outputs = joined(together)
    named = {f"y{i}": v for i, v in enumerate(outputs)}
    path = saved(tmp_path, inputs, named, precision="float64")
    feeds = [{v.name: x for v, x in zip(inputs, k, strict=True)} for k in calls(together)]
    found = [[results[name] for name in named] for results in run_in_node(path, tmp_path, *feeds)]
    first = 0
    for name, groups in graphs.items():
        operation, truths = OPERATIONS[name], references(OPERATIONS[name], groups)
        last = first + len(truths[0])
        results = [results[first:last] for results in found[: len(truths)]]
        assert_right(operation, groups, results, truths, operation.ulp)
        first = last


@pytest.mark.few(37)
@named(lambda x: x.slope)
def test_gradient(name):
    """The gradient is the one of PyTensor in both precisions, and of finite differences."""
    operation = OPERATIONS[name]
    n = len(operation.slope)
    inputs, gradients, values = [], [], []
    for dtype in ("float64", "float32"):
        inputs += [pt.tensor(dtype=dtype, shape=(None,) * x.ndim) for x in operation.slope]
        total = weighted(operation.apply(*inputs[-n:]))
        gradients += pt.grad(total, inputs[-n:], disconnected_inputs="ignore")
        values += [x.astype(dtype) for x in operation.slope]
    compare_onnx_and_py(inputs, gradients, values, rtol=operation.rtol, eps=operation.eps)
    total = weighted(operation.apply(*inputs[:n]))
    with pytensor.config.change_flags(cxx=""):
        value = pytensor.function(inputs[:n], total, mode=PY)
        slopes = pytensor.function(inputs[:n], gradients[:n], mode=PY)(*values[:n])
    for i, slope in enumerate(slopes):
        differences = difference_quotients(value, values[:n], i)
        np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8, err_msg=f"by {i}")


def weighted(results: list[Variable]) -> pt.TensorVariable:
    """Return the sum of all elements with weights that differ."""
    return sum((pt.cos(1 + pt.arange(y.size)).reshape(y.shape) * y).sum() for y in results)


def difference_quotients(
    value: Callable[..., np.ndarray], arguments: list[np.ndarray], i: int
) -> np.ndarray:
    """Return the differences of a sum by each element of one argument."""
    found = np.empty(arguments[i].shape)
    for index in np.ndindex(found.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = [x.copy() for x in arguments]
            moved[i][index] += step
            ends.append(float(value(*moved)))
        found[index] = (ends[0] - ends[1]) / 2e-5
    return found
