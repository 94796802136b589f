"""Losses and their gradients are finite wherever mode NUMBA's are, and agree with them."""

from collections.abc import Callable

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

from tests.conftest import sweep_rest
from tests.losses.reference import assert_as_finite, values_and_rounding
from tests.losses.table import CONSTANT, LOSSES, Loss, arguments_of, samples_of

Objective = Callable[[Variable, Variable], Variable]
OBJECTIVES: dict[str, Objective] = {
    "mean": lambda loss, weight: loss.mean(),
    "weighted mean": lambda loss, weight: (weight * loss).sum() / weight.sum(),
    "masked sum": lambda loss, weight: pt.switch(pt.gt(weight, 0.5), loss, 0).sum(),
    "masked mean": lambda loss, weight: (pt.gt(weight, 0.5) * loss).sum() / weight.sum(),
}
COMMON = (
    *("cross_entropy_log1p", "cross_entropy_by_switch", "focal", "poisson_log_of_exp"),
    *("gaussian_of_density", "bernoulli_divergence_of_logs", "categorical_of_labels"),
)

Graph = tuple[list[Variable], list[Variable], list[np.ndarray]]


def of_gradients(loss: Loss, dtype: str) -> Graph:
    """Return a loss with its gradients: inputs, outputs, numbers of the inputs."""
    inputs = arguments_of(loss, dtype)
    value = loss(*inputs)
    return inputs, [value, *pt.grad(value.sum(), _varied(inputs))], samples_of(loss, dtype)


def of_objective(loss: Loss, dtype: str, objective: Objective) -> Graph:
    """Return the gradients of a number that a loss is reduced to."""
    inputs, values, weight = arguments_of(loss, dtype), samples_of(loss, dtype), pt.vector("weight")
    gradients = pt.grad(objective(loss(*inputs), weight), _varied(inputs))
    return [*inputs, weight], gradients, [*values, np.linspace(0, 1, len(values[0]))]


def of_layer(loss: Loss, dtype: str) -> Graph:
    """Return the gradients by weight and bias of a layer that gives the first argument."""
    inputs, values = arguments_of(loss, dtype), samples_of(loss, dtype)
    features, weight = pt.matrix("features", dtype=dtype), inputs[0].type("weight")
    bias = pt.scalar("bias", dtype=dtype)
    value = loss(features @ weight + bias, *inputs[1:])
    gradients = pt.grad(value.mean(), [weight, bias])
    features_of_one = np.eye(len(values[0]), dtype=dtype)
    return (
        [features, weight, bias, *inputs[1:]],
        gradients,
        [features_of_one, values[0], np.zeros((), dtype), *values[1:]],
    )


def of_second_gradients(loss: Loss, dtype: str) -> Graph:
    """Return the gradients of the sum of a loss's gradient by its first argument."""
    inputs = arguments_of(loss, dtype)
    gradient = pt.grad(loss(*inputs).sum(), inputs[0])
    second = pt.grad(gradient.sum(), _varied(inputs), disconnected_inputs="ignore")
    return inputs, second, samples_of(loss, dtype)


def _varied(inputs: list[Variable]) -> list[Variable]:
    return [x for x in inputs if x.name not in CONSTANT]


def check(graph: Graph, rtol: float = 1e-10) -> None:
    inputs, outputs, values = graph
    expected = values_and_rounding(inputs, outputs, values)
    function = pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    found = function(*values)
    for a, (b, rounding) in zip(found, expected, strict=True):
        assert_as_finite(a, b, rounding, rtol=rtol)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", sweep_rest(LOSSES, COMMON))
def test_gradients_are_finite_where_they_are_in_numba(name):
    check(of_gradients(LOSSES[name], "float64"))


@pytest.mark.sweep
@pytest.mark.parametrize("name", [n for n in LOSSES if n not in COMMON])
def test_float32_gradients(name):
    check(of_gradients(LOSSES[name], "float32"), rtol=2e-5)


@pytest.mark.parametrize("name", COMMON)
def test_float32_gradients_of_common_losses(name):
    check(of_gradients(LOSSES[name], "float32"), rtol=2e-5)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=getattr(pytest.mark, "sweep" if n in COMMON else "compiled"))
        for n in LOSSES
    ],
)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 2e-5)])
def test_gradients_are_those_of_numba_itself(name, dtype, rtol):
    """The reference of the other tests leaves Numba's compiler out."""
    inputs, outputs, values = of_gradients(LOSSES[name], dtype)
    roundings = [rounding for _, rounding in values_and_rounding(inputs, outputs, values)]
    expected = pytensor.function(inputs, outputs, mode="NUMBA")(*values)
    found = pytensor.function(inputs, outputs, mode="ONNX")(*values)
    for a, b, rounding in zip(found, expected, roundings, strict=True):
        assert_as_finite(a, b, rounding, rtol=rtol)


@pytest.mark.each_value
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "name", [n if n in COMMON[:2] else pytest.param(n, marks=pytest.mark.sweep) for n in LOSSES]
)
def test_gradients_of_objectives(name, objective):
    check(of_objective(LOSSES[name], "float64", OBJECTIVES[objective]))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name", [n if n in COMMON else pytest.param(n, marks=pytest.mark.sweep) for n in LOSSES]
)
def test_gradients_of_layers(name):
    check(of_layer(LOSSES[name], "float64"))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name",
    [n if n in COMMON else pytest.param(n, marks=pytest.mark.sweep) for n in LOSSES],
)
def test_second_gradients(name):
    check(of_second_gradients(LOSSES[name], "float64"))
