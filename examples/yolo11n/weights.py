"""The parameters of the network by their public names: kept, initialised, loaded and saved."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from math import log, prod, sqrt
from pathlib import Path

import numpy as np
import pytensor
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.variable import TensorVariable

Shape = tuple[int, ...]

COUNTER = "num_batches_tracked"
RUNNING = ("running_mean", "running_var")
DFL = "dfl.conv.weight"


class WeightsError(ValueError):
    """A file of weights does not fit the network; the message names every entry at fault."""


class State:
    """The shared variables of a network, by name, and their values after a training step.

    Attributes
    ----------
    training
        Whether batch norms use the statistics of the batch.
    variables
        float32 shared variables by public name, in the order of the network.
    counters
        Names of the batch counters that public files hold besides, and that nothing uses.
    updates
        New running statistics, of the last call of the network in training.
    """

    def __init__(self, *, training: bool = False) -> None:
        self.training = training
        self.variables: dict[str, TensorSharedVariable] = {}
        self.counters: list[str] = []
        self.updates: dict[TensorSharedVariable, TensorVariable] = {}

    def add(self, name: str, *shape: int) -> TensorSharedVariable:
        """Make the variable of a parameter, zero until values are set."""
        if name in self.variables:
            raise ValueError(f"two parameters are called {name}")
        zeros = np.zeros(shape, dtype="float32")
        self.variables[name] = pytensor.shared(zeros, name=name, shape=shape)
        return self.variables[name]

    def add_counter(self, name: str) -> None:
        """Note the name of a batch counter."""
        self.counters.append(name)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of all entries of a file of weights, those of the counters included."""
        shapes = {name: variable.type.shape for name, variable in self.variables.items()}
        return shapes | dict.fromkeys(self.counters, ())

    @property
    def trainable(self) -> list[TensorSharedVariable]:
        """What gradients are taken by: neither running statistics nor the bins of distances."""
        return [
            variable
            for name, variable in self.variables.items()
            if not name.endswith((*RUNNING, DFL))
        ]

    def values(self) -> dict[str, np.ndarray]:
        """Return the present values, and zeros for the counters."""
        values = {name: variable.get_value() for name, variable in self.variables.items()}
        return values | {name: np.zeros((), "int64") for name in self.counters}

    def set_values(self, values: Mapping[str, np.ndarray]) -> None:
        """Set all values.

        Raises
        ------
        WeightsError
            If entries are missing, unexpected, of another shape or not of floats.
        """
        check_weights(values, self.shapes)
        for name, variable in self.variables.items():
            variable.set_value(values[name].astype("float32"))


def check_weights(values: Mapping[str, np.ndarray], shapes: Mapping[str, Shape]) -> None:
    """Compare arrays with the shapes that the network has; its batch counters may be missing.

    Raises
    ------
    WeightsError
        If entries are missing, unexpected, of another shape or not of floats.
    """
    names = {name for name in shapes if not name.endswith(COUNTER)}
    problems = [f"missing: {name} {shapes[name]}" for name in shapes if name in names - {*values}]
    for name, value in values.items():
        if name not in shapes:
            problems.append(f"unexpected: {name} {value.shape}")
        elif name in names and value.shape != shapes[name]:
            problems.append(f"misshapen: {name} is {value.shape}, expected {shapes[name]}")
        elif name in names and value.dtype.kind != "f":
            problems.append(f"not of floats: {name} is of {value.dtype}")
    if problems:
        listing = "\n".join(f"- {problem}" for problem in problems)
        raise WeightsError(f"{len(problems)} of the weights do not fit YOLO11n:\n{listing}")


def load_weights(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file.

    Raises
    ------
    WeightsError
        If the file is not there or not an npz file of arrays.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("it holds a single array")
        with file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WeightsError(f"{path} cannot be read as an npz file of arrays: {error}") from error


def initial_weights(shapes: Mapping[str, Shape], seed: int = 0) -> dict[str, np.ndarray]:
    """Return seeded values to start training from.

    Convolutions are normal with variance 2 / fan-in, which keeps the variance through a rectifier;
    batch norms start as the identity. Each class starts with a probability of 1 %, so that the
    many empty cells do not drown the loss, and the distances with equal bins.
    """
    rng = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes.items():
        if name.endswith(COUNTER):
            value = np.zeros(shape, "int64")
        elif name.endswith(DFL):
            value = np.arange(prod(shape)).reshape(shape)
        elif len(shape) == 4:
            value = rng.standard_normal(shape) * sqrt(2 / prod(shape[1:]))
        elif name.endswith(("bn.weight", "running_var")):
            value = np.ones(shape)
        elif ".cv3." in name and name.endswith(".2.bias"):
            value = np.full(shape, -log(99))
        else:
            value = np.zeros(shape)
        values[name] = value if name.endswith(COUNTER) else value.astype("float32")
    return values
