"""Sessions with regions: results, errors, and models that they refuse."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
import scipy.special
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, SessionOptions, compile_onnx, export_onnx, nn
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.kernels.regions import fuse
from pytensor_onnx.rewriting import ONNX_QUERY
from pytensor_onnx.running.session import MOST_REFUSALS, Session

FUSED = Mode(ONNXLinker(session_options=SessionOptions(kernels=True)), ONNX_QUERY)


def test_an_index_out_of_range_is_the_error_of_the_operation():
    x = pt.vector("x", dtype="float64")
    f = pytensor.function([x], pt.exp(x[2]) + x.sum(), mode=FUSED)
    assert f.vm.jit_fn.has_regions
    with pytest.raises(IndexError, match="out of range for an axis of size 2"):
        f(np.ones(2))
    np.testing.assert_allclose(f(np.ones(3)), np.e + 3)
    assert f.vm.jit_fn.has_regions, "an error of the user keeps the regions"


def test_regions_stay_until_they_have_refused_often(monkeypatch):
    x = pt.vector("x", dtype="float64")
    session = pytensor.function([x], pt.exp(x) + x.sum(), mode=FUSED).vm.jit_fn

    # Exceptions of the runtime are told by the module that raises them.
    raised = "def refuse(*args): raise RuntimeError('a size that the plan does not know')"
    exec(raised, runtime := {"__name__": "onnxruntime"})
    refuse = runtime["refuse"]

    monkeypatch.setattr(session, "_run", refuse)
    monkeypatch.setattr(session, "direct", lambda *arrays: None)
    for _ in range(MOST_REFUSALS):
        assert session.has_regions
        np.testing.assert_array_equal(session.run({"x": np.zeros(2)})[0], [1, 1])
    assert not session.has_regions
    np.testing.assert_array_equal(session.run({"x": np.zeros(3)})[0], [1, 1, 1])


def test_errors_and_results_in_several_threads():
    x, i = pt.vector("x", dtype="float64"), pt.scalar("i", dtype="int64")
    f = pytensor.function([x, i], pt.exp(x)[i] + x.sum(), mode=FUSED)

    def call(k):
        size = 2 + k % 5
        if k % 3:
            return f(np.arange(float(size)), size - 1) == np.exp(size - 1.0) + sum(range(size))
        with pytest.raises(IndexError, match=f"index {size} into x is out of range"):
            f(np.arange(float(size)), size)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(60)))
    assert f.vm.jit_fn.has_regions


def test_large_workspaces_in_several_threads():
    """Plans share the memory of large arrays, and no two runs have it at the same time."""
    x = pt.matrix("x", dtype="float64")
    once = pt.exp(x).T
    f = pytensor.function([x], (once - once.mean(axis=0)).cumsum(axis=0).sum(axis=1), mode=FUSED)

    def call(k):
        value = np.random.default_rng(k).normal(size=(100 + 50 * (k % 4), 200))
        powers = np.exp(value).T
        expected = (powers - powers.mean(axis=0)).cumsum(axis=0).sum(axis=1)
        np.testing.assert_allclose(f(value), expected, rtol=1e-9, atol=1e-9)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(40)))
    assert f.vm.jit_fn.has_regions


def test_plans_of_many_sizes():
    x = pt.matrix("x", dtype="float64")
    f = pytensor.function([x], (pt.exp(x) * x.T.sum(axis=1)).sum(axis=0), mode=FUSED)
    for _ in range(2):
        for rows in range(1, 20):
            value = np.random.default_rng(rows).normal(size=(rows, 3))
            expected = (np.exp(value) * value.sum(axis=0)).sum(axis=0)
            np.testing.assert_allclose(f(value), expected, rtol=1e-12)


def test_loops_whose_states_move_on():
    rows, s = pt.matrix("rows", dtype="float64"), pt.scalar("s", dtype="float64")

    total, products = pytensor.scan(
        lambda row, two, one, p: (one + 0.5 * two + row.sum(), pt.tanh(p + one)),
        sequences=[rows],
        outputs_info=[{"initial": pt.stack([s, 2 * s]), "taps": [-2, -1]}, s],
        return_updates=False,
    )
    value = np.random.default_rng(0).normal(size=(9, 4))
    plain = pytensor.function([rows, s], [total[-1], products], mode="ONNX")
    fused = pytensor.function([rows, s], [total[-1], products], mode=FUSED)
    for expected, found in zip(plain(value, 0.3), fused(value, 0.3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_sizes_that_a_later_region_computes_again():
    x, k = pt.vector("x", dtype="float64"), pt.vector("k", dtype="int64")
    f = pytensor.function([x, k], pt.repeat(x, k), mode=FUSED)
    np.testing.assert_array_equal(f(np.arange(3.0), np.array([2, 0, 1])), [0, 0, 2])


def test_programs_are_verified_without_regions_and_called_with_them():
    x = pt.vector("x", dtype="float64")
    program = export_onnx([x], pt.exp(x) + x.sum(), session_options=SessionOptions(kernels=True))
    assert not program.session_of_file.has_regions
    np.testing.assert_array_equal(program(np.zeros(2)), [1, 1])
    assert program.session.has_regions
    program.verify()
    assert not program.session_of_file.has_regions


def test_models_with_regions_are_refused(tmp_path):
    x = pt.vector("x", dtype="float64")
    program = export_onnx([x], pt.exp(x) + x, verify=False)
    fused = fuse(program.proto.SerializeToString()).model
    path = tmp_path / "model.onnx"
    path.write_bytes(fused)
    for model in (path, ir.from_proto(onnx.load(path))):
        with pytest.raises(PyTensorONNXError, match=r"operators of pytensor\.kernels"):
            Session(model)


def test_regions_and_the_nodes_in_none_are_named():
    x = pt.vector("x", dtype="float64")
    f = pytensor.function([x], [(pt.exp(x) * x).sum(), pt.sort(x)], mode=FUSED)
    places = f.vm.jit_fn.kernels()
    [name] = [x.split(":")[0] for x in places if "1 Exp, 1 Mul, 1 ReduceSum" in x]
    assert "3 TopK, 1 If: faster in the runtime" in places
    printed = pytensor.dprint(f, print_op_info=True, file="str").splitlines()
    assert [line.split()[-1] for line in printed[:3]] == [f"({name})"] * 3
    assert "faster in the runtime" in next(line for line in printed if "Sort" in line)


def test_nodes_have_no_place_without_regions():
    x = pt.vector("x", dtype="float64")
    plain = Mode(ONNXLinker(session_options=SessionOptions(kernels=False)), ONNX_QUERY)
    f = pytensor.function([x], [(pt.exp(x) * x).sum()], mode=plain)
    assert f.vm.jit_fn.kernels() == []
    assert "region" not in pytensor.dprint(f, print_op_info=True, file="str")


def test_functions_with_kernels_run_inside_a_region():
    a, x = pt.matrix("a", dtype="float64"), pt.vector("x", dtype="float64")
    factor = pt.linalg.cholesky(a @ a.T + pt.eye(a.shape[0]))
    solved = pt.linalg.solve_triangular(factor, x, lower=True)
    f = pytensor.function([a, x], [pt.log(pt.diag(factor)).sum(), pt.gammaln(solved)], mode=FUSED)
    regions = [line for line in f.vm.jit_fn.kernels() if line.startswith("region")]
    for name in ("Cholesky_lower", "SolveTriangular", "GammaLn"):
        assert any(name in line for line in regions)
    values = np.random.default_rng(0).normal(size=(3, 3)), np.array([1.0, -2.5, 3.0])
    factor = np.linalg.cholesky(values[0] @ values[0].T + np.eye(3))
    found = f(*values)
    np.testing.assert_allclose(found[0], np.log(np.diag(factor)).sum(), rtol=1e-12)
    solved = scipy.linalg.solve_triangular(factor, values[1], lower=True)
    np.testing.assert_allclose(found[1], scipy.special.gammaln(solved), rtol=1e-12)


def test_a_kernel_that_fails_inside_a_region_raises_the_error_of_the_operation():
    a = pt.matrix("a", dtype="float64")
    f = pytensor.function([a], pt.exp(pt.linalg.inv(a)) + 1, mode=FUSED)
    with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
        f(np.zeros((2, 2)))
    np.testing.assert_allclose(f(np.eye(2)), np.exp(np.eye(2)) + 1)


@pytest.mark.parametrize("last", [4, 5, -6])
def test_constant_indices_are_resolved_once(last):
    x = pt.vector("x", dtype="float64")
    index = np.array([*np.arange(200) % 5, last])
    taken = pt.exp(x)[index]
    f = pytensor.function([x], [taken, pt.inc_subtensor(pt.zeros(5)[index], taken)], mode=FUSED)
    value = np.arange(5.0)
    if last in (5, -6):
        with pytest.raises(IndexError, match=f"index {last}"):
            f(value)
        return
    for _ in range(2):
        found, added = f(value)
        np.testing.assert_allclose(found, np.exp(value)[index], rtol=1e-14)
        np.testing.assert_allclose(added, np.exp(value) * np.bincount(index), rtol=1e-14)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_computes_the_same_as_its_parent():
    x = pt.vector("x", dtype="float64")
    f = pytensor.function([x], [pt.exp(x) * x, (x**2).sum()], mode=FUSED)
    known, new = np.arange(4.0), np.arange(900.0) / 900
    expected = f(known)
    reader, writer = os.pipe()
    if not (child := os.fork()):
        # The sizes of the second call have no plan yet.
        os.write(writer, b"".join(r.tobytes() for r in [*f(known), *f(new)]))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        written = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert written == b"".join(r.tobytes() for r in [*expected, *f(new)])


@pytest.mark.parametrize(("function", "name"), [(pt.exp, "Exp"), (pt.sigmoid, "Sigmoid_float32")])
@pytest.mark.parametrize(("size", "stays"), [(10, False), (10_000, True)])
def test_functions_of_many_float32_numbers_stay_with_the_runtime(size, stays, function, name):
    x = pt.vector("x", dtype="float32", shape=(size,))
    program = export_onnx([x], function(x) * 2 + x)
    program(np.zeros(size, "float32"))
    assert (f"1 {name}: arrays above the limits" in program.session.kernels()) is stays


@pytest.mark.parametrize(("size", "stays"), [(10, False), (10_000, True)])
def test_silu_of_many_float32_numbers_stays_whole_with_the_runtime(size, stays):
    """ONNX Runtime fuses ``x * Sigmoid(x)``, so that the product alone in a region costs time."""
    x = pt.vector("x", dtype="float32", shape=(size,))
    program = export_onnx([x], 2 * nn.silu(x) + 1)
    program(np.zeros(size, "float32"))
    assert ("1 Mul: arrays above the limits" in program.session.kernels()) is stays


def test_an_output_that_is_a_view_has_the_memory_of_its_source():
    x = pt.tensor3("x", shape=(3, 4, 5))
    rows = pt.exp(x).transpose(2, 0, 1)
    outputs = [rows.reshape((5, 12)), rows.reshape((15, 4)), rows.reshape((60,))[3:]]
    value = np.random.default_rng(0).normal(size=(3, 4, 5))
    f = pytensor.function([x], outputs, mode=FUSED)
    expected = np.exp(value).transpose(2, 0, 1)
    for _ in range(2):
        first, second, last = f(value)
        np.testing.assert_allclose(first, expected.reshape(5, 12), rtol=1e-15)
        np.testing.assert_array_equal(second.ravel(), first.ravel())
        np.testing.assert_array_equal(last, first.ravel()[3:])


def test_a_model_of_one_operation_runs_without_a_session():
    x = pt.matrix("x", shape=(8, 8))
    call = compile_onnx([x], pt.linalg.cholesky(x), verify=False)
    value = np.eye(8) * 4
    np.testing.assert_array_equal(call(value), np.eye(8) * 2)
    assert [region.operators for region in call.session.regions] == [("Cholesky_lower_float64",)]
    assert call.session.direct(value) is not None


@pytest.mark.parametrize(("rows", "is_large"), [(1_000_000, False), (1_000_001, True)])
def test_large_results_are_those_of_the_runtime(rows, is_large):
    x = pt.vector("x", shape=(rows,))
    call = compile_onnx([x], x + 1, verify=False)
    assert bool(call.session.regions) != is_large
    # A sum is small, whatever it adds.
    assert compile_onnx([x], (x * x).sum(), verify=False).session.regions
