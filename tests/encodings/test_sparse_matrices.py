"""Sparse matrices go in and come out as SciPy's, and are four tensors in a file."""

import inspect
import json
import pickle
import subprocess
import sys

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from pytensor import sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp, deep_copy_op
from pytensor.conditional import ifelse
from pytensor.graph import Apply, Op
from pytensor.printing import Print
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse import linalg

from pytensor_onnx import (
    InputError,
    ONNXLinker,
    PyTensorONNXError,
    UnsupportedOpError,
    UnsupportedTypeError,
    export_function_onnx,
    export_onnx,
)
from pytensor_onnx.encodings import encoding_of
from tests.conftest import compare_onnx_and_py

A = sp.csr_matrix([[0.0, 1.5, 0.0], [0.0, 0.0, 0.0], [-2.0, 0.0, 3.0], [0.5, 0.0, 0.0]])
V = np.array([1.0, -2.0, 0.5])


def test_files_have_the_vectors_and_the_shape_and_say_so():
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    product, turned = sparse.dot(x, v), x.T
    product.name, turned.name = "product", "turned"
    program = export_onnx([x, v], [product, turned])
    assert "equal to PyTensor" in str(program.verification)
    described = json.loads(program.model.metadata_props["encodings"])
    parts = {part: f"x.{part}" for part in ("data", "indices", "indptr", "shape")}
    assert described["inputs"] == {"x": {"encoding": "sparse", "parts": parts, "format": "csr"}}
    assert list(described["outputs"]) == ["turned"]
    inputs = [(i.name, str(i.shape), str(i.dtype)) for i in program.model.graph.inputs]
    assert inputs == [
        ("x.data", "[x.data_dim0]", "DOUBLE"),
        ("x.indices", "[x.data_dim0]", "INT32"),
        ("x.indptr", "[x.indptr_dim0]", "INT32"),
        ("x.shape", "[2]", "INT64"),
        ("v", "[v_dim0]", "DOUBLE"),
    ]
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    feed = {"x.data": A.data, "x.indices": A.indices, "x.indptr": A.indptr, "v": V}
    feed["x.shape"] = np.array(A.shape)
    np.testing.assert_array_equal(session.run(["product"], feed)[0], A @ V)
    for run in (program, pickle.loads(pickle.dumps(program))):
        found, turned = run(A, V)
        np.testing.assert_array_equal(found, A @ V)
        assert turned.format == "csc"
        np.testing.assert_array_equal(turned.toarray(), A.T.toarray())


def test_values_that_a_sparse_type_takes_are_taken():
    x = sparse.csr_matrix("x")
    f = pytensor.function([x], sparse.dense_from_sparse(x), mode="ONNX")
    program = export_onnx([x], sparse.dense_from_sparse(x), verify=False)
    wide = A.copy()
    wide.indices, wide.indptr = wide.indices.astype("int64"), wide.indptr.astype("int64")
    for value in (A, A.tocsc(), A.tocoo(), sp.csr_array(A), A.toarray(), wide, A.astype("float32")):
        for run in (f, program):
            np.testing.assert_array_equal(run(value), A.toarray(), strict=True)
    for value in (A.astype("complex128"), "A"):
        with pytest.raises((TypeError, ValueError)):
            f(value)
        with pytest.raises(InputError, match=r"x\.data"):
            program(value)


def test_entries_after_the_last_pointer_are_left_out():
    longer = A.copy()
    longer.data, longer.indices = np.append(A.data, 9.0), np.append(A.indices, 9).astype("int32")
    x = sparse.csr_matrix("x")
    found = pytensor.function([x], [x.T, sparse.csm_data(x)], mode="ONNX")(longer)
    np.testing.assert_array_equal(found[0].toarray(), A.T.toarray())
    np.testing.assert_array_equal(found[1], A.data)


@pytest.mark.parametrize("index", [3, -1])
def test_indices_out_of_range_are_errors(index):
    wrong = A.copy()
    wrong.indices = np.where(np.arange(A.nnz) == 1, index, A.indices).astype("int32")
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    for run in (
        pytensor.function([x, v], sparse.dot(x, v), mode="ONNX"),
        export_onnx([x, v], sparse.dot(x, v), verify=False),
    ):
        with pytest.raises(IndexError):
            run(wrong, V)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_vectors_of_wrong_lengths_are_errors(part):
    wrong = A.copy()
    setattr(wrong, part, getattr(A, part)[:-1])
    x = sparse.csr_matrix("x")
    program = export_onnx([x], sparse.sp_sum(x), verify=False)
    f = pytensor.function([x], sparse.sp_sum(x), mode="ONNX")
    with pytest.raises(ValueError, match="should have"):
        f(wrong)
    with pytest.raises(InputError, match=r"x\.data"):
        program(wrong)


def test_index_pointers_that_decrease_are_errors():
    wrong = A.copy()
    wrong.indptr = np.array([0, 3, 2, *A.indptr[3:]], "int32")
    x = sparse.csr_matrix("x")
    rows = sparse.sp_sum(x, axis=1)
    with pytest.raises(ValueError, match="non-decreasing"):
        pytensor.function([x], rows, mode="ONNX")(wrong)
    with pytest.raises(InputError, match=r"x\.data"):
        export_onnx([x], rows, verify=False)(wrong)


def test_index_pointers_that_do_not_start_with_zero_are_errors():
    wrong = A.copy()
    wrong.indptr = np.array([1, *A.indptr[1:]], "int32")
    x = sparse.csr_matrix("x")
    with pytest.raises(ValueError, match="start with 0"):
        pytensor.function([x], sparse.sp_sum(x), mode="ONNX")(wrong)


