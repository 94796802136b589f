"""Correct types that PyTensor declares wrongly for the values of a result."""

from collections.abc import Callable, Iterable, Sequence

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import applys_between, graph_inputs
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Choose
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.linalg.decomposition.eigen import Eigh
from pytensor.tensor.linalg.inverse import TensorInv
from pytensor.tensor.linalg.solvers.lstsq import Lstsq, TensorSolve
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.linalg.complex_matrices import ComplexLstsq, HermitianEigh
from pytensor_onnx.rewriting.elementwise.broadcast_choices import chosen_of_any_shape
from pytensor_onnx.rewriting.engine.inner_graphs import core_op, inner_nodes, with_inner_graph
from pytensor_onnx.rewriting.engine.walkers import ops_of
from pytensor_onnx.rewriting.linalg.tensor_inverses import matrix_to_solve
from pytensor_onnx.rules import rewrites_graphs

_MOVING = (AdvancedSubtensor, DimShuffle, JoinDims, Reshape, SplitDims, Subtensor)


@rewrites_graphs(
    family="structure",
    purpose="correctness",
    identity="declared type = type of the computed value",
    requires="an Op whose declared type is known to be wrong",
    ensures="the types of dependent results follow",
    begins_at=("Lstsq", "TensorSolve", "Choose", "Eigh"),
    measured="docs/project/upstream.md#results-have-another-dtype-or-rank-than-their-type",
)
def correct_types(fgraph: FunctionGraph) -> None:
    """Replace Ops with results of a wrong type, and infer the types of dependent results anew.

    These are least squares of vectors, solutions of tensors that are no matrices, choices of arrays
    with more axes than the numbers or broadcast with them, eigenvectors of Hermitian matrices, and
    least squares of complex ones. An Op is left, and refused later, where a dependent Op does not
    take the right type. Complex results that PyTensor takes for real ones may be moved only: it has
    dropped `conj`, say.

    Examples
    --------
    >>> from pytensor.tensor.linalg import lstsq
    >>> x, y = pt.matrix("x"), pt.vector("y")
    >>> fgraph = FunctionGraph([x, y], [lstsq(x, y, -1.0)[0]], clone=False)
    >>> correct_types.rewrite(fgraph)
    >>> fgraph.outputs[0].type.ndim
    1
    """
    updated = set(fgraph.update_mapping or ())
    correct_all(fgraph, [i for i in range(len(fgraph.outputs)) if i not in updated])


def _may_be_wrong(op: Op) -> bool:
    return type(core_op(op)) in _CORRECTIONS or isinstance(op, OpFromGraph | Scan)


def with_right_types(results: Sequence[Variable]) -> Sequence[Variable]:
    """Return results of a graph with the right types, the given ones where these are right.

    Examples
    --------
    >>> from pytensor.tensor.linalg import lstsq
    >>> x, y = pt.matrix("x"), pt.vector("y")
    >>> [result.type.ndim for result in with_right_types([lstsq(x, y, -1.0)[0], x])]
    [1, 2]
    """
    if not any(type(core_op(n.op)) in _CORRECTIONS for n in applys_between([], results)):
        return results
    given = [x for x in graph_inputs(results) if not isinstance(x, Constant)]
    fgraph = FunctionGraph(given, results, copy_inputs=False, copy_orphans=False)
    correct_all(fgraph, range(len(results)))
    return list(fgraph.outputs)


def correct_all(fgraph: FunctionGraph, results: Sequence[int]) -> None:
    """Correct the types in a graph and its loops, in place.

    Parameters
    ----------
    fgraph
        Graph.
    results
        Positions of the outputs that may change their type.
    """
    if not any(map(_may_be_wrong, ops_of(fgraph))):
        return
    while functions := [n for n in fgraph.toposort() if _is_wrong_inside(n, OpFromGraph)]:
        for node in functions:
            new = inline_ofg_node(node)
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)), reason="correct_types")
    for node in fgraph.toposort():
        correct = _CORRECTIONS.get(type(core_op(node.op)))
        corrected = correct(node) if correct else None
        if corrected is not None:
            _replace(fgraph, node, corrected, results)
        elif _is_wrong_inside(node, Scan):
            loop = with_inner_graph(node.op, lambda inner: correct_all(inner, []))
            new = loop.make_node(*node.inputs).outputs
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)), reason="correct_types")


def _is_wrong_inside(node: Apply, kind: type[Op]) -> bool:
    """Return whether an Op of a kind has an Op in its inner graphs whose types are corrected."""
    return isinstance(node.op, kind) and any(
        type(core_op(inner.op)) in _CORRECTIONS for inner in inner_nodes(node.op)
    )


