"""Results of PyTensor to compare with: of a graph as written, and of PyTensor's rewriting of it."""

from collections.abc import Iterable, Sequence

import numpy as np
from pytensor.compile.mode import OPT_FAST_RUN, Mode
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.exporting.verification.reference_evaluation import evaluate

_PYTENSOR = Mode("py", OPT_FAST_RUN.excluding("inplace", "fusion", "BlasOpt"))


def rewritten_by_pytensor(graph: FunctionGraph) -> FunctionGraph:
    """Return a copy of a graph after PyTensor's default rewrites, without this package's rewrites.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dvector("x")
    >>> graph = FunctionGraph([x], [pt.log(pt.exp(x))], clone=False)
    >>> rewritten = rewritten_by_pytensor(graph)
    >>> evaluate(graph, [np.array([1000.0])]), evaluate(rewritten, [np.array([1000.0])])
    ([array([inf])], [array([1000.])])
    """
    copy = graph.clone(check_integrity=False)
    with np.errstate(all="ignore"):  # of constants that are folded
        _PYTENSOR.optimizer.rewrite(copy)
    return copy


def results_of(
    graphs: Iterable[FunctionGraph], arrays: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the results of a graph, and where they are not finite, the results of further graphs.

    Parameters
    ----------
    graphs
        Graphs of the same results, the most trusted first.
    arrays
        Their inputs.
    found
        Results to compare. An element that the first graph gives too is not taken from others: NaN
        is right where the graph as written is NaN.
    """
    first, *others = graphs
    expected = evaluate(first, arrays)
    for graph in others:
        expected = completed(expected, evaluate(graph, arrays), found)
    return expected


def completed(
    expected: Sequence[np.ndarray], others: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Replace elements that are not finite, unless they are found, by other ones that are not NaN.

    Examples
    --------
    >>> nan, three = np.array([np.nan, np.nan, 1.0]), np.array([1.0, 2.0, 3.0])
    >>> completed([nan], [three], found=[np.array([9.0, np.nan, 9.0])])
    [array([ 1., nan,  1.])]
    """
    return [
        _completed(a, b, c) if a.shape == b.shape == c.shape and a.dtype.kind == "f" else a
        for a, b, c in zip(expected, others, found, strict=True)
    ]


def _completed(expected: np.ndarray, other: np.ndarray, found: np.ndarray) -> np.ndarray:
    is_found = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return np.where(np.isfinite(expected) | is_found | np.isnan(other), expected, other)
