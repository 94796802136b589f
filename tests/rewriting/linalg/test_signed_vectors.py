"""Signs of the vectors that files are verified against."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.exporting.verification.results import evaluate
from tests.functions.linalg.matrices import generator


def test_vectors_keep_what_they_decompose():
    x = pt.tensor3("x")
    w, v = pt.linalg.eigh(x)
    u, s, vt = pt.linalg.svd(x, full_matrices=False)
    a = generator(1).normal(size=(2, 3, 3))
    a = a + a.swapaxes(1, 2)
    fgraph = FunctionGraph([x], [w, v, u, s, vt], clone=False)
    values, vectors, left, singular, right = evaluate(fgraph, [a])
    weights = np.arange(1, 4) ** (1 / np.pi)
    for found in (vectors, left):
        assert (np.einsum("bij,i->bj", found, weights) > 0).all()
    np.testing.assert_allclose(vectors * values[:, None] @ vectors.swapaxes(1, 2), a, atol=1e-13)
    np.testing.assert_allclose(left * singular[:, None] @ right, a, atol=1e-13)
