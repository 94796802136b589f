"""A cache of the programs that were last made for a PyMC model, which ends with the model."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType

from pytensor_onnx.digests import content_key

MOST_PROGRAMS = 8
"""Programs that are kept for a model."""


@dataclass
class Kept:
    """The last programs of a model, by the facts that they were exported for."""

    programs: dict[Any, tuple[Any, Sequence[Variable]]] = field(default_factory=dict)

    def find(self, key: Any) -> Any:
        """Return a program as the last one that was used, None where there is none."""
        if key not in self.programs:
            return None
        self.programs[key] = entry = self.programs.pop(key)
        return entry[0]

    def add(self, key: Any, program: Any, variables: Sequence[Variable]) -> None:
        """Keep a program, and the variables in its key, whose identities others might get."""
        self.programs.pop(key, None)
        self.programs[key] = (program, variables)
        while len(self.programs) > MOST_PROGRAMS:
            self.programs.pop(next(iter(self.programs)))


_kept: dict[int, tuple[weakref.ref[pm.Model], Kept]] = {}
"""Programs by the identity of their models, which have an equality of their own."""


def kept_of(model: pm.Model) -> Kept:
    """Return the programs of a model."""
    known = _kept.get(id(model))
    if known is None or known[0]() is not model:
        number = id(model)
        known = (weakref.ref(model, lambda _: _kept.pop(number, None)), Kept())
        _kept[number] = known
    return known[1]


def model_key(model: pm.Model) -> tuple[Hashable, Sequence[Variable]]:
    """Return a key of a model with its data, and the variables that must live as long as it."""
    values = [model.rvs_to_values[rv] for rv in model.basic_RVs]
    results = [*model.basic_RVs, *model.potentials, *model.deterministics, *values]
    variables = list(ancestors(results))
    key = (
        tuple((id(v), v.name) for v in variables),
        tuple(id(model.rvs_to_transforms.get(rv)) for rv in model.basic_RVs),
        content_of_shared(variables),
    )
    return key, variables


def content_of(value: Any) -> Hashable:
    """Return a key of the content of a value, which changes in place change."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return blake2b(pickle.dumps(value)).digest()
    return value.shape, content_key(value)


def content_of_shared(variables: Iterable[Variable]) -> Hashable:
    """Return a key of the values of the shared variables among others, without generators."""
    shared = [v for v in variables if isinstance(v, SharedVariable)]
    arrays = [v for v in shared if not isinstance(v.type, RandomType)]
    return tuple(content_of(v.get_value(borrow=True)) for v in arrays)
