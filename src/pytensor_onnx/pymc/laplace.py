"""Export the Laplace approximation of a PyMC model: the mode, and draws of a normal around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.gradient import grad
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.scan.utils import until
from pytensor.tensor.linalg import cholesky, solve_triangular
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.exporting.program.converting import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.progress import working
from pytensor_onnx.pymc.drawn_graphs import (
    CHAIN,
    DRAW,
    as_function,
    density_of,
    initial_point_of,
    log_densities,
    model_to_draw,
    named_outputs,
    normals_of_chains,
    values_of_point,
    weighted_draws,
)
from pytensor_onnx.pymc.inputs import Inputs
from pytensor_onnx.pymc.making import Details, make_program, read_options
from pytensor_onnx.pymc.model_graphs import POINT, ModelGraph
from pytensor_onnx.pymc.nuts import Density, State
from pytensor_onnx.pymc.quasi_newton import ascend, higher_point

MODE = "mode"
"""Prefix of the outputs at the mode."""

DISTANCE = 1e-6
"""Distance to the mode at which Newton's method has converged, in standard deviations."""

_NEWTON_STEPS = 50
_NORMALS = 2**29
"""Stream of the normal numbers, which no sampler has."""


@fewer_collections()
@working("exporting")
def export_laplace(
    model: pm.Model,
    path: str | os.PathLike | None = None,
    *,
    variables: Sequence[str] | None = None,
    unconstrained: bool = False,
    data: str | Iterable[str] = "inputs",
    share_data: bool = True,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export the Laplace approximation of a PyMC model: its mode, and draws around it.

    The approximation is the normal distribution in the unconstrained space whose mean is the mode
    of the log-density there, and whose precision is the negative Hessian at the mode. The file
    finds the mode by L-BFGS and Newton's method.

    Its inputs are ``seed``, an int64 vector of one number for each chain of independent draws,
    ``draws``, their number, and those of ``data``. Its outputs are

    - the draws of each variable, of shape ``(chain, draw, ...)``;
    - ``lp``, the log-density of each draw, and ``log_weight``, its importance weight: the smoothed
      ratio of the posterior to the approximation, whose sum over all chains is one;
    - ``mode_x``, the value at the mode of each variable x that is not drawn back; and ``mode_lp``,
      the log-density there;
    - ``pareto_k``, which tells how far the approximation is from the posterior: weights are
      reliable below 0.7, and draws close to the posterior near zero;
    - ``log_marginal_likelihood``, the logarithm of the integral of the density by the
      approximation;
    - ``converged``, whether a mode was found, and ``n_steps`` of both methods.

    Without a mode, ``converged`` is false and all draws are NaN: the Hessian is not negative
    definite at the last point, or the density grows without end.

    Parameters
    ----------
    model
        The model. Its discrete variables are summed out, and drawn back, as by `export_sampler`.
    path
        File to write; none unless given.
    variables
        Names of free variables and deterministics to return; all unless given.
    unconstrained
        Whether to return the approximation itself: ``point``, the draws in the unconstrained space
        in the order of `export_logp`, their mean ``mode_point``, and their ``covariance``.
    data, share_data, verify, options
        As in `export_sampler`.

    Returns
    -------
    ONNXProgram
        The model, with the metadata of `export_logp`.

    Raises
    ------
    ArgumentError
        If the model has discrete variables that cannot be summed out, no continuous free ones, or
        not those named, or an argument is not valid.
    UnsupportedOpError
        If a part of the model cannot be converted; nothing is written.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 0.0, 2.0)
    ...     y = pm.Normal("y", mu, 1.0, observed=[1.0, 2.0, 4.0])
    >>> program = export_laplace(model)
    >>> names = [output.name for output in program.proto.graph.output]
    >>> found = dict(zip(names, program(seed=[1, 2], draws=500)))
    >>> found["mu"].shape, float(found["mode_mu"].round(6)), bool(found["converged"])
    ((2, 500), 2.153846, True)
    """
    read = read_options(export_laplace, path, verify, {"precision": "float64", **options})
    to_draw = model_to_draw(model, data, variables)
    graph, wanted = to_draw.graph, to_draw.wanted
    seed, n_draws = pt.lvector("seed"), pt.lscalar("draws")
    density, further = density_of(graph, lockstep=False)
    # As the start depends on an input, PyTensor does not search the mode of stored data at export.
    center = pt.switch(n_draws < 0, np.nan, initial_point_of(graph))
    mode = find_mode(density, further, *_hessian_of(graph), center)
    size = mode.x.shape[0]
    normals = normals_of_chains(seed, _NORMALS, n_draws, size)
    flat = normals.reshape((seed.shape[0] * n_draws, size))
    points = mode.x + solve_triangular(mode.root.T, flat.T, lower=False).T
    lp = log_densities(density, further, points)
    draws, k = weighted_draws(
        to_draw,
        seed,
        points.reshape(normals.shape),
        lp,
        _log_densities(mode, flat),
        unconstrained=unconstrained,
    )
    at_mode = values_of_point(graph, mode.x, wanted)
    log_volume = 0.5 * size * np.log(2.0 * np.pi) - pt.log(pt.diag(mode.root)).sum()
    fit = {
        **{f"{MODE}_{name}": value for name, value in at_mode.items()},
        f"{MODE}_lp": mode.log_density,
        "pareto_k": k,
        "log_marginal_likelihood": mode.log_density + log_volume,
        "converged": mode.converged,
        "n_steps": mode.n_steps,
    }
    if unconstrained:
        inverse = solve_triangular(mode.root, pt.eye(size), lower=True)
        fit |= {f"{MODE}_{POINT}": mode.x, "covariance": inverse.T @ inverse}
    dims_of_model = to_draw.parts.dims
    dims = {f"{MODE}_{name}": dims_of_model.get(name, []) for name in at_mode}
    given = Inputs()
    given.add(seed, [1], {0: CHAIN})
    given.add(n_draws, 30)
    given.add_data(graph)
    return make_program(
        graph,
        given,
        named_outputs(draws, fit),
        read,
        description={
            "sampler": {"method": "laplace", "fit": {name: dims.get(name, []) for name in fit}},
            **to_draw.description,
        },
        details=Details(output_axes={0: CHAIN, 1: DRAW}, others={*fit}, share_data=share_data),
    )


class Mode(NamedTuple):
    """The mode of a log-density.

    Attributes
    ----------
    x, log_density
        The point, and the log-density there.
    root
        Cholesky factor of the negative Hessian, NaN if this is not positive definite.
    converged
        Whether the point is a mode; root and density are NaN otherwise.
    n_steps
        Number of steps of L-BFGS and of Newton's method.
    """

    x: TensorVariable
    log_density: TensorVariable
    root: TensorVariable
    converged: TensorVariable
    n_steps: TensorVariable


class Newton(NamedTuple):
    """The last step of Newton's method.

    Attributes
    ----------
    root
        Cholesky factor of the negative Hessian before the step.
    distance
        Length of the step, in standard deviations of the approximation.
    count
        Number of steps.
    """

    root: TensorVariable
    distance: TensorVariable
    count: TensorVariable


Hessian = Callable[..., TensorVariable]
"""Function of a point, and of variables such as data: the matrix of second derivatives."""


def _hessian_of(graph: ModelGraph) -> tuple[Hessian, list[Variable]]:
    """Return the Hessian of the log-density, and the further variables that it takes.

    Its rows are the products with unit vectors.
    """
    point = graph.point
    (gradient,) = graph.of_point([graph.join(graph.gradient(graph.logp))])
    direction = point.type()
    product = grad((gradient * direction).sum(), point, disconnected_inputs="ignore")
    # A branch that is not taken multiplies zeros by infinite slopes.
    products = rewrite_graph([product], include=("ShapeOpt", "canonicalize"), clone=False)
    of_row, further = as_function([direction], products)
    rows = pytensor.scan(
        lambda row, *given: of_row(row, *given)[0],
        [pt.eye(point.shape[0], dtype=point.type.dtype)],
        non_sequences=further,
        return_updates=False,
        name="hessian",
    )
    at_point, further = as_function([point], [rows])
    return lambda x, *given: at_point(x, *given)[0].astype("float64"), further


def find_mode(
    density: Density,
    data: Sequence[TensorVariable],
    hessian: Hessian,
    further: Sequence[TensorVariable],
    center: TensorVariable,
) -> Mode:
    """Return the mode that L-BFGS leads to, and Newton's method after it.

    Parameters
    ----------
    density, data
        The log-density with its gradient, and the further variables that it takes.
    hessian, further
        Its Hessian, and those that this takes.
    center
        The point to start from.
    """
    near, n_steps, _ = ascend(density, data, State(center, *density(center, *data)))
    n_data = len(data)

    def step(now: State, before: Newton, *given: TensorVariable) -> tuple[list, until]:
        data, further = given[:n_data], given[n_data:]
        root = cholesky(-hessian(now.x, *further), lower=True, on_error="nan")
        half = solve_triangular(root, now.gradient, lower=True)
        distance = pt.sqrt((half * half).sum())
        goes_on = distance > DISTANCE
        direction = solve_triangular(root.T, half, lower=False)
        after = higher_point(density, data, now, pt.switch(goes_on, direction, 0.0))
        # At the mode the step is zero, so that the root is the one there.
        return [after, Newton(root, distance, before.count + goes_on)], until(~goes_on)

    root = pt.zeros((center.shape[0], center.shape[0]))
    nowhere = Newton(root, pt.constant(np.float64(np.inf)), pt.constant(np.int64(0)))
    last, found = iterate(step, [near, nowhere], [*data, *further], n_steps=_NEWTON_STEPS)
    converged = found.distance <= DISTANCE
    return Mode(
        last.x,
        last.log_density,
        pt.switch(converged, found.root, np.nan),
        converged,
        n_steps + found.count,
    )


def _log_densities(mode: Mode, normals: TensorVariable) -> TensorVariable:
    """Return the log-densities of draws in the approximation."""
    size = mode.x.shape[0].astype("float64")
    log_scale = pt.log(pt.diag(mode.root)).sum() - 0.5 * size * np.log(2.0 * np.pi)
    return log_scale - 0.5 * (normals * normals).sum(axis=1)
