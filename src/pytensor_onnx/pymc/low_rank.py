"""The low-rank correction of a diagonal metric, from the last draws and gradients of a warm-up.

The covariance of draws and the inverse covariance of their gradients are equal for a normal
density. Their geometric mean, in units of the scales, is the matrix that takes either to the other
(arXiv:2603.18845); its eigenvectors with eigenvalues far from one are the correction.
"""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.pymc.nuts import Correction

CUTOFF = 2.0
"""Eigenvalues up to this one, and from its reciprocal on, count as one."""

REGULARITY = 1e-5
"""Sum of squares that each direction has before the first draw."""

POINTS, RANK = 200, 64
"""Largest numbers of points and of eigenvectors."""

INTERVAL = 20
"""Steps between two corrections."""


class Points(NamedTuple):
    """The last draws of a chain and their gradients, as rows, of which any one is the oldest."""

    draws: TensorVariable
    gradients: TensorVariable


class Updates(NamedTuple):
    """When the correction changes, after each step of a chain.

    Attributes
    ----------
    is_due
        Whether it changes.
    row
        Row of the points that the draw takes.
    count
        Number of the last points that it is computed of.
    """

    is_due: TensorVariable
    row: TensorVariable
    count: TensorVariable


def updates_of(
    steps: TensorVariable,
    begins: TensorVariable,
    ends_window: TensorVariable,
    is_in_window: TensorVariable,
) -> Updates:
    """Return the updates of steps.

    The correction changes where a window ends, and at every twentieth step, from three points on.

    Parameters
    ----------
    steps
        Numbers of the steps.
    begins
        Columns of the first steps of the window before the present one, and of this.
    ends_window, is_in_window
        As in the schedule.
    """
    # At the end of a window the points of the one before it are left.
    begin = pt.switch(ends_window, begins[:, 1], begins[:, 0])
    count = pt.minimum(steps + 1 - begin, POINTS)
    is_due = ends_window | pt.eq((steps + 1) % INTERVAL, 0)
    is_due = is_due & is_in_window & (count > 2)
    return Updates(is_due, steps % POINTS, count)


def no_points(x: TensorVariable) -> Points:
    """Return room for the points of a chain."""
    room = pt.zeros((POINTS, 1)) + pt.zeros_like(x)
    return Points(room, room)


def no_correction(x: TensorVariable) -> Correction:
    """Return the correction of a chain at its start, which is the identity."""
    size = x.type.shape[0]
    rank = pt.minimum(x.shape[0], RANK) if size is None else min(size, RANK)
    return Correction(pt.zeros_like(x)[:, None] + pt.zeros(rank), pt.zeros(rank))


def with_point(
    points: Points, x: TensorVariable, gradient: TensorVariable, row: TensorVariable
) -> Points:
    """Return the points with a draw in the place of the oldest one."""
    return Points(points.draws[row].set(x), points.gradients[row].set(gradient))


def correction_of(
    points: Points, scale: TensorVariable, updates: Updates, now: Correction
) -> Correction:
    """Return the correction of the last points, or the present one where that is not finite."""
    ages = (updates.row - pt.arange(POINTS)) % POINTS
    is_counted = (ages < updates.count).astype("float64")[:, None]
    draws, gradients = (
        is_counted * (x - (is_counted * x).sum(axis=0) / updates.count)
        for x in (points.draws / scale, points.gradients * scale)
    )
    size, basis = scale.type.shape[0], None
    if size is None or size > 2 * POINTS:
        # All other directions have the eigenvalue one.
        basis, _ = pt.linalg.qr(pt.concatenate([draws, gradients]).T, mode="reduced")
        draws, gradients = draws @ basis, gradients @ basis
    values, vectors = _geometric_mean(draws, gradients)
    if size is None or size > RANK:
        order = pt.argsort(pt.abs(pt.log(values)))[-now.stretches.shape[0] :]
        values, vectors = values[order], vectors[:, order]
    is_far = (values > CUTOFF) | (values < 1.0 / CUTOFF)
    stretches = pt.switch(is_far, pt.sqrt(values) - 1.0, 0.0)
    vectors = vectors if basis is None else basis @ vectors
    is_finite = pt.isfinite(stretches.sum() + vectors.sum())
    return Correction(
        pt.switch(is_finite, vectors, now.vectors), pt.switch(is_finite, stretches, now.stretches)
    )


def _geometric_mean(
    draws: TensorVariable, gradients: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return the eigenvalues and eigenvectors of a geometric mean.

    It is that of the covariance of the draws, ``A``, and the inverse of that of the gradients,
    ``L L'``: the product ``H H'`` of ``H = L'^-1 V S^1/4``, where ``S`` and ``V`` are eigenvalues
    and eigenvectors of ``L' A L``.
    """
    first, second = (x.T @ x / REGULARITY + pt.eye(x.shape[1]) for x in (draws, gradients))
    lower = pt.linalg.cholesky(second)
    values, vectors = pt.linalg.eigh(lower.T @ first @ lower)
    roots = pt.sqrt(pt.sqrt(pt.maximum(values, np.finfo(float).tiny)))
    half = pt.linalg.solve_triangular(lower.T, vectors, lower=False) * roots
    return pt.linalg.eigh(half @ half.T)
