"""Types of cumulative operations, and guards of reductions."""

import sys
from collections.abc import Sequence

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, Join, cast
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Prod, ProdWithoutZeros, Sum, mul, true_div
from pytensor.tensor.rewriting.extra_ops import local_Unique_lift
from pytensor.tensor.rewriting.math import (
    local_careduce_of_alloc,
    local_sum_of_neg_to_neg_of_sum,
    local_sum_prod_of_mul_or_div,
    local_sumsqr2dot,
)
from pytensor.tensor.rewriting.uncanonicalize import local_max_to_min

from pytensor_onnx.rewriting.elementwise.arithmetic_guards import takes_floats
from pytensor_onnx.rewriting.engine.predicates import Guard, guard, made_by
from pytensor_onnx.rewriting.engine.walkers import ops_of, with_inner_graph
from pytensor_onnx.rules import rewrites_graphs

# Give sums of narrow integers NumPy's and SciPy's dtype in place of PyTensor's.
#
# These are cumulative sums and products, and sums of sparse matrices.


@rewrites_graphs(
    family="reductions",
    purpose="correctness",
    identity="type of cumsum(x) = type of its computed value",
    requires="x of bool or a narrow integer",
    begins_at=("CumOp", "Sum of sparse matrices"),
    measured="docs/project/upstream.md#results-have-another-dtype-or-rank-than-their-type",
)
def widen_cumulative(fgraph: FunctionGraph) -> None:
    """Give cumulative sums and sums of sparse matrices the dtype of PyTensor's computed values.

    PyTensor's types say that a cumulative sum of bool is bool and of int8 int8; its Python
    implementation and mode NUMBA return int64, as NumPy does. The same holds for the sum of a
    sparse matrix; mode NUMBA returns int8 for its rows and columns. Selections and reshapes of the
    result, and the results of the function, get the wide type too. Elementwise operations compute
    with the wide values and return their declared dtype, as do the steps of a loop and updates of
    shared variables. Functions of the model that contain such operations are inlined.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x = pt.vector("x", dtype="bool")
    >>> pytensor.function([x], pt.cumsum(x)[::-1], mode="ONNX")([True, True, True])
    array([3, 2, 1])
    """
    if not any(_may_accumulate(op) for op in ops_of(fgraph)):
        return
    updated = set(fgraph.update_mapping or ())
    widen_all(fgraph, [i for i in range(len(fgraph.outputs)) if i not in updated])


def widen_all(fgraph: FunctionGraph, results: Sequence[int]) -> None:
    """Widen a graph, its functions and its loops, in place.

    Parameters
    ----------
    fgraph
        Graph.
    results
        Positions of the outputs that may change their dtype.
    """
    while nodes := [n for n in fgraph.toposort() if _contains_narrow(n)]:
        for node in nodes:
            new = inline_ofg_node(node) if isinstance(node.op, OpFromGraph) else _widened_loop(node)
            fgraph.replace_all(list(zip(node.outputs, new, strict=True)), reason="widen_cumulative")
    _widen(fgraph, results)


def _widened_loop(node: Apply) -> list[Variable]:
    """Return the outputs of a loop that computes with wide values in its steps."""
    loop = with_inner_graph(node.op, lambda inner: widen_all(inner, []))
    return loop.make_node(*node.inputs).outputs


def _contains_narrow(node: Apply) -> bool:
    if not isinstance(node.op, OpFromGraph | Scan):
        return False
    return any(_is_narrow(n) or _contains_narrow(n) for n in node.op.fgraph.toposort())


def _may_accumulate(op: Op) -> bool:
    return isinstance(op, OpFromGraph | Scan) or _accumulates(op)


def _is_narrow(node: Apply) -> bool:
    return _accumulates(node.op) and _wide(node.inputs[0].type.dtype) is not None


def _accumulates(op: Op) -> bool:
    # Importing the module of a graph without sparse matrices would load SciPy's.
    module = sys.modules.get("pytensor.sparse.math")
    return isinstance(op, CumOp) or (module is not None and isinstance(op, module.SpSum))


def _wide(dtype: str) -> str | None:
    """Return the dtype in which NumPy accumulates a narrow integer, None for other dtypes."""
    if not dtype.startswith(("bool", "int", "uint")):
        return None
    accumulated = np.cumsum(np.zeros(1, dtype)).dtype.name
    return None if accumulated == dtype else accumulated


def _widen(fgraph: FunctionGraph, results: Sequence[int]) -> None:
    """Widen a graph in place; the outputs at the given positions may change their dtype."""
    declared: dict[Variable, str] = {}
    for node in fgraph.toposort():
        if _is_narrow(node):
            operand = node.inputs[0].astype(_wide(node.inputs[0].type.dtype))
            fgraph.change_node_input(node, 0, operand, check=False)
            _retype(node.op.make_node(operand), node, declared)
        elif not declared.keys().isdisjoint(node.inputs):
            _follow(fgraph, node, declared)
    for output in set(fgraph.outputs) & declared.keys():
        for client, _ in list(fgraph.clients[output]):
            if isinstance(client.op, Output) and client.op.idx not in results:
                fgraph.change_node_input(client, 0, _declared(output, declared), check=False)


def _follow(fgraph: FunctionGraph, node: Apply, declared: dict[Variable, str]) -> None:
    """Give the users of wide values matching types."""
    made = _made_again(node)
    if made is None:
        for i, x in enumerate(node.inputs):
            if x in declared:
                fgraph.change_node_input(node, i, _declared(x, declared), check=False)
    elif not isinstance(node.op, Elemwise):
        _retype(made, node, declared)
    else:
        for old, new in zip(node.outputs, made.outputs, strict=True):
            if new.type.dtype != old.type.dtype:
                narrow = cast(new, old.type.dtype)
                narrow.name = old.name
                fgraph.replace(old, narrow, reason="widen_cumulative")


