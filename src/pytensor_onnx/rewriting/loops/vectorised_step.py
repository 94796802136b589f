"""Values of the graph within a loop, computed for all of its steps at once."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar, scalar_from_tensor
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    IncSubtensor,
)
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.loops.loop_check_ops import INDEXING, FirstRows, StepIndex
from pytensor_onnx.rewriting.engine.blockwise_to_batch import has_own_slices, takes_a_loop
from pytensor_onnx.rewriting.loops.changed_scan import loop_like
from pytensor_onnx.rewriting.loops.row_buffers import buffer_of_rows, swapped, written_rows

_WRITING = (IncSubtensor, AdvancedIncSubtensor)


class Rows:
    """Values of an inner graph for all rows at once.

    Attributes
    ----------
    size
        Number of rows.
    loop
        Name of the loop over the rows.
    known
        The new variable for each variable of the inner graph, as far as known.
    batched
        The variables that differ between rows. Their new variables have a leading axis.
    """

    def __init__(self, size: Variable, loop: str) -> None:
        self.size, self.loop = size, loop
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
                return _batched_scan(node, inputs, is_row, self)
            case FirstRows():
                if is_row[1]:
                    return None
                return [(swapped(node.op(swapped(inputs[0]), inputs[1])), True)]
            case CheckAndRaise():
                value, *conditions = inputs
                # Without a row, nothing is checked.
                all_hold = [
                    pt.all(x) if row else pt.or_(x, pt.eq(self.size, 0))
                    for x, row in zip(conditions, is_row[1:], strict=True)
                ]
                return [(node.op(value, *all_hold), is_row[0])]
            case ScalarFromTensor() | TensorFromScalar():
                return [(inputs[0], True)]
        n_arrays = 1 + isinstance(node.op, _WRITING)
        if isinstance(node.op, INDEXING) and any(is_row[n_arrays:]):
            if has_own_slices(node.op, node.inputs, self.batched):
                return None
            return _vectorized(node, inputs, is_row, self.loop)
        if isinstance(node.op, IncSubtensor):
            return [(written_rows(node, inputs, is_row, self.size), True)]
        return _vectorized(node, inputs, is_row)


def _vectorized(
    node: Apply, inputs: Sequence[Variable], is_row: Sequence[bool], loop: str | None = None
) -> list[tuple[Variable, bool]] | None:
    """Return the outputs of a node for all rows, None if this requires a loop.

    With the name of a loop, indices are marked, so that an error of one names the loop.
    """
    if not all(isinstance(x.type, TensorType) for x in node.outputs):
        return None
    places, given = list(inputs), {}
    for k, (old, new, row) in enumerate(zip(node.inputs, inputs, is_row, strict=True)):
        if row:
            place = pt.tensor(dtype=old.type.dtype, shape=getattr(old.type, "shape", ()))
            is_value = k <= isinstance(node.op, _WRITING)
            marked = place if loop is None or is_value else StepIndex(loop)(place)
            is_tensor = isinstance(old.type, TensorType)
            places[k] = marked if is_tensor else scalar_from_tensor(marked)
            given[place] = new
    core = _with_inputs(node, places)
    try:
        results = vectorize_graph(core, given)
    except (NotImplementedError, TypeError, ValueError):
        return None
    if any(takes_a_loop(x) for x in toposort(results, blockers=inputs)):
        return None
    return [(x, x.type.ndim > y.type.ndim) for x, y in zip(results, core, strict=True)]


def _batched_scan(
    node: Apply, given: list[Variable], is_row: list[bool], rows: Rows
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
    inner = op.fgraph.unfreeze()
    found = _with_rows_of_states(node, inner, given, is_row, rows)
    if found is None:
        return None
    step, given, is_row = found
    outputs = list(inner.outputs)
    rows_of_output: dict[int, bool] = {}
    for i, ks in results_of.items():
        differs = is_row[i] or any(inner.outputs[k] in step.batched for k in ks)
        rows_of_output[places["outer_out_from_outer_inp"][i]] = differs
        for k in ks:
            x = inner.outputs[k]
            outputs[k] = step.in_rows(x) if differs else step.known.get(x, x)
    scan = loop_like(op, [step.known[x] for x in inner.inputs], outputs)
    results = scan(
        *(
            swapped(x) if row and i < _n_traced(op) else x
            for i, (x, row) in enumerate(zip(given, is_row, strict=True))
        ),
        return_list=True,
    )
    n_stacked = len(results) - op.info.n_untraced_sit_sot
    for k in range(n_stacked - op.info.n_nit_sot, n_stacked):
        if rows_of_output[k]:
            results[k] = _of_rows(results[k], rows.size)
    return [
        (swapped(x) if rows_of_output[k] and k < n_stacked else x, rows_of_output[k])
        for k, x in enumerate(results)
    ]


def _n_traced(op: Scan) -> int:
    """Return the number of inputs before the states without a trace: arrays of steps."""
    info = op.info
    return 1 + info.n_seqs + info.n_mit_mot + info.n_mit_sot + info.n_sit_sot


def _with_rows_of_states(
    node: Apply, inner: FunctionGraph, given: list[Variable], is_row: list[bool], rows: Rows
) -> tuple[Rows, list[Variable], list[bool]] | None:
    """Return a step for all rows, and the inputs of its loop with the states that differ repeated.

    None if the step needs a loop over the rows. A state that differs between rows may make other
    states differ, so that the step is computed until no further state does.
    """
    op, given, is_row = node.op, list(given), list(is_row)
    places = op.get_oinp_iinp_iout_oout_mappings()
    inputs_of, results_of = places["inner_inp_from_outer_inp"], places["inner_out_from_outer_inp"]
    while True:
        step = _step_of_rows(inner, given, is_row, inputs_of, rows.loop)
        if not all(x in step.known or isinstance(x, Constant) for x in inner.outputs):
            return None
        grown = [
            i
            for i, ks in results_of.items()
            if inputs_of[i] and not is_row[i] and any(inner.outputs[k] in step.batched for k in ks)
        ]
        if not grown:
            return step, given, is_row
        for i in grown:
            is_traced = i < _n_traced(op)
            repeat = _repeated_steps if is_traced else _repeated
            given[i], is_row[i] = repeat(given[i], rows.size), True


def _repeated_steps(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array of steps, repeated along a new leading axis."""
    return swapped(buffer_of_rows(x, size))


