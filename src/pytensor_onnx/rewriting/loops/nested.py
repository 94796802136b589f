"""Run the loops within a loop as one loop, each step of which computes all rows.

A function of rows that holds a recurrence is a Scan in a Scan: as many steps as the array has
elements. The steps of different rows are independent, and are computed together.
"""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.loop_checks import INDEXING, FirstRows
from pytensor_onnx.rewriting.loops.batches import takes_a_loop
from pytensor_onnx.rewriting.loops.inner_graphs import loop_like
from pytensor_onnx.rewriting.loops.products import with_sequences
from pytensor_onnx.rewriting.loops.row_buffers import buffer_of_rows, swapped, written_rows

_WRITING = (IncSubtensor, AdvancedIncSubtensor)


@node_rewriter([Scan])
def batch_inner_loops(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """Move inner loops that depend on no state out of a loop, for all of its steps at once.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> def last(row):
    ...     steps = pytensor.scan(
    ...         lambda e, y: pt.tanh(e + y), [row], [pt.zeros(())], return_updates=False
    ...     )
    ...     return steps[-1]
    >>> x = pt.matrix("x")
    >>> f = pytensor.function([x], pytensor.scan(last, [x], return_updates=False), mode="ONNX")
    >>> (scan,) = (node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    >>> any(isinstance(node.op, Scan) for node in scan.fgraph.toposort())
    False
    """
    op = node.op
    if op.info.as_while or not any(isinstance(x.op, Scan) for x in op.fgraph.apply_nodes):
        return None
    inner = op.fgraph.unfreeze()
    n_steps = node.inputs[0]
    rows = _Rows(n_steps)
    for x, sequence in zip(op.inner_seqs(inner.inputs), op.outer_seqs(node.inputs), strict=True):
        rows.add(x, sequence[:n_steps], is_row=True)
    for x, constant in zip(
        op.inner_non_seqs(inner.inputs), op.outer_non_seqs(node.inputs), strict=True
    ):
        rows.add(x, constant, is_row=False)
    for inner_node in inner.toposort():
        rows.add_node(inner_node)
    if not any(isinstance(x.owner.op, Scan) for x in rows.batched if x.owner is not None):
        return None
    return _replaced(node, inner, rows)


def _replaced(node: Apply, inner: FunctionGraph, rows: "_Rows") -> dict[Variable, Variable]:
    """Return the outputs of a loop, with the values that are computed for all steps at once."""
    op = node.op
    finished = {
        old: rows.known[x]
        for old, x, size in zip(
            op.outer_nitsot_outs(node.outputs),
            op.inner_nitsot_outs(inner.outputs),
            op.outer_nitsot(node.inputs),
            strict=True,
        )
        if x in rows.batched and size is node.inputs[0]
    }
    if len(finished) == len(node.outputs):
        results = finished
    else:
        outputs = set(inner.outputs)
        used = {
            x: rows.known[x]
            for x in rows.batched.difference(op.inner_seqs(inner.inputs))
            if x in outputs
            or any(y not in rows.known for c, _ in inner.clients[x] for y in c.outputs)
        }
        results = {**with_sequences(node, inner, used), **finished}
    for old, new in results.items():
        copy_stack_trace(old, new)
    return {old: _with_shape_of(old, x) for old, x in results.items()}


def _with_shape_of(old: Variable, new: TensorVariable) -> Variable:
    """Return a variable with all static sizes of another.

    Sizes that are not known are given too: PyTensor cannot index a shape without some.
    """
    if old.type.is_super(new.type):
        return new
    sizes = [new.shape[k] if n is None else n for k, n in enumerate(old.type.shape)]
    return pt.specify_shape(new, sizes)


class _Rows:
    """Values of an inner graph for all rows at once.

    Attributes
    ----------
    size
        Number of rows.
    known
        The new variable for each variable of the inner graph, as far as known.
    batched
        The variables that differ between rows. Their new variables have a leading axis.
    """

    def __init__(self, size: Variable) -> None:
        self.size = size
        self.known: dict[Variable, Variable] = {}
        self.batched: set[Variable] = set()

    def add(self, old: Variable, new: Variable, *, is_row: bool) -> None:
        """Add a variable."""
        self.known[old] = new
        if is_row:
            self.batched.add(old)

    def add_node(self, node: Apply) -> None:
        """Add the outputs of a node, unless they need a loop over the rows or unknown values."""
        if not all(x in self.known or isinstance(x, Constant) for x in node.inputs):
            return
        inputs = [self.known.get(x, x) for x in node.inputs]
        if self.batched.isdisjoint(node.inputs):
            for old, new in zip(node.outputs, _with_inputs(node, inputs), strict=True):
                self.add(old, new, is_row=False)
            return
        found = self._results(node, inputs, [x in self.batched for x in node.inputs])
        for old, (new, is_row) in zip(node.outputs, found or (), strict=found is not None):
            self.add(old, new, is_row=is_row)

    def in_rows(self, old: Variable) -> TensorVariable:
        """Return a known value for all rows, repeated if it is the same for each."""
        new = self.known.get(old, old)
        return new if old in self.batched else _repeated(new, self.size)

    def _results(
        self, node: Apply, inputs: list[Variable], is_row: list[bool]
    ) -> list[tuple[Variable, bool]] | None:
        """Return the outputs of a node and whether they differ between rows, None if unknown."""
        match node.op:
            case Shape():
                return [(inputs[0].shape[1:], False)]
            case Shape_i(i=axis):
                return [(Shape_i(axis + 1)(inputs[0]), False)]
            case SpecifyShape():
                rows, *sizes = inputs
                known = [
                    n if isinstance(n.type, TensorType) else rows.shape[k + 1]
                    for k, n in enumerate(sizes)
                ]
                return [(pt.specify_shape(rows, [rows.shape[0], *known]), True)]
            case Scan():
                return _batched_scan(node, inputs, is_row, self.size)
            case FirstRows():
                if is_row[1]:
                    return None
                return [(swapped(node.op(swapped(inputs[0]), inputs[1])), True)]
            case CheckAndRaise():
                value, *conditions = inputs
                all_hold = [
                    pt.all(x) if row else x for x, row in zip(conditions, is_row[1:], strict=True)
                ]
                return [(node.op(value, *all_hold), is_row[0])]
        if isinstance(node.op, INDEXING) and any(is_row[1 + isinstance(node.op, _WRITING) :]):
            return None
        if isinstance(node.op, IncSubtensor):
            return [(written_rows(node, inputs, is_row, self.size), True)]
        return _vectorized(node, inputs, is_row)


def _vectorized(
    node: Apply, inputs: Sequence[Variable], is_row: Sequence[bool]
) -> list[tuple[Variable, bool]] | None:
    """Return the outputs of a node for all rows, None if this requires a loop."""
    varying = [x for x, row in zip(node.inputs, is_row, strict=True) if row]
    if not all(isinstance(x.type, TensorType) for x in (*varying, *node.outputs)):
        return None
    places = [
        old.type() if row else new
        for old, new, row in zip(node.inputs, inputs, is_row, strict=True)
    ]
    given = {place: new for place, new, row in zip(places, inputs, is_row, strict=True) if row}
    core = _with_inputs(node, places)
    try:
        results = vectorize_graph(core, given)
    except (NotImplementedError, TypeError, ValueError):
        return None
    if any(takes_a_loop(x) for x in toposort(results, blockers=inputs)):
        return None
    return [(x, x.type.ndim > y.type.ndim) for x, y in zip(results, core, strict=True)]


def _batched_scan(
    node: Apply, given: list[Variable], is_row: list[bool], size: Variable
) -> list[tuple[Variable, bool]] | None:
    """Return the outputs of a loop that computes all rows in each step.

    A state differs between rows if its first value does, or a value that it depends on.
    """
    op = node.op
    places = op.get_oinp_iinp_iout_oout_mappings()
    inputs_of, results_of = places["inner_inp_from_outer_inp"], places["inner_out_from_outer_inp"]
    if (
        op.info.as_while
        or is_row[0]
        or any(row and not inputs_of[i] for i, row in enumerate(is_row))
    ):
        return None
    n_traced = 1 + op.info.n_seqs + op.info.n_mit_mot + op.info.n_mit_sot + op.info.n_sit_sot
    inner = op.fgraph.unfreeze()
    given, is_row = list(given), list(is_row)
    while True:
        step = _step_of_rows(inner, given, is_row, inputs_of)
        if not all(x in step.known or isinstance(x, Constant) for x in inner.outputs):
            return None
        found = [any(inner.outputs[k] in step.batched for k in ks) for ks in results_of.values()]
        grown = [
            i
            for i, row in zip(results_of, found, strict=True)
            if row and not is_row[i] and inputs_of[i]
        ]
        if not grown:
            break
        for i in grown:
            traced = i < n_traced
            repeated = (
                swapped(buffer_of_rows(given[i], size)) if traced else _repeated(given[i], size)
            )
            given[i], is_row[i] = repeated, True
    outputs = list(inner.outputs)
    rows_of_output: dict[int, bool] = {}
    for i, row in zip(results_of, found, strict=True):
        rows_of_output[places["outer_out_from_outer_inp"][i]] = row or is_row[i]
        for k in results_of[i]:
            x = inner.outputs[k]
            outputs[k] = step.in_rows(x) if row or is_row[i] else step.known.get(x, x)
    scan = loop_like(op, [step.known[x] for x in inner.inputs], outputs)
    results = scan(
        *(
            swapped(x) if row and i < n_traced else x
            for i, (x, row) in enumerate(zip(given, is_row, strict=True))
        ),
        return_list=True,
    )
    n_stacked = len(results) - op.info.n_untraced_sit_sot
    return [
        (swapped(x) if rows_of_output[k] and k < n_stacked else x, rows_of_output[k])
        for k, x in enumerate(results)
    ]


def _step_of_rows(
    inner: FunctionGraph,
    given: Sequence[Variable],
    is_row: Sequence[bool],
    inputs_of: dict[int, list[int]],
) -> _Rows:
    """Return the values of a step, for the inputs of the loop that differ between rows."""
    inputs = list(inner.inputs)
    batched = {j for i, row in enumerate(is_row) if row for j in inputs_of[i]}
    n_rows = next(x.type.shape[0] for x, row in zip(given, is_row, strict=True) if row)
    new = [
        x.type.clone(shape=(n_rows, *x.type.shape))() if j in batched else x.type()
        for j, x in enumerate(inputs)
    ]
    step = _Rows(new[min(batched)].shape[0])
    for j, x in enumerate(inputs):
        step.add(x, new[j], is_row=j in batched)
    for node in inner.toposort():
        step.add_node(node)
    return step


def _repeated(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array repeated along a new leading axis."""
    return pt.alloc(x, size, *x.shape)


def _with_inputs(node: Apply, inputs: Sequence[Variable]) -> list[Variable]:
    return node.clone_with_new_inputs(list(inputs), strict=False).outputs