def _declared(x: Variable, declared: dict[Variable, str]) -> Variable:
    narrow = cast(x, declared[x])
    narrow.name = x.name
    return narrow


def _made_again(node: Apply) -> Apply | None:
    """Return the node remade for the current types of its inputs, or None if refused.

    Reductions and joins get the dtype of their result.
    """
    if isinstance(node.op, HasInnerGraph | Join):
        return None
    try:
        made = node.op.make_node(*node.inputs)
    except (TypeError, ValueError):
        return None
    is_reduced = isinstance(node.op, CAReduce)
    return None if is_reduced and made.outputs[0].type != node.outputs[0].type else made


def _retype(made: Apply, node: Apply, declared: dict[Variable, str]) -> None:
    for old, new in zip(node.outputs, made.outputs, strict=True):
        if new.type != old.type:
            declared[old] = old.type.dtype
            old.type = new.type


def may_be_reduced_once(node: Apply) -> bool:
    """Return whether the reduction of a repeated number may be computed from the number.

    With zero repetitions, a maximum is an error and `any` is false; a sum is zero, but the product
    of the number and the count is not if the number is not finite. A float that is summed into an
    integer is truncated once, at the end. The product of a uint64 and a count is float64.
    """
    x, axes = node.inputs[0], node.op.axis
    repeated = made_by(x, Alloc)
    if repeated is None:
        return False
    if x.type.dtype.startswith("float") and "int" in node.outputs[0].type.dtype:
        return False
    combines = isinstance(node.op, Sum | Prod | ProdWithoutZeros)
    if combines and x.type.dtype == "uint64":
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes) or getattr(node.op, "initial", False):
        return True
    value = repeated.inputs[0]
    is_finite = isinstance(value, Constant) and np.isfinite(value.data).all()
    is_sum = isinstance(node.op, Sum) and (is_finite or not value.dtype.startswith("float"))
    return is_sum or isinstance(node.op, Prod | ProdWithoutZeros)


def has_common_factor(node: Apply) -> bool:
    """Return whether a factor or divisor may be moved out of a sum.

    Integer products may wrap around before they are added, and float16 overflows in the sum. A sum
    over zero elements is zero, whatever the factor. For a product, the power of the factor may
    overflow where the product does not.
    """
    x, axes = node.inputs[0], node.op.axis
    dtypes = {x.type.dtype, node.outputs[0].type.dtype}
    is_product = x.owner is not None and x.owner.op in (mul, true_div)
    if not isinstance(node.op, Sum) or not is_product or not dtypes <= {"float32", "float64"}:
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes):
        return True
    axes = range(x.type.ndim) if axes is None else axes
    factors = x.owner.inputs[1:] if x.owner.op == true_div else x.owner.inputs
    outer = [f for f in factors if all(f.type.broadcastable[axis] for axis in axes)]
    return all(isinstance(f, Constant) and _is_usual(f, x.owner.op) for f in outer)


def _is_usual(factor: Constant, op: Op) -> bool:
    with np.errstate(divide="ignore"):
        return bool(np.isfinite(1 / factor.data if op == true_div else factor.data).all())


def is_integer(node: Apply) -> bool:
    """Return whether a result is a signed integer, whose smallest value has no negative."""
    return node.outputs[0].type.dtype.startswith("int")


def has_sign(node: Apply) -> bool:
    """Return whether a result is no unsigned integer, whose negatives wrap around."""
    return not node.outputs[0].type.dtype.startswith("uint")


def is_known_to_take_elements(node: Apply) -> bool:
    """Return whether no size of an operand may be zero: with zero repetitions it has no values."""
    return all(node.inputs[0].type.shape)


_minimum = guard(
    local_max_to_min,
    is_integer,
    family="reductions",
    purpose="correctness",
    identity="-max(-x) = min(x)",
    requires="no unsigned integers; of signed ones at once, as the smallest has no negative",
    measured="docs/project/upstream.md#the-minimum-of-the-smallest-integer-is-wrong",
)
minimum_of_integers = _minimum.guarded()
GUARDS = (
    guard(
        local_careduce_of_alloc,
        may_be_reduced_once,
        family="reductions",
        purpose="correctness",
        identity="sum(alloc(x, n)) = n * x",
        requires="elements, or finite x; no truncation of each float",
        measured="docs/project/upstream.md#reductions-of-multiples-and-of-repeated-numbers-differ",
    ),
    guard(
        local_sum_prod_of_mul_or_div,
        has_common_factor,
        family="reductions",
        purpose="correctness",
        identity="sum(c * x) = c * sum(x)",
        requires="float32 or float64, and elements or a usual c",
        measured="docs/project/upstream.md#reductions-of-multiples-and-of-repeated-numbers-differ",
    ),
    guard(
        local_sum_of_neg_to_neg_of_sum,
        takes_floats,
        family="reductions",
        purpose="correctness",
        identity="sum(-x) = -sum(x)",
        requires="floats, as unsigned integers wrap around",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
    guard(
        local_sumsqr2dot,
        takes_floats,
        family="reductions",
        purpose="correctness",
        identity="sum(x ** 2) = dot(x, x)",
        requires="floats",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
    guard(
        local_Unique_lift,
        is_known_to_take_elements,
        family="sorting",
        purpose="correctness",
        identity="unique(repeat(x, n)) = unique(x)",
        requires="no size may be zero",
        measured="docs/project/upstream.md#the-unique-values-of-no-repetitions-are-not-empty",
    ),
    Guard(local_max_to_min, has_sign, _minimum.rule),
)