def test_shared_values_and_updates():
    shared = pytensor.shared(A, name="shared")
    update = {shared: sparse.structured_exp(shared)}
    result = sparse.sp_sum(shared)
    program = export_onnx([], shared.toarray()[0, 1], updates=update)
    f = pytensor.function([], shared.toarray()[0, 1], updates=update, mode="ONNX")
    expected = [1.5, np.exp(1.5), np.exp(np.exp(1.5))]
    for run in (program, export_function_onnx(f), f, pickle.loads(pickle.dumps(f))):
        np.testing.assert_allclose([run() for _ in range(3)], expected)
    assert shared.get_value().format == "csr"
    np.testing.assert_allclose(shared.get_value()[0, 1], np.exp(expected[-1]))
    shared.set_value(A * 2)
    assert f() == 3.0
    assert result.type.ndim == 0


def test_updates_of_another_format_are_refused():
    shared = pytensor.shared(A, name="shared")
    with pytest.raises(PyTensorONNXError, match="change the type"):
        export_onnx([], shared, updates={shared: sparse.csc_from_dense(pt.zeros((4, 3)))})


@pytest.mark.parametrize("freeze", [False, True])
def test_shared_values_without_an_update_and_constants(freeze):
    shared, v = pytensor.shared(A, name="shared"), pt.vector("v")
    results = [sparse.dot(shared, v), shared, sparse.as_sparse_variable(A.tocsc())]
    f = pytensor.function([v], results, mode=Mode(ONNXLinker(freeze=freeze)))
    for run in (f, export_onnx([v], results)):
        product, same, constant = run(V)
        np.testing.assert_array_equal(product, A @ V)
        for found, kind in ((same, "csr"), (constant, "csc")):
            assert found.format == kind
            np.testing.assert_array_equal(found.toarray(), A.toarray())


@pytest.mark.slow
def test_functions_branches_and_loops():
    x, choice, v = sparse.csr_matrix("x"), pt.bscalar("choice"), pt.vector("v")
    turned = OpFromGraph([x], [x.T.astype("float64")])(x)
    chosen = ifelse(choice, x.T, turned)
    steps = pytensor.scan(
        lambda v, x: sparse.dot(x.T, sparse.dot(x, v)) / 3,
        outputs_info=[v],
        non_sequences=[x],
        n_steps=4,
        return_updates=False,
    )
    for value in (0, 1):
        values = [A, np.int8(value), V]
        compare_onnx_and_py([x, choice, v], [chosen, steps], values, atol=1e-12)


@pytest.mark.slow
def test_checks_and_prints():
    x, v = sparse.csr_matrix("x"), pt.vector("v")
    checked = CheckAndRaise(ValueError, "too few rows")(x, x.shape[0] > 2)
    printed = Print("x")(ViewOp()(deep_copy_op(checked)))
    compare_onnx_and_py([x, v], [sparse.dot(checked, v), printed], [A, V])
    f = pytensor.function([x], sparse.sp_sum(checked), mode="ONNX")
    with pytest.raises(ValueError, match="too few rows"):
        f(A[:2])


def test_other_sparse_types_are_refused():
    x, z = sparse.bsr_matrix("x"), sparse.bsr_matrix("z", dtype="complex128")
    for given, result in ((x, x), (z, z)):
        with pytest.raises(UnsupportedTypeError, match="format csr or csc"):
            export_onnx([given], result, verify=False)


@pytest.mark.slow
def test_importing_the_package_does_not_import_sparse_matrices():
    code = (
        "import sys, pytensor_onnx;"
        "sys.exit('scipy.sparse' in sys.modules or 'pytensor.sparse' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_op_of_pytensor_for_sparse_matrices_has_a_rewrite():
    encoding = encoding_of(sparse.csr_matrix().type)
    classes = [
        kind
        for module in (sparse.basic, sparse.math, linalg)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Op) and kind.__module__ == module.__name__
    ]
    kinds = [kind for kind in classes if not inspect.isabstract(kind)]
    missing = {kind.__name__ for kind in kinds if encoding.rewrite_of(kind.__new__(kind)) is None}
    assert len(kinds) > 50
    # Base classes that are not abstract.
    assert missing == {"__ComparisonOpSparseSparse", "__ComparisonOpSparseDense"}


def test_an_unknown_op_is_refused_with_advice():
    class Solve(Op):
        __props__ = ()

        def make_node(self, a, b):
            return Apply(self, [a, b], [b.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = sp.linalg.spsolve(*inputs)

    x, v = sparse.csr_matrix("x"), pt.vector("v")
    with pytest.raises(
        UnsupportedOpError, match=r"(?s)Solve.*operations of sparse matr.*x\.toarray"
    ):
        export_onnx([x, v], Solve()(x, v))


def test_an_op_on_arrays_is_refused_for_a_sparse_matrix():
    x = sparse.csr_matrix("x")
    with pytest.raises(UnsupportedOpError, match=r"(?s)on sparse values.*x\.toarray"):
        pytensor.function([x], pt.exp(x), mode="ONNX")


def test_a_mean_of_a_sparse_matrix_is_a_sum_by_its_sizes_or_refused():
    x = sparse.csr_matrix("x")
    count = x.shape[0].astype("float64") * x.shape[1].astype("float64")
    f = pytensor.function([x], sparse.sp_sum(x) / count, mode="ONNX")
    assert f(sp.csr_matrix([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])) == 1.0
    with pytest.raises(UnsupportedOpError, match=r"(?s)on sparse values.*x\.toarray"):
        pytensor.function([x], pt.mean(x), mode="ONNX")
