"""Tests of samples that have the properties on which a graph relies."""

import warnings

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor import scan
from pytensor.assumptions.specify import assume
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import export_onnx
from pytensor_onnx.exporting.verification.matrix_properties import Promises

HOLDS = {
    "symmetric": lambda a: np.array_equal(a, a.T),
    "positive_definite": lambda a: np.array_equal(a, a.T) and np.linalg.eigvalsh(a).min() > 0,
    "diagonal": lambda a: np.array_equal(a, np.diag(np.diag(a))),
    "lower_triangular": lambda a: np.array_equal(a, np.tril(a)),
    "upper_triangular": lambda a: np.array_equal(a, np.triu(a)),
    "tridiagonal": lambda a: np.array_equal(a, np.triu(np.tril(a, 1), -1)),
    "orthogonal": lambda a: np.allclose(a @ a.T, np.eye(len(a))),
    "permutation": lambda a: np.array_equal(np.sort(a.argmax(axis=0)), np.arange(len(a))),
    "selection": lambda a: np.array_equal(a.sum(axis=0), np.ones(len(a))),
    "unit_magnitude": lambda a: np.array_equal(abs(a), np.ones_like(a)),
}


def without_warning(inputs, outputs, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return export_onnx(inputs, outputs, **kwargs)


@pytest.mark.parametrize("name", HOLDS)
def test_an_assumed_property_is_given_to_samples_and_the_file_verified(name):
    a, b = pt.matrix("a", shape=(3, 3)), pt.vector("b", shape=(3,))
    result = assume(a, **{name: True}).T @ b
    promises = Promises(FunctionGraph([a, b], [result], clone=False))
    for values in (np.random.default_rng(0).normal(size=(3, 3)), np.zeros((3, 3))):
        kept, vector = promises.keep([values, values[0]])
        assert HOLDS[name](kept)
        assert vector is values[0] or np.array_equal(vector, values[0])
    without_warning([a, b], result)


@pytest.mark.each_value
@pytest.mark.parametrize("array", [np.zeros((0, 0)), np.eye(2, dtype="float16"), np.eye(2) > 0])
@pytest.mark.parametrize("name", HOLDS)
def test_samples_with_a_property_keep_their_shape_and_dtype(name, array):
    a = pt.tensor("a", shape=array.shape, dtype=array.dtype)
    graph = FunctionGraph([a], [assume(a, **{name: True}).T], clone=False)
    [kept] = Promises(graph).keep([array])
    assert (kept.shape, kept.dtype) == (array.shape, array.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sym", "pos", "tridiagonal"])
def test_solvers_of_a_kind_of_matrix_are_verified_on_such_matrices(kind):
    a, b = pt.matrix("a"), pt.matrix("b")
    without_warning([a, b], pt.linalg.solve(a, b, assume_a=kind))


def test_unique_indices_are_distinct():
    indices, x = pt.lvector("indices"), pt.vector("x")
    graph = FunctionGraph([indices, x], [x[assume(indices, unique_indices=True)]], clone=False)
    assert Promises(graph).keep([np.array([1, 1, 0])])[0].tolist() == [2, 0, 1]


def test_a_filter_of_unknown_sizes_that_solves_for_its_gain_is_verified():
    transition, noise, error = (pt.matrix(name, shape=(2, 2)) for name in ("F", "Q", "R"))
    seen = pt.matrix("y", shape=(None, 2))

    def step(y, mean, covariance, transition, noise, error):
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + noise
        total = covariance + error
        gain = pt.linalg.solve(total, covariance, assume_a="pos").T
        return mean + gain @ (y - mean), covariance - gain @ total @ gain.T

    means, _covariances = scan(
        step,
        sequences=[seen],
        outputs_info=[pt.zeros(2), pt.eye(2)],
        non_sequences=[transition, noise, error],
        return_updates=False,
    )
    without_warning([seen, transition, noise, error], means)
