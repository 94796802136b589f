"""Mode ONNX calls functions that have kernels without converting their bodies."""

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, export_onnx
from pytensor_onnx.rewriting import ONNX_QUERY
from pytensor_onnx.running.session import SessionOptions

GRAPHS = {
    "cholesky": pt.linalg.cholesky,
    "inv": pt.linalg.inv,
    "lu": pt.linalg.lu_factor,
    "qr": pt.linalg.qr,
    "eigh": pt.linalg.eigh,
    "svd": pt.linalg.svd,
    "schur": pt.linalg.schur,
    "batch": lambda x: pt.linalg.cholesky(x[None]),
    "gammaln": lambda x: pt.gammaln(x + 9),
    "a replaced operator": pt.sigmoid,
}
MATRIX = np.diag([4.0, 5.0, 6.0]) + np.eye(3, k=1) + np.eye(3, k=-1)


def functions_of(compiled):
    """Return the names of the functions that have bodies in the model of a session."""
    source, plain = compiled.vm.jit_fn.serialized
    return [f.name for f in onnx.load_model_from_string(plain or source).functions]


CASES = [*((name, "float64") for name in GRAPHS), ("inv", "float32"), ("gammaln", "float32")]


@pytest.mark.few(5)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_results_are_those_of_a_file_with_bodies(name, dtype):
    x = pt.matrix("x", dtype=dtype)
    outputs = GRAPHS[name](x)
    results = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    compiled = pytensor.function([x], results, mode="ONNX")
    program = export_onnx([x], results, verify=False)
    a = MATRIX.astype(dtype)
    for found, of_file in zip(compiled(a), program(a), strict=True):
        np.testing.assert_array_equal(found, of_file, strict=True)
    assert program.model.functions
    assert functions_of(compiled) == []


def test_errors_are_those_of_the_body():
    a, b = pt.matrix("a"), pt.vector("b")
    solve = pytensor.function([a, b], pt.linalg.solve(a, b), mode="ONNX")
    for _ in range(2):
        with pytest.raises(ValueError, match="incompatible dimensions"):
            solve(np.eye(3), np.ones(2))
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            pytensor.function([a], pt.linalg.inv(a), mode="ONNX")(np.zeros((2, 2)))
    np.testing.assert_array_equal(solve(2 * np.eye(2), np.ones(2)), [0.5, 0.5])


def test_sessions_without_kernels_have_bodies():
    x = pt.matrix("x")
    linker = ONNXLinker(session_options=SessionOptions(kernels=False))
    compiled = pytensor.function([x], pt.linalg.cholesky(x), mode=Mode(linker, ONNX_QUERY))
    np.testing.assert_allclose(compiled(MATRIX), np.linalg.cholesky(MATRIX), rtol=1e-14)


def test_functions_in_bodies_keep_their_own():
    """Types within a function follow from the bodies of its calls."""
    x = pt.vector("x")
    beta = pt.gammaln(x) + pt.gammaln(x + 1) - pt.gammaln(2 * x + 1)
    inner = pytensor.compile.builders.OpFromGraph([x], [beta])
    compiled = pytensor.function([x], [inner(x), pt.gammaln(x)], mode="ONNX")
    value = np.array([0.5, 2.0, 30.0])
    expected = pytensor.function([x], [inner(x), pt.gammaln(x)], mode="FAST_COMPILE")(value)
    for found, reference in zip(compiled(value), expected, strict=True):
        np.testing.assert_allclose(found, reference, rtol=1e-13)
