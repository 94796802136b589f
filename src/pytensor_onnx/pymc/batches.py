"""Compute graphs of one point for a batch of points."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import resolve_shapes
from pytensor.conditional.op import ifelse
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable
from pytensor.xtensor.vectorization import vectorize_graph

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.exporting.requests.source import Source, check_inputs
from pytensor_onnx.exporting.verification.reference_evaluation import evaluate

_AXIS = "__point__"


def of_batch(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Return the outputs for each of the points, on a new first axis.

    Loops and random draws are computed for one point after another, all else for all at once.

    Parameters
    ----------
    outputs
        Graphs of one point, of tensors.
    points
        For each input that belongs to a point, the batch of its values.

    Examples
    --------
    >>> x, xs = pt.vector("x"), pt.matrix("xs")
    >>> (sums,) = of_batch([x.sum()], {x: xs})
    >>> sums.eval({xs: [[1.0, 2.0], [3.0, 4.0]]}, mode="FAST_COMPILE")
    array([3., 7.])
    """
    # First, so that no size depends on the points.
    rewritten = rewrite_graph(copied(outputs), include=("ShapeOpt", "canonicalize"), clone=False)
    results: dict[int, TensorVariable] = {}
    at_once = [i for i, output in enumerate(rewritten) if not _need_loop(output)]
    try:
        vectorized = vectorized_graph([rewritten[i] for i in at_once], points)
        results.update(zip(at_once, vectorized, strict=True))
    except NotImplementedError:
        pass
    rest = [i for i in range(len(outputs)) if i not in results]
    for group, used in _by_points([outputs[i] for i in rest], points):
        loop = _by_loop([outputs[rest[i]] for i in group], used)
        results.update(zip([rest[i] for i in group], loop, strict=True))
    return [results[i] for i in range(len(outputs))]


def vectorized_graph(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Return the outputs for all points at once.

    Raises
    ------
    NotImplementedError
        If PyTensor has no batch of an operation.
    """
    if not outputs:
        return []
    batched = vectorize_graph(list(outputs), points, new_tensor_dims=(_AXIS,))
    n = next(iter(points.values())).shape[0]
    return [
        new if new.type.ndim > old.type.ndim else pt.broadcast_to(new, (n, *new.shape))
        for old, new in zip(outputs, batched, strict=True)
    ]


def check_batch(
    outputs: Mapping[str, Variable],
    batched: Mapping[str, Variable],
    inputs: Sequence[Variable],
    points: Mapping[Variable, TensorVariable],
    arrays: Sequence[np.ndarray],
) -> None:
    """Raise an error if the results of a batch and of a loop over its points differ.

    Parameters
    ----------
    outputs, batched
        Graphs of one point, and those of the batch.
    inputs
        Inputs of the graphs of one point.
    points
        As in `of_batch`.
    arrays
        Inputs of the batch.

    Raises
    ------
    VerificationError
        If numbers of a point differ. Numbers that are NaN for the one point are not compared.
    """
    of_all = evaluate(_graph([points.get(v, v) for v in inputs], list(batched.values())), arrays)
    single = _graph(inputs, list(outputs.values()))
    for i in range(next(len(x) for v, x in zip(inputs, arrays, strict=True) if v in points)):
        row = [x[i] if v in points else x for v, x in zip(inputs, arrays, strict=True)]
        for name, found, expected in zip(outputs, of_all, evaluate(single, row), strict=True):
            if not _agree(found[i], expected):
                raise VerificationError(
                    f"output {name} of a batch differs from that of its point {i} alone: export it "
                    f"without batch, and report the model"
                )


def _agree(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether arrays agree but for rounding, where the second is not NaN."""
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(found, expected)
    with np.errstate(all="ignore"):
        tolerance = np.sqrt(np.finfo(expected.dtype).eps)
        scale = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
        close = np.isclose(found, expected, rtol=tolerance, atol=tolerance * scale)
    return bool(np.all(close | np.isnan(expected)))


def copied(outputs: Sequence[Variable]) -> list[Variable]:
    """Return a copy of graphs, with the same inputs."""
    return list(FunctionGraph(outputs=list(outputs), clone=True, copy_inputs=False).outputs)


def _graph(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> FunctionGraph:
    """Return a graph with constants in place of shared variables."""
    values = {v: v.get_value(borrow=False) for v in check_inputs(inputs, outputs)}
    source = Source(inputs=list(inputs), results=list(outputs), updates={}, values=values)
    return reference_graph(source, None)


def _need_loop(output: Variable) -> bool:
    """Whether an output has a part without a form for a batch."""
    return any(v.owner is not None and _has_no_batch(v.owner) for v in ancestors([output]))


def _has_no_batch(node: Apply) -> bool:
    return isinstance(node.op, Scan) or any(isinstance(v.type, RandomType) for v in node.inputs)


def _by_points(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[tuple[list[int], dict[Variable, TensorVariable]]]:
    """Return the positions of outputs of the same inputs of a point, with these inputs."""
    groups: dict[tuple[Variable, ...], list[int]] = {}
    for i, output in enumerate(outputs):
        behind = set(ancestors([output]))
        used = tuple(v for v in points if v in behind) or tuple(points)[:1]
        groups.setdefault(used, []).append(i)
    return [(group, {v: points[v] for v in used}) for used, group in groups.items()]


def _by_loop(
    outputs: Sequence[Variable], points: Mapping[Variable, TensorVariable]
) -> list[TensorVariable]:
    """Compute the outputs of one point after another."""
    variables = list(points)

    def at_point(*values: TensorVariable) -> list[Variable]:
        given = {v: v.type.filter_variable(x) for v, x in zip(variables, values, strict=True)}
        return list(clone_replace(list(outputs), given, rebuild_strict=False))

    rows = pytensor.scan(
        at_point,
        list(points.values()),
        return_updates=False,
        return_list=True,
        strict=False,
        name="points",
    )
    return [_sized(row, output, variables) for row, output in zip(rows, outputs, strict=True)]


def _sized(
    rows: TensorVariable, output: Variable, variables: Collection[Variable]
) -> TensorVariable:
    """Return rows of a loop with the sizes of one, which a loop over no points does not know."""
    if None not in output.type.shape:
        return rows
    (shape,) = resolve_shapes([output.shape])
    if any(v in variables or isinstance(v.type, RandomType) for v in ancestors([shape])):
        return rows
    none = pt.zeros((0, *(shape[i] for i in range(output.type.ndim))), output.type.dtype)
    return ifelse(pt.eq(rows.shape[0], 0), none, rows)
