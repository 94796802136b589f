"""Entries of distributions: densities, distribution functions, draws and moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.moments.means import mean as mean_of
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, Distribution
from pytensor_onnx.catalogue.entry import Argument, Entry

_PROBABILITIES = ((0.1, 0.5, 0.9), (0.75, 0.01, 0.3))
STATE = Argument(
    "state", "key of Threefry-2x32, two words of 32 bits", "int64", ("2",), False, (0, 42)
)
NEXT_STATE = replace(STATE, name="next_state", about="state for the next draw", example=None)
SHAPE = Argument(
    "shape",
    "shape of the draws, that of the parameters or a larger one",
    "int64",
    ("rank",),
    False,
    (2, 3),
)

Function = Callable[[V, V], V]


def distribution_entries() -> Iterator[Entry]:
    """Yield the functions of all distributions of numbers."""
    for distribution in CONTINUOUS:
        yield from _entries(distribution, "continuous")
    for distribution in DISCRETE:
        yield from _entries(distribution, "discrete")


def _entries(of: Distribution, family: str) -> Iterator[Entry]:
    parameters = tuple(Argument(p.name, p.about, p.dtype, example=p.values) for p in of.parameters)
    dtype = "int64" if of.is_discrete else "T"
    value = Argument(
        "value", f"the density is zero where it is not {of.support}", dtype, example=of.values
    )
    probability = Argument("probability", "in [0, 1]", example=_PROBABILITIES)

    def entry(
        name: str, about: str, inputs: Sequence[Argument], result: str, make: Callable[..., V]
    ) -> Entry:
        return Entry(
            f"{of.name}{name}", family, of.name, about, tuple(inputs), (Argument(result),), make
        )

    density = "probability" if of.is_discrete else "density"
    functions: list[tuple[str, str, str, Function]] = [
        ("LogProb", f"Logarithm of the {density}", "log_prob", pm.logp),
        (
            "Cdf",
            "Probability of values up to the given one",
            "probability",
            lambda x, v: pt.exp(pm.logcdf(x, v)),
        ),
        (
            "LogCdf",
            "Logarithm of the probability of values up to the given one",
            "log_probability",
            pm.logcdf,
        ),
        (
            "LogSurvival",
            "Logarithm of the probability of values above the given one",
            "log_probability",
            pm.logccdf,
        ),
    ]
    for name, about, result, function in functions:
        if name not in of.without:
            yield entry(
                name,
                f"{about} ({of.name}).",
                [value, *parameters],
                result,
                of.formulas.get(name) or partial(_at_value, of, function),
            )
    yield from _gradient(of, family, value, parameters)
    if "Icdf" not in of.without:
        made = entry(
            "Icdf",
            f"Least value with the given cumulative probability ({of.name}).",
            [probability, *parameters],
            "value",
            of.formulas.get("Icdf") or partial(_at_value, of, pm.icdf),
        )
        yield replace(made, outputs=(replace(value, about="", example=None),))
    if "Random" not in of.without:
        yield _draws(of, family, dtype, parameters)
    if "Mean" not in of.without:
        yield entry(
            "Mean",
            f"Expected value ({of.name}).",
            parameters,
            "mean",
            of.formulas.get("Mean") or partial(_mean, of),
        )
    if of.variance is not None:
        yield entry("Variance", f"Variance ({of.name}).", parameters, "variance", of.variance)


def _draws(of: Distribution, family: str, dtype: str, parameters: Sequence[Argument]) -> Entry:
    return Entry(
        f"{of.name}Random",
        family,
        of.name,
        f"Independent draws, and the next state ({of.name}).",
        (STATE, SHAPE, *parameters),
        (Argument("value", "the draws", dtype), NEXT_STATE),
        of.formulas.get("Random") or partial(_drawn, of),
        "random",
    )


def _gradient(
    of: Distribution, family: str, value: Argument, parameters: Sequence[Argument]
) -> Iterator[Entry]:
    inputs = (value, *parameters)
    by = [i for i, x in enumerate(inputs) if x.dtype == "T"]
    if not by:
        return
    outputs = tuple(Argument(f"by_{inputs[i].name}", f"derivative by {inputs[i].name}") for i in by)

    def make(*operands: V) -> list[V]:
        log_prob = of.formulas.get("LogProb") or partial(_at_value, of, pm.logp)
        return list(pt.grad(log_prob(*operands).sum(), [operands[i] for i in by]))

    yield Entry(
        f"{of.name}LogProbGrad",
        family,
        of.name,
        f"Derivatives of LogProb by its operands, in their common shape ({of.name}).",
        inputs,
        outputs,
        of.formulas.get("LogProbGrad") or make,
    )


def _at_value(of: Distribution, function: Function, value: V, *parameters: V) -> V:
    return function(of.dist(*parameters), value)


def _drawn(of: Distribution, rng: V, *parameters: V) -> V:
    return of.dist(*parameters, size=parameters[0].shape, rng=rng)


def _mean(of: Distribution, *parameters: V) -> V:
    found = mean_of(of.dist(*parameters))
    return found if np.dtype(found.type.dtype).kind == "f" else found.astype("float64")