def _step_of_rows(
    inner: FunctionGraph,
    given: Sequence[Variable],
    is_row: Sequence[bool],
    inputs_of: dict[int, list[int]],
    loop: str,
) -> Rows:
    """Return the values of a step, for the inputs of the loop that differ between rows."""
    inputs = list(inner.inputs)
    batched = {j for i, row in enumerate(is_row) if row for j in inputs_of[i]}
    n_rows = next(x.type.shape[0] for x, row in zip(given, is_row, strict=True) if row)
    new = [
        x.type.clone(shape=(n_rows, *x.type.shape))() if j in batched else x.type()
        for j, x in enumerate(inputs)
    ]
    step = Rows(new[min(batched)].shape[0], loop)
    for j, x in enumerate(inputs):
        step.add(x, new[j], is_row=j in batched)
    for node in inner.toposort():
        step.add_node(node)
    return step


def _repeated(x: TensorVariable, size: Variable) -> TensorVariable:
    """Return an array repeated along a new leading axis."""
    return pt.alloc(x, size, *x.shape)


def _of_rows(trace: TensorVariable, size: Variable) -> TensorVariable:
    """Return a trace with the number of rows on its second axis, also if it has no steps.

    A loop of zero steps does not know the sizes of the results of a step.
    """
    return trace.reshape((trace.shape[0], size, *trace.shape[2:]))


def _with_inputs(node: Apply, inputs: Sequence[Variable]) -> list[Variable]:
    return node.clone_with_new_inputs(list(inputs), strict=False).outputs
