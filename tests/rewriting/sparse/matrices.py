"""Sparse matrices for tests, and the comparison of one graph on many of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import scipy.sparse as sp
from pytensor.graph.basic import Variable

from pytensor_onnx import ONNXProgram, export_onnx
from tests import coverage_recorder
from tests.conftest import PY, assert_same, dense

Values = Sequence[Any]
SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (5, 2)]


def matrix(
    shape: tuple[int, int], kind: str = "csr", dtype: str = "float64", density: float = 0.4
) -> Any:
    """Return a matrix of small integers and halves, with empty rows and columns."""
    rng = np.random.default_rng([*shape, kind == "csr"])
    array = rng.integers(-6, 7, shape) * (rng.random(shape) < density)
    array[1:2] = 0
    array[:, 2:3] = 0
    halves = array / 2 if dtype.startswith("float") else abs(array)
    return sp.csr_matrix(halves.astype(dtype)).asformat(kind)


def irregular(kind: str = "csr", dtype: str = "float64") -> Any:
    """Return a 4 x 3 matrix with unsorted and duplicate indices, and stored zeros."""
    data = np.array([1, 2, 3, 4, 0, 6, 7], dtype)
    pointers = [0, 3, 3, 6, 7]
    indices = np.array([2, 0, 2, 1, 0, 1, 0])
    rows = np.repeat(np.arange(4), np.diff(pointers))
    if kind == "csr":
        return sp.csr_matrix((data, indices, pointers), shape=(4, 3))
    order = np.array([6, 4, 1, 5, 3, 2, 0])
    ends = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=3))])
    return sp.csc_matrix((data[order], rows[order], ends), shape=(4, 3))


def special(kind: str = "csr", dtype: str = "float64") -> Any:
    """Return a 4 x 3 matrix of infinities, NaN and zeros of both signs."""
    data = np.array(
        [np.inf, -np.inf, np.nan, 1e300 if dtype == "float64" else 1e30, -0.0, 2], dtype
    )
    rows, cols = [0, 0, 1, 2, 3, 3], [0, 2, 1, 1, 0, 2]
    return sp.csr_matrix((data, (rows, cols)), shape=(4, 3)).asformat(kind)


def of_shape_4_3(kind: str = "csr", dtype: str = "float64") -> list[Any]:
    """Return matrices of one shape: regular, irregular, of special values, without entries."""
    matrices = [matrix((4, 3), kind, dtype), irregular(kind, dtype)]
    if dtype.startswith("float"):
        matrices.append(special(kind, dtype))
    return [*matrices, sp.csr_matrix((4, 3), dtype=dtype).asformat(kind)]


def compare_on(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    samples: Sequence[Values],
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    **export_options: Any,
) -> ONNXProgram:
    """Assert that mode ONNX and one exported model give PyTensor's results on all samples."""
    inputs, outputs = list(inputs), list(outputs)
    options = {"on_unused_input": "ignore"}
    with pytensor.config.change_flags(cxx=""):
        reference = pytensor.function(inputs, outputs, mode=PY, **options)
    in_mode = pytensor.function(inputs, outputs, mode="ONNX", **options)
    program = export_onnx(inputs, outputs, verify=False, **export_options)
    for values in samples:
        with np.errstate(all="ignore"):
            expected = reference(*values)
        for found in (in_mode(*values), program(*values)):
            for variable, a, b in zip(outputs, found, expected, strict=True):
                note = f"output {variable} for {[dense(value) for value in values]}"
                try:
                    assert getattr(a, "format", None) == getattr(b, "format", None)
                    assert_same(np.asarray(dense(a)), dense(b), rtol=rtol, atol=atol)
                except AssertionError as error:
                    error.add_note(note)
                    raise
        coverage_recorder.record(program, list(map(dense, found)), list(map(dense, expected)), atol)
    coverage_recorder.record_rewritten(outputs)
    return program
