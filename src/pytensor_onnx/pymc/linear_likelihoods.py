"""Normal likelihoods of linear predictors, by sums of squares of as many terms as parameters.

The sum of squares of n observations `y - Z w` is that of `Q'y - R w` and of `y - Q Q'y`, where
`Z = Q R` and the columns of `Q` are orthonormal. With stored data, these are constants, and a
density costs as much as `R` has elements, however many observations there are. Effects of groups
have diagonal blocks in `R`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from scipy import linalg, sparse  # type: ignore[import-untyped]

from pytensor_onnx.named_dims import is_named
from pytensor_onnx.rewriting.engine.predicates import applies

_OF_FIRST_INPUT = (DimShuffle, Reshape, SpecifyShape, Alloc, Subtensor, AdvancedSubtensor)

LARGEST = 2**200
"""Factor of unit vectors, beside which constants of the predictor vanish."""

NEGLIGIBLE = 1e-13
"""Length of a column that is a combination of others, relative to its length."""

_evaluated = partial(
    pytensor.function,
    mode=Mode("py", optimizer=None),
    on_unused_input="ignore",
    allow_input_downcast=True,
)


@dataclass
class Predictor:
    """A linear predictor `offset + sum(matrix @ leaf)`.

    Attributes
    ----------
    leaves
        The variables, of any shape.
    matrices
        For each of them a sparse matrix, with a row for each observation and a column for each
        element.
    offset
        Its value for zeros.
    cost
        Number of multiplications and additions that compute it.
    """

    leaves: list[Variable]
    matrices: list[sparse.csc_matrix]
    offset: np.ndarray
    cost: int


@dataclass
class Rows:
    """Residuals `target - sum(block @ leaf)`, with a block for the elements of some leaves.

    Attributes
    ----------
    target
        A number for each row.
    blocks
        Positions of leaves whose elements are joined, and a matrix.
    """

    target: np.ndarray
    blocks: list[tuple[list[int], sparse.csr_matrix]] = field(default_factory=list)

    @property
    def cost(self) -> int:
        """Number of multiplications and additions of the residuals."""
        elements = (
            block.shape[0] if _has_one_each(block) else block.shape[0] * block.shape[1]
            for _, block in self.blocks
        )
        return sum(elements) + 3 * len(self.target)


class Reduced(NamedTuple):
    """A log-likelihood of all observations as a sum of fewer squares.

    Attributes
    ----------
    likelihood
        A number.
    n_rows, n_squares
        Numbers of observations, and of squares that depend on parameters.
    """

    likelihood: Variable
    n_rows: int
    n_squares: int


def normal_likelihood(
    value: Variable,
    mean: Variable,
    sigma: Variable,
    starts: Mapping[Variable, np.ndarray],
) -> Reduced | None:
    """Return the log-likelihood of all observations of a normal variable with a linear mean.

    Shared variables count as constants of their present values.

    Parameters
    ----------
    value
        The observations.
    mean, sigma
        Mean and standard deviation.
    starts
        The variables on which these depend, with values of their shapes.

    Returns
    -------
    Reduced
        None if the mean is not linear, there is more than one standard deviation, or a sum of fewer
        squares would not cost less.

    Examples
    --------
    >>> a, b, sigma = pt.scalars("a", "b", "sigma")
    >>> x = np.arange(20.0)
    >>> starts = {a: np.array(0.0), b: np.array(0.0), sigma: np.array(1.0)}
    >>> found = normal_likelihood(pt.constant(x**2), a + b * x, sigma, starts)
    >>> logp = found.likelihood.eval({a: -20.0, b: 15.0, sigma: 10.0}, mode="FAST_COMPILE")
    >>> found.n_rows, found.n_squares, logp.round(3)
    (20, 2, np.float64(-205.51))
    """
    above = set(ancestors([value, mean, sigma]))
    # Drawn rows change from call to call; loops and functions take long to run in Python.
    others = (RandomVariable, HasInnerGraph)
    if any(v.owner and isinstance(v.owner.op, others) for v in above):
        return None
    if is_named(value.type) or mean.type.dtype != "float64" or not all(sigma.type.broadcastable):
        return None
    observed = _evaluated([], value)()
    if not np.isfinite(observed).all():
        return None
    predictor = linear_predictor(mean, observed.shape, starts)
    if predictor is None or not np.isfinite(predictor.offset).all():
        return None
    rows, rest = residuals(predictor.matrices, observed.ravel() - predictor.offset)
    if 2 * sum(x.cost for x in rows) > predictor.cost + 3 * observed.size:
        return None
    leaves = [leaf.ravel() for leaf in predictor.leaves]
    sigma = sigma.squeeze()
    squares = [pt.sqr(rest / sigma)]
    squares += [pt.sqr((x.target - _product(x, leaves)) / sigma).sum() for x in rows]
    terms = [-0.5 * pt.add(*squares), -observed.size * pt.log(sigma)]
    constant = pt.constant(-0.5 * np.log(2 * np.pi) * observed.size)
    likelihood = check_parameters(pt.add(*terms, constant), sigma > 0, msg="sigma > 0")
    return Reduced(likelihood, observed.size, sum(len(x.target) for x in rows))


def linear_predictor(
    mean: Variable, shape: tuple[int, ...], starts: Mapping[Variable, np.ndarray]
) -> Predictor | None:
    """Return a mean of observations as a linear predictor, if it is one of few variables.

    Parameters
    ----------
    mean
        The mean.
    shape
        Shape of the observations.
    starts
        Variables on which it depends, with values of their shapes.

    Examples
    --------
    >>> b = pt.scalar("b")
    >>> mean = 3 + b * np.array([1.0, 2.0, 4.0, 8.0])
    >>> found = linear_predictor(mean, (4,), {b: np.zeros(())})
    >>> found.offset, found.matrices[0].toarray().ravel()
    (array([3., 3., 3., 3.]), array([1., 2., 4., 8.]))
    """
    n = int(np.prod(shape))
    dependent = _dependents(mean, starts)
    inputs = list(starts)
    found = _evaluated(inputs, [x.shape for x in dependent])(*starts.values())
    shapes = {v: tuple(map(int, x)) for v, x in zip(dependent, found, strict=True)}
    leaves, cost = _leaves_of(mean, shapes, n) if mean in shapes else ([], 0)
    sizes = [int(np.prod(shapes[leaf])) for leaf in leaves]
    if (mean in shapes and not leaves) or 4 * sum(sizes) > n:
        return None
    given = [leaf.type() for leaf in leaves]
    (of_leaves,) = clone_replace([mean], dict(zip(leaves, given, strict=True)))
    evaluate = _evaluated(given, pt.broadcast_to(of_leaves, shape).ravel())
    zeros = [np.zeros(shapes[leaf]) for leaf in leaves]
    offset = evaluate(*zeros)
    matrices = []
    for i, size in enumerate(sizes):
        columns = []
        for j in range(size):
            point = [x.copy() for x in zeros]
            point[i].flat[j] = LARGEST
            columns.append(sparse.csc_matrix((evaluate(*point) - offset)[:, None] / LARGEST))
        matrices.append(sparse.hstack(columns, format="csc"))
    return Predictor(leaves, matrices, offset, cost)


def _dependents(mean: Variable, starts: Collection[Variable]) -> list[Variable]:
    """Return the variables that a mean is computed of, and that depend on others."""
    found = dict.fromkeys(starts)
    for node in toposort([mean]):
        if any(x in found for x in node.inputs):
            found.update(dict.fromkeys(node.outputs))
    return list(found)


def _leaves_of(
    mean: Variable, shapes: Mapping[Variable, tuple[int, ...]], n: int
) -> tuple[list[Variable], int]:
    """Return the small variables of which a mean is a linear function, and what it costs.

    There are none if it is not linear, or a function of large ones.
    """
    leaves: dict[Variable, None] = {}
    visited, cost = {mean}, 0
    waiting = [mean]
    while waiting:
        variable = waiting.pop()
        if variable.type.dtype != "float64":
            return [], 0
        if 4 * int(np.prod(shapes[variable])) <= n:
            leaves[variable] = None
            continue
        terms = _linear_inputs(variable.owner, shapes) if variable.owner else []
        if not terms:
            return [], 0
        n_terms = 1
        if isinstance(_core(variable.owner), Dot):
            is_second = terms[0] is variable.owner.inputs[1]
            n_terms = shapes[terms[0]][-2:][0 if is_second else -1]
        cost += int(np.prod(shapes[variable])) * n_terms
        waiting += [x for x in terms if x not in visited]
        visited.update(terms)
    return list(leaves), cost


def _linear_inputs(node: Apply, dependent: Collection[Variable]) -> list[Variable]:
    """Return the inputs of which a result is a linear function, none if it is not linear."""
    among = [x for x in node.inputs if x in dependent]
    if applies(node, ps.Add | ps.Sub | ps.Neg):
        return among
    if len(among) != 1:
        return []
    is_linear = applies(node, ps.Mul) or isinstance(_core(node), Dot)
    if among[0] is node.inputs[0]:
        is_linear |= isinstance(node.op, _OF_FIRST_INPUT) or applies(node, ps.TrueDiv)
    return among if is_linear else []


def _core(node: Apply) -> Op:
    """Return the Op of a node, or the one that it repeats for matrices of a batch."""
    return getattr(node.op, "core_op", node.op)


def residuals(
    matrices: Sequence[sparse.csc_matrix], target: np.ndarray
) -> tuple[list[Rows], float]:
    """Return residuals with the same sum of squares as those of a linear predictor.

    Columns of groups, of which each row has one at most, are made orthonormal on their own, and
    stay sparse; the others together are a product of an orthonormal and a triangular matrix.

    Parameters
    ----------
    matrices
        The columns of each leaf.
    target
        What the predictor is subtracted from.

    Returns
    -------
    rows
        The residuals that depend on leaves.
    rest
        The root of the sum of squares of the others.

    Examples
    --------
    >>> group = sparse.csc_matrix([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> covariate = sparse.csc_matrix([[1.0], [-1.0], [2.0], [2.0]])
    >>> rows, rest = residuals([group, covariate], np.array([1.0, 3.0, 2.0, 4.0]))
    >>> [len(x.target) for x in rows], round(rest, 12)
    ([2, 1], 1.414213562373)
    """
    order = sorted(range(len(matrices)), key=lambda i: -matrices[i].shape[1])
    bases: list[sparse.csc_matrix] = []
    others = []
    for i in order:
        matrix = matrices[i]
        if matrix.shape[1] > 1 and _has_one_each(matrix):
            left = _without(matrix, bases)
            lengths = _lengths(left)
            kept = lengths > NEGLIGIBLE * _lengths(matrix)
            left = (left[:, kept] @ sparse.diags_array(1 / lengths[kept])).tocsc()
            if _has_one_each(left):
                bases.append(left)
                continue
        others.append(i)
    if others:
        joined = sparse.hstack([matrices[i] for i in others], format="csc")
        bases.append(_orthonormal(_without(joined, bases).toarray(), _lengths(joined)))
    bases = [basis for basis in bases if basis.shape[1]]
    parts = [([i], matrices[i]) for i in order if i not in others]
    parts += [(others, joined)] if others else []
    rows = []
    for basis in bases:
        across = basis.T.tocsr()
        row = Rows(across @ target)
        for leaves, matrix in parts:
            block = _rounded(across @ matrix, matrix)
            if block.nnz:
                row.blocks.append((leaves, block.tocsr()))
        rows.append(row)
    return rows, float(np.linalg.norm(_less_projections(target, bases)))


def _without(matrix: sparse.csc_matrix, bases: Sequence[sparse.csc_matrix]) -> sparse.csc_matrix:
    """Return columns less their projections on orthonormal ones, with zeros for small elements."""
    return _rounded(_less_projections(matrix, bases), matrix)


def _less_projections(x: Any, bases: Sequence[sparse.csc_matrix]) -> Any:
    """Return a vector or columns less the projections on bases, twice against rounding."""
    for basis in [*bases, *bases]:
        x = x - basis @ (basis.T @ x)
    return x


def _rounded(matrix: sparse.csc_matrix, original: sparse.csc_matrix) -> sparse.csc_matrix:
    """Return columns with zeros for what rounding leaves of elements."""
    rounded = sparse.coo_matrix(matrix)
    is_kept = np.abs(rounded.data) > NEGLIGIBLE * _lengths(original)[rounded.col]
    kept = rounded.data[is_kept], (rounded.row[is_kept], rounded.col[is_kept])
    return sparse.csc_matrix(kept, shape=matrix.shape)


def _orthonormal(columns: np.ndarray, lengths: np.ndarray) -> sparse.csc_matrix:
    """Return an orthonormal basis of columns, of which some may be combinations of others."""
    scaled = columns / np.where(lengths, lengths, 1.0)
    q, r, _ = linalg.qr(scaled, mode="economic", pivoting=True)
    return sparse.csc_matrix(q[:, np.abs(np.diag(r)) > NEGLIGIBLE])


def _lengths(matrix: sparse.csc_matrix) -> np.ndarray:
    """Return the lengths of columns."""
    return np.asarray(sparse.linalg.norm(matrix, axis=0))


def _has_one_each(matrix: sparse.csr_matrix) -> bool:
    """Return whether each row has one element at most."""
    return bool(np.diff(matrix.tocsr().indptr).max(initial=0) <= 1)


def _product(rows: Rows, leaves: Sequence[Variable]) -> Variable:
    """Return the predictor of residuals."""
    terms = []
    for positions, block in rows.blocks:
        vectors = [leaves[i] for i in positions]
        joined = vectors[0] if len(vectors) == 1 else pt.concatenate(vectors)
        if not _has_one_each(block):
            terms.append(pt.constant(block.toarray()) @ joined)
            continue
        n, size = block.shape
        columns = np.zeros(n, "int64")
        columns[np.diff(block.indptr) == 1] = block.indices
        is_whole = n == size and (columns == np.arange(n)).all()
        factors = np.asarray(block.sum(axis=1)).ravel()
        terms.append(pt.constant(factors) * (joined if is_whole else joined[columns]))
    return pt.add(*terms) if len(terms) > 1 else terms[0]
