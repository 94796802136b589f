"""The posteriors of posteriordb: models of PyMC, data and reference draws of a checkout.

The models are of github.com/twiecki/posteriordb, a fork of github.com/stan-dev/posteriordb with the
same data and reference draws. A checkout is cloned where there is none.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import numpy as np
import pymc as pm
import pytensor.tensor as pt

ADDRESS = "https://github.com/twiecki/posteriordb"
COMMIT = "8ba99c7eff7b13fd93fb35d6e46ca58d6de6705d"
FOLDER = Path(__file__).parent.parent / "build" / "posteriordb"
"""Folder of the checkout and of the results, which is no part of the repository."""
RESULTS = FOLDER / "results"


@dataclass(frozen=True)
class Posterior:
    """A model with its data.

    Attributes
    ----------
    name, model_name, data_name
        Names in the collection.
    reference_name
        Name of the reference draws, None without them.
    database
        Folder of the collection.
    """

    name: str
    model_name: str
    data_name: str
    reference_name: str | None
    database: Path

    def build(self) -> pm.Model:
        """Return the model with its data."""
        values = _read(self.database / "data" / "data", self.data_name)
        # Some models compare lists with numbers, as if they were arrays.
        data = {k: np.array(v) if isinstance(v, list) else v for k, v in values.items()}
        if self.model_name in CORRECTED:
            return CORRECTED[self.model_name](data)
        path = self.database / "models" / "pymc" / f"{self.model_name}.py"
        module = ModuleType(self.model_name)
        # The annotations of the files name modules that only their functions import.
        vars(module).update(pm=pm, pt=pt, np=np)
        exec(compile(path.read_text(), path.name, "exec"), vars(module))
        return module.make_model(data)

    @cached_property
    def reference(self) -> dict[str, np.ndarray]:
        """Reference draws of each number by its name, such as ``beta[1]``; chains are rows."""
        folder = self.database / "reference_posteriors" / "draws" / "draws"
        chains = _read(folder, str(self.reference_name))
        return {name: np.array([chain[name] for chain in chains]) for name in chains[0]}


def _read(folder: Path, name: str) -> Any:
    with ZipFile(folder / f"{name}.json.zip") as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def cloned(folder: Path = FOLDER / "checkout") -> Path:
    """Return the folder of a checkout, which is cloned where there is none."""
    if not (folder / "posterior_database").is_dir():
        subprocess.run(["git", "clone", "--no-checkout", ADDRESS, str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", COMMIT], check=True)
    return folder


def posteriors(checkout: Path) -> dict[str, Posterior]:
    """Return the posteriors whose model PyMC has, by name."""
    database = checkout / "posterior_database"
    models = {path.stem for path in (database / "models" / "pymc").glob("*.py")}
    found = {}
    for path in sorted((database / "posteriors").glob("*.json")):
        info = json.loads(path.read_text())
        name, model, data = (info[key] for key in ("name", "model_name", "data_name"))
        if model in models:
            found[name] = Posterior(name, model, data, info["reference_posterior_name"], database)
    return found


def measured(checkout: Path) -> dict[str, Posterior]:
    """Return one posterior of each model, and all that have reference draws, by name."""
    every = posteriors(checkout).values()
    of_models = {x.model_name: x.name for x in reversed(every)}
    of_models |= {x.model_name: x.name for x in every if x.reference_name}
    chosen = set(of_models.values())
    return {x.name: x for x in every if x.reference_name or x.name in chosen}


def diamonds(data: dict[str, Any]) -> pm.Model:
    """Prices of diamonds, by 24 predictors that are nearly dependent."""
    x = data["X"][:, 1:]
    with pm.Model() as model:
        b = pm.Normal("b", shape=x.shape[1])
        mean = pm.StudentT("Intercept", nu=3, mu=8, sigma=10) + (x - x.mean(axis=0)) @ b
        pm.Normal("Y", mean, pm.HalfStudentT("sigma", nu=3, sigma=10), observed=data["Y"])
    return model


CORRECTED = {"diamonds": diamonds}
"""Models in place of those of the collection: its diamonds lack the predictors."""


def numbers_of(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the draws of each number of variables by the name that Stan gives it.

    Parameters
    ----------
    draws
        Arrays of shape ``(chain, draw, ...)``.

    Examples
    --------
    >>> draws = {"mu": np.zeros((2, 5)), "beta": np.zeros((2, 5, 3)), "w": np.zeros((2, 5, 1, 2))}
    >>> list(numbers_of(draws))
    ['mu', 'beta[1]', 'beta[2]', 'beta[3]', 'w[1,1]', 'w[1,2]']
    """
    numbers = {}
    for name, values in draws.items():
        for place in np.ndindex(values.shape[2:]):
            index = ",".join(str(i + 1) for i in place)
            numbers[f"{name}[{index}]" if place else name] = values[:, :, *place]
    return numbers


def variable_of(number: str) -> str:
    """Return the name of a number's variable.

    Examples
    --------
    >>> variable_of("w[1,2]")
    'w'
    """
    return re.sub(r"\[.*\]$", "", number)
