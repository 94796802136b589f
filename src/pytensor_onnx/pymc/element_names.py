"""Flat names of the elements of a model's variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pymc as pm
import pytensor
from pymc.pytensorf import resolve_shapes
from pytensor.graph.basic import Variable

from pytensor_onnx.named_dims import tensor_of
from pytensor_onnx.pymc.model_arguments import SPACES, check_model, read_choice


def parameter_names(
    model: pm.Model,
    *,
    space: str = "unconstrained",
    deterministics: bool = False,
    generated: bool = False,
) -> list[str]:
    """Return a name for each element of the continuous free variables.

    Elements of arrays have their indices, which start at one as in Stan: ``theta.2.3``. The last
    index varies fastest.

    Parameters
    ----------
    model
        The model.
    space
        ``"unconstrained"`` for the elements of the input ``point`` of an unconstrained density, in
        its order, or ``"constrained"`` for those of the variables themselves.
    deterministics, generated
        Whether the elements of the deterministics, and those of the observed variables, follow.

    Raises
    ------
    ArgumentError
        If an argument is not valid.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     sigma = pm.HalfNormal("sigma")
    ...     theta = pm.Normal("theta", 0.0, sigma, shape=(2, 2))
    ...     total = pm.Deterministic("total", theta.sum())
    >>> parameter_names(model)
    ['sigma_log__', 'theta.1.1', 'theta.1.2', 'theta.2.1', 'theta.2.2']
    >>> parameter_names(model, space="constrained", deterministics=True)
    ['sigma', 'theta.1.1', 'theta.1.2', 'theta.2.1', 'theta.2.2', 'total']
    """
    check_model(model)
    is_constrained = read_choice(space, SPACES, "space") == "constrained"
    names = free_names(model, constrained=is_constrained)
    further = list(model.deterministics) if deterministics else []
    further += model.observed_RVs if generated else []
    for variable, shape in zip(further, _shapes(further), strict=True):
        names += element_names(str(variable.name), shape)
    return names


def free_names(model: pm.Model, *, constrained: bool) -> list[str]:
    """Return the names of the elements of the continuous free variables, in one of the spaces."""
    shapes = model.eval_rv_shapes()
    continuous = [rv for rv in model.free_RVs if rv.type.dtype.startswith("float")]
    variables = continuous if constrained else [model.rvs_to_values[rv] for rv in continuous]
    return [name for v in variables for name in element_names(str(v.name), shapes[str(v.name)])]


def element_names(name: str, shape: Iterable[int]) -> list[str]:
    """Return the names of the elements of an array.

    Examples
    --------
    >>> element_names("beta", [2]), element_names("mu", [])
    (['beta.1', 'beta.2'], ['mu'])
    """
    return [".".join([name, *(str(i + 1) for i in index)]) for index in np.ndindex(*shape)]


def _shapes(variables: Sequence[Variable]) -> list[tuple[int, ...]]:
    """Return the shapes that variables have with the present data."""
    if not variables:
        return []
    shapes = resolve_shapes([tensor_of(v).shape for v in variables])
    compute = pytensor.function([], shapes, mode="FAST_COMPILE", on_unused_input="ignore")
    return [tuple(int(n) for n in shape) for shape in compute()]
