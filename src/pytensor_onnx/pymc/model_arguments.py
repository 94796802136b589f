"""Check the arguments that name parts of a PyMC model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pymc as pm
from pymc.data import MinibatchOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.random.type import RandomType

from pytensor_onnx.errors import ArgumentError, did_you_mean

SPACES = ("unconstrained", "constrained")
LAYOUTS = ("vector", "named")


def check_model(model: Any) -> None:
    """Raise unless the argument is a PyMC model.

    Raises
    ------
    ArgumentError
        For anything else.
    """
    if not isinstance(model, pm.Model):
        raise ArgumentError(f"model is of type {type(model).__name__}: give a pymc.Model")


def check_loops(model: pm.Model, outputs: Sequence[Variable]) -> None:
    """Raise if the steps of a loop draw a variable of the model anew.

    `pytensor.scan` copies the random variable into its steps where it is no argument of the step.

    Raises
    ------
    ArgumentError
        For the first such variable.
    """
    owners = {
        x: rv for rv in model.basic_RVs for x in rv.owner.inputs if isinstance(x.type, RandomType)
    }
    loops = {v.owner for v in ancestors(outputs) if v.owner and isinstance(v.owner.op, Scan)}
    for x in (x for loop in loops for x in loop.inputs if x in owners):
        name = owners[x].name
        raise ArgumentError(
            f"the steps of a loop use the variable {name!r} of the model, which is no argument of "
            f"them, so that they would draw it anew: give pytensor.scan non_sequences=[{name}]"
        )


def read_data(model: pm.Model, data: Any) -> list[SharedVariable]:
    """Return the data containers that become inputs.

    Parameters
    ----------
    model
        The model.
    data
        ``"inputs"`` for all containers, ``"stored"`` for none, or names of containers.

    Raises
    ------
    ArgumentError
        If a name is not that of a data container of the model.
    """
    containers = {str(v.name): v for v in model.data_vars if isinstance(v, SharedVariable)}
    if data == "inputs":
        return list(containers.values())
    if data == "stored":
        return []
    names = [data] if isinstance(data, str) else read_strings(data, "data")
    for name in names:
        if name not in containers:
            advice = f"wrap its values in pymc.Data({name!r}, …) to make them an input"
            hint = advice if name in model.named_vars else ""
            raise unknown(name, "data container", containers, hint)
    return [containers[name] for name in dict.fromkeys(names)]


def check_data(terms: Sequence[Variable]) -> None:
    """Raise unless terms of a density are of all rows of the data.

    Raises
    ------
    ArgumentError
        If they are of random rows.
    """
    ops = [v.owner.op for v in ancestors(terms) if v.owner is not None]
    if any(isinstance(op, MinibatchOp) for op in ops):
        raise ArgumentError(
            "the density is that of a pm.Minibatch, which would be the same in every run of a "
            "file: export a model of the whole data"
        )


def read_strings(given: Any, argument: str) -> list[str]:
    """Return a sequence of strings as a list.

    Raises
    ------
    ArgumentError
        For any other argument.
    """
    if isinstance(given, str):
        return [given]
    listed = list(given) if isinstance(given, Iterable) else None
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise ArgumentError(f"{argument} is {given!r}: give a list of names")
    return listed


def read_choice(given: Any, choices: Collection[str], argument: str) -> str:
    """Check that an argument is one of the choices and return it.

    Raises
    ------
    ArgumentError
        Otherwise.
    """
    if given not in choices:
        raise ArgumentError(f"{argument}={given!r}: give one of {', '.join(map(repr, choices))}")
    return given


def unknown(name: str, kind: str, known: Collection[str], hint: str = "") -> ArgumentError:
    """Return the error for a name that the model does not have.

    Examples
    --------
    >>> str(unknown("sigm", "variable", ["mu", "sigma"]))
    "the model has no variable 'sigm': did you mean sigma?"
    """
    has = f"it has {', '.join(known) or 'none'}"
    advice = did_you_mean(name, known, hint or has)
    return ArgumentError(f"the model has no {kind} {name!r}: {advice}")


def shared_name(name: str) -> ArgumentError:
    """Return the error for a name of two inputs or outputs of a file."""
    return ArgumentError(
        f"{name!r} would name two inputs or outputs of the file: rename the variable of the model"
    )