def _replace(
    fgraph: FunctionGraph, node: Apply, corrected: Sequence[Variable], results: Sequence[int]
) -> None:
    """Replace the results of a node, and the results of the nodes that depend on their types.

    The node is left if one of these does not take the right type, or is a result that keeps its
    own.
    """
    for inner in applys_between(node.inputs, corrected):
        copy_stack_trace(node.outputs, inner.outputs)
    pairs = list(zip(node.outputs, corrected, strict=True))
    same = [(old, new) for old, new in pairs if old.type.is_super(new.type)]
    known = _recorded([(old, new) for old, new in pairs if not old.type.is_super(new.type)])
    for other in fgraph.toposort():
        if known.keys().isdisjoint(other.inputs):
            continue
        made = _made_again(other, known)
        if made is None:
            return
        known |= _recorded(zip(other.outputs, made, strict=True))
    kept = {output for i, output in enumerate(fgraph.outputs) if i not in results}
    if any(not old.type.is_super(known[old].type) for old in kept & known.keys()):
        return
    fgraph.replace_all(list(_recorded(same).items()), import_missing=True, reason="correct_types")
    for old, new in known.items():
        for client, i in list(fgraph.clients[old]):
            if isinstance(client.op, Output):
                fgraph.change_node_input(client, i, new, check=False, import_missing=True)


def _recorded(pairs: Iterable[tuple[Variable, Variable]]) -> dict[Variable, Variable]:
    """Return new results by the old ones, and give them the names and the user's lines of these."""
    replaced = dict(pairs)
    for old, new in replaced.items():
        new.name = old.name
        copy_stack_trace(old, new)
    return replaced


def _made_again(node: Apply, known: dict[Variable, Variable]) -> Sequence[Variable] | None:
    """Return a node's results for new input types, or None if the node refuses the types."""
    pairs = [(x, known.get(x, x)) for x in node.inputs]
    inputs = [new for _, new in pairs]
    is_moved = isinstance(node.op, _MOVING)
    if not is_moved and any(_is_complex(old) != _is_complex(new) for old, new in pairs):
        return None
    if isinstance(core_op(node.op), Dot):
        # That of PyTensor takes matrices only, its values are those of NumPy.
        return [pt.matmul(*inputs)]
    try:
        results: list[Variable] = node.clone_with_new_inputs(inputs, strict=False).outputs
    except (AssertionError, IndexError, TypeError, ValueError):
        return None
    return results


def _is_complex(x: Variable) -> bool:
    return isinstance(x, TensorVariable) and x.type.dtype.startswith("complex")


def _least_squares(node: Apply) -> Sequence[Variable] | None:
    """Return the results for a vector, which PyTensor takes for a matrix, or of complex numbers."""
    x, y, rcond = node.inputs
    is_complex = _is_complex(x) or _is_complex(y)
    op = ComplexLstsq() if is_complex else node.op
    if y.type.ndim != 1:
        return op.make_node(x, y, rcond).outputs if is_complex else None
    solution, *others = op(x, y[:, None], rcond)
    return [solution[:, 0], *others]


def _solution(node: Apply) -> Sequence[Variable] | None:
    """Return solutions that PyTensor takes for matrices, or for integers."""
    x, y = (_as_float(operand) for operand in node.inputs)
    matrix, sizes = matrix_to_solve(x, y, node.op.axes)
    found = pt.linalg.solve(matrix, y.ravel(), b_ndim=1).reshape(sizes, ndim=len(sizes))
    return None if found.type.in_same_class(node.outputs[0].type) else [found]


def _inverse(node: Apply) -> Sequence[Variable] | None:
    """Return inverses of integers, which PyTensor takes for integers."""
    (x,) = node.inputs
    return None if _as_float(x) is x else node.op.make_node(_as_float(x)).outputs


def _as_float(x: TensorVariable) -> TensorVariable:
    return x if x.type.dtype.startswith(("float", "complex")) else x.astype("float64")


def _eigenvectors(node: Apply) -> Sequence[Variable] | None:
    """Return eigenvalues and eigenvectors of complex matrices, whose vectors are complex."""
    if not any(map(_is_complex, node.inputs)):
        return None
    signature = ",".join(["(m,m)"] * len(node.inputs)) + "->(m),(m,m)"
    op = Blockwise(HermitianEigh(core_op(node.op).lower), signature=signature)
    return op.make_node(*node.inputs).outputs


_CORRECTIONS: dict[type[Op], Callable[[Apply], Sequence[Variable] | None]] = {
    Choose: chosen_of_any_shape,
    Eigh: _eigenvectors,
    Lstsq: _least_squares,
    TensorInv: _inverse,
    TensorSolve: _solution,
}
