"""Outputs of a Scan and the history of its states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import infer_shape
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar.basic import Add, Minimum, ScalarOp
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import IncSubtensor
from pytensor.tensor.type import TensorType, lscalar

from pytensor_onnx.dispatch.registry.graphs import convert_expressions
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.rewriting.loops.loop_lengths import unwrapped


def written_to_fresh_buffer(variable: Variable) -> Variable | None:
    """Return the rows of the first `set_subtensor(empty[:k], rows)` on a buffer, for each k."""
    node = variable.owner
    if node is None or not isinstance(node.op, IncSubtensor) or not node.op.set_instead_of_inc:
        return None
    empty, rows, *bounds = node.inputs
    (index,) = node.op.idx_list if len(node.op.idx_list) == 1 else (None,)
    starts_first = isinstance(index, slice) and index.start is None and index.step is None
    if not starts_first or empty.owner is None or not isinstance(empty.owner.op, AllocEmpty):
        return None
    stop = bounds[0] if len(bounds) == 1 else None
    n_rows = rows.type.shape[0] if rows.type.ndim else None
    is_whole = isinstance(stop, Constant) and n_rows == int(stop.data)
    return rows if is_whole else None


def buffer_size(variable: Variable) -> Variable | None:
    """Return the length of a buffer that PyTensor allocated for a scan."""
    owner = variable.owner
    if owner is not None and isinstance(owner.op, IncSubtensor):
        owner = owner.inputs[0].owner
    if owner is None or not isinstance(owner.op, AllocEmpty):
        return None
    return owner.inputs[0]


def is_sum(size: Variable, n_steps: Variable, n_initial: int) -> bool:
    """Return whether an expression is the number of steps plus a constant."""
    size, n_steps = unwrapped(size), unwrapped(n_steps)
    if n_initial == 0:
        return size is n_steps
    return any(
        int(constant.data) == n_initial and other is n_steps
        for constant, other in _constant_operands(size, Add)
    )


def most_steps(size: Variable | None, n_steps: Variable, n_initial: int) -> int | None:
    """Return the constant c if a size is the minimum of c and the steps, plus a constant."""
    if size is None:
        return None
    for constant, other in _constant_operands(size, Add):
        for limit, count in _constant_operands(other, Minimum):
            if int(constant.data) == n_initial and count is unwrapped(n_steps):
                return int(limit.data)
    return None


def _constant_operands(
    variable: Variable, scalar_op: type[ScalarOp]
) -> list[tuple[Constant, Variable]]:
    """Return the constant and the other operand of a scalar operation, or nothing."""
    node = unwrapped(variable).owner
    if node is None or len(node.inputs) != 2:
        return []
    if not isinstance(getattr(node.op, "scalar_op", node.op), scalar_op):
        return []
    first, second = map(unwrapped, node.inputs)
    pairs = [(first, second), (second, first)]
    return [(a, b) for a, b in pairs if isinstance(a, Constant)]


def nearest_later(writes: Sequence[int], tap: int) -> int | None:
    """Return the nearest written offset after a tap."""
    return min((o for o in writes if o > tap), default=None)


Size = tuple[Variable, int]
"""An input of a Scan and an axis of it."""


def zeros_like_row(node: Apply, position: int) -> tuple[Variable, dict[Variable, Size]] | None:
    """Return zeros of the shape of a row of an output without recurrence.

    Parameters
    ----------
    node
        Apply node of a Scan.
    position
        Position among the outputs without recurrence.

    Returns
    -------
    tuple
        The zeros, an expression of inputs of the Scan and of sizes, and the origins of the sizes.
        None if only the steps know the shape.
    """
    op = node.op
    inner = op.fgraph.unfreeze()
    row = op.inner_nitsot_outs(inner.outputs)[position]
    origins: dict[Variable, Size] = {}
    shapes: dict[Variable, tuple[Variable, ...] | None] = {}
    for value, outer, first in _pairs(op, node, inner.inputs):
        shapes[value] = None
        if isinstance(outer.type, TensorType):
            axes = {lscalar(): (outer, axis) for axis in range(first, outer.type.ndim)}
            shapes[value] = tuple(axes)
            origins |= axes
    inputs = list(inner.inputs)
    (shape,) = infer_shape([row], inputs, [shapes[x] for x in inputs])
    known = dict(zip(op.inner_non_seqs(inputs), op.outer_non_seqs(node.inputs), strict=True))
    zeros = pt.alloc(np.zeros((), row.type.dtype), *shape)
    known |= {
        read.outputs[0]: sizes[read.op.i]
        for read in toposort([zeros])
        if isinstance(read.op, Shape_i) and (sizes := shapes.get(read.inputs[0])) is not None
    }
    (zeros,) = graph_replace([zeros], known, strict=False)
    used = set(ancestors([zeros], blockers=node.inputs))
    if not used.isdisjoint(inputs):
        return None
    return zeros, {size: origin for size, origin in origins.items() if size in used}


def _pairs(
    op: Scan, node: Apply, inner: list[Variable]
) -> Iterator[tuple[Variable, Variable, int]]:
    """Yield inner inputs, the outer ones they come from, and the first axis that both have."""
    outer = node.inputs
    for groups, buffers in (
        (op.inner_mitmot_grouped(inner), op.outer_mitmot(outer)),
        (op.inner_mitsot_grouped(inner), op.outer_mitsot(outer)),
    ):
        for group, buffer in zip(groups, buffers, strict=True):
            yield from ((value, buffer, 1) for value in group)
    elements = chain(op.inner_seqs(inner), op.inner_sitsot(inner))
    rows = chain(op.outer_seqs(outer), op.outer_sitsot(outer))
    yield from ((value, whole, 1) for value, whole in zip(elements, rows, strict=True))
    values = chain(op.inner_untraced_sit_sot(inner), op.inner_non_seqs(inner))
    wholes = chain(op.outer_untraced_sit_sot(outer), op.outer_non_seqs(outer))
    yield from ((value, whole, 0) for value, whole in zip(values, wholes, strict=True))


_MOST_CARRIED = 8


@dataclass
class History:
    """Latest values of one output, newest first, carried from step to step.

    For some outputs these are all values that are kept, and nothing is stacked.
    """

    initial: list[ir.Value]
    is_kept: bool = False
    past: list[ir.Value] = field(default_factory=list)
    final: list[ir.Value] = field(default_factory=list)
    trace: ir.Value | None = None


class Histories:
    """Finds the initial values of the outputs of a Scan, and the values that a loop must carry.

    Parameters
    ----------
    op, node
        The Scan and its Apply node.
    build
        Builder around the loop.
    outer
        The inputs of the Scan.
    """

    def __init__(self, op: Scan, node: Apply, build: Builder, outer: list[ir.Value]) -> None:
        self.op, self.node, self.build, self.outer = op, node, build, outer

    def recurrent(self) -> list[History]:
        """Return the history of each recurrent output."""
        op, info = self.op, self.op.info
        buffers = op.outer_mitsot(self.outer) + op.outer_sitsot(self.outer)
        variables = op.outer_mitsot(self.node.inputs) + op.outer_sitsot(self.node.inputs)
        histories = []
        for buffer, variable, taps in zip(
            buffers, variables, info.mit_sot_in_slices + info.sit_sot_in_slices, strict=True
        ):
            length = -min(taps)
            initial = self._initial_rows(variable, buffer)
            source = buffer if initial is None else initial
            rows = [self._row(source, i) for i in range(length)][::-1]
            kept = self._rows_kept(buffer, variable, length)
            # Only as many rows are returned as there are values, so that any may fill up the rest.
            filling = [rows[-1]] * ((kept or length) - length)
            histories.append(History([*rows, *filling], is_kept=kept is not None))
        return histories

    def mapped(self) -> list[History | None]:
        """Return the history of each non-recurrent output, or None if the outputs are stacked."""
        sizes = self.op.outer_nitsot(self.node.inputs)
        return [self._mapped_history(size, position) for position, size in enumerate(sizes)]

    def mit_mot(self) -> list[dict[int, History]]:
        """Return, for each buffer that is read and written, the histories of its written offsets.

        The value at offset t was written by the nearest later offset o, o - t steps before.
        """
        groups = []
        for buffer, reads, writes in zip(
            self.op.outer_mitmot(self.outer),
            self.op.info.normalized_mit_mot_in_slices,
            self.op.info.normalized_mit_mot_out_slices,
            strict=True,
        ):
            depths = dict.fromkeys(writes, 0)
            for tap in reads:
                written = nearest_later(writes, tap)
                if written is not None:
                    depths[written] = max(depths[written], written - tap)
            groups.append(
                {
                    o: History([self._row(buffer, o - k) for k in range(1, depth + 1)])
                    for o, depth in depths.items()
                }
            )
        return groups

    def _rows_kept(self, buffer: ir.Value, variable: Variable, n_initial: int) -> int | None:
        """Return the number of latest values that a buffer keeps, or None if there are many."""
        dims, n_steps = dims_of(buffer), self.node.inputs[0]
        size = None if dims is None else dims[0]
        if size == n_initial:
            return n_initial
        if self.op.info.as_while:
            return None
        if isinstance(size, int) and isinstance(n_steps, Constant):
            is_filled = size <= int(n_steps.data) + n_initial
            return size if is_filled and size <= _MOST_CARRIED else None
        limit = most_steps(buffer_size(variable), n_steps, n_initial)
        return limit + n_initial if limit and limit + n_initial <= _MOST_CARRIED else None

    def _mapped_history(self, size: Variable, position: int) -> History | None:
        n_steps = self.node.inputs[0]
        if not isinstance(size, Constant):
            return None
        kept = int(size.data)
        is_filled = not isinstance(n_steps, Constant) or kept <= int(n_steps.data)
        if not 0 < kept <= (1 if self.op.info.as_while else _MOST_CARRIED) or not is_filled:
            return None
        row = zeros_like_row(self.node, position)
        if row is None:
            return None
        zeros, sizes = row
        values = dict(zip(self.node.inputs, self.outer, strict=True))
        values |= {size: self.build.size(values[x], axis) for size, (x, axis) in sizes.items()}
        (nothing,) = convert_expressions([zeros], self.build, values)
        return History([nothing] * kept, is_kept=True)

    def _initial_rows(self, variable: Variable, buffer: ir.Value) -> ir.Value | None:
        """Return the initial rows of a buffer that the graph allocates, or None if unknown.

        A value that is written to a buffer broadcasts along its rows.
        """
        written = written_to_fresh_buffer(variable)
        value = None if written is None else self.build.peek(written)
        dims, whole = dims_of(value), dims_of(buffer)
        if value is None or not dims or whole is None or len(dims) != len(whole):
            return None
        canonical = self.build.scope.dims.canonical
        if [*map(canonical, dims[1:])] == [*map(canonical, whole[1:])]:
            return value
        return self.build.Expand(
            value,
            self.build.Concat(
                self.build.ints([1]), self.build.sizes(buffer, 1, len(whole)), axis=0
            ),
        )

    def _row(self, buffer: ir.Value, position: int) -> ir.Value:
        producer = buffer.producer()
        if producer is not None and producer.op_type == "Unsqueeze":
            operand, axes = producer.inputs
            if constant_ints(axes) == [0] and operand is not None:
                return operand
        return self.build.Gather(buffer, np.int64(position), axis=0)


_END = np.iinfo(np.int64).max


class Outputs:
    """Builds the outputs of a Scan in the buffers that PyTensor allocates.

    Parameters
    ----------
    op, node
        The Scan and its Apply node.
    build
        Builder around the loop.
    n_steps
        Number of steps.
    """

    def __init__(self, op: Scan, node: Apply, build: Builder, n_steps: ir.Value) -> None:
        self.op, self.node, self.build, self.n_steps = op, node, build, n_steps

    def mit_mot(self, buffer: ir.Value, histories: dict[int, History]) -> ir.Value:
        """Return a buffer after all writes, the last write to each place winning."""
        build = self.build
        dims = dims_of(buffer)
        for offset in sorted(histories, reverse=True):
            trace = self._with_row_shape(histories[offset].trace, buffer)
            end = build.Add(build.Shape(trace, start=0, end=1), offset)
            parts = [build.Slice(buffer, [0], [offset], [0])] if offset else []
            parts += [trace, build.Slice(buffer, end, build.ints([_END]), build.ints([0]))]
            buffer = build.Concat(*parts, axis=0)
            buffer.shape = None if dims is None else ir.Shape(dims)
        return buffer

    def recurrent(self, history: History, buffer: ir.Value, variable: Variable) -> ir.Value:
        """Return initial values and trace, cut to the last rows that fit the buffer."""
        build = self.build
        if history.is_kept:
            n_kept, size = len(history.final), build.dims(buffer)[0]
            first = None if size == n_kept else build.Sub(n_kept, build.sizes(buffer, 0, 1))
            return self._joined(history.final, first)
        n_initial = len(history.initial)
        rows = [build.Unsqueeze(x, [0]) for x in reversed(history.initial)]
        trace = self._with_row_shape(history.trace, buffer)
        whole = build.Concat(*rows, trace, axis=0)
        return self._fit(whole, None, variable, n_initial, buffer)

    def mapped(self, history: History, size: ir.Value, variable: Variable) -> ir.Value:
        """Return the last rows, as many as are asked for, of an output without recurrence."""
        if not history.is_kept:
            assert history.trace is not None
            return self._fit(history.trace, size, variable, 0)
        n_steps, n_kept = self.n_steps, len(history.final)
        if n_steps.const_value is not None:
            return self._joined(history.final, None)
        missing = self.build.Max(self.build.Sub(n_kept, n_steps), 0)
        return self._joined(history.final, self.build.Unsqueeze(missing, [0]))

    def _joined(self, newest_first: list[ir.Value], first: ir.Value | None) -> ir.Value:
        """Return values in the order of the steps, all or from a position on."""
        build = self.build
        rows = [build.Unsqueeze(x, [0]) for x in reversed(newest_first)]
        joined = build.Concat(*rows, axis=0) if len(rows) > 1 else rows[0]
        if first is None:
            return joined
        return build.Slice(joined, first, build.ints([_END]), build.ints([0]))

    def _with_row_shape(self, trace: ir.Value | None, buffer: ir.Value) -> ir.Value:
        """Give a trace the row shape of a buffer, even if it has no rows."""
        assert trace is not None
        dims, length = dims_of(buffer), (dims_of(trace) or (None,))[0]
        if (
            runs_at_least_once(self.n_steps)
            or dims is None
            or all(isinstance(d, int) for d in dims[1:])
        ):
            return trace
        build = self.build
        shape = build.Concat(
            build.Shape(trace, start=0, end=1), build.sizes(buffer, 1, len(dims)), axis=0
        )
        reshaped = build.Reshape(trace, shape, allowzero=1)
        reshaped.shape = ir.Shape((length, *dims[1:]))
        return reshaped

    def _fit(
        self,
        whole: ir.Value,
        size: ir.Value | None,
        variable: Variable,
        n_initial: int,
        buffer: ir.Value | None = None,
    ) -> ir.Value:
        """Return the last rows as a buffer of its full length, padded with zeros at the end.

        Truncated gradients are not computed for all steps, and need the padding.
        """
        if self._is_exact(variable, n_initial):
            return whole
        build = self.build
        if size is None:
            assert buffer is not None
            size = build.size(buffer, 0)
        size = build.Reshape(build.cast(size, "int64"), build.ints([1]))
        rank = len(build.dims(whole))
        n_rows = build.Shape(whole, start=0, end=1)
        missing = build.Max(build.Sub(size, n_rows), 0)
        start = build.Max(build.Sub(n_rows, size), 0)
        last = build.Slice(whole, start, build.ints([_END]), build.ints([0]))
        # The size that PyTensor reduces the trace to, for all but its last steps, is a constant.
        is_reduced = isinstance(variable, Constant) and self.n_steps.const_value is None
        if self.op.info.as_while or is_reduced:
            return last
        zero = build.constant(np.zeros((), dtype_of(whole).numpy()))
        shape = (
            missing
            if rank == 1
            else build.Concat(missing, build.Shape(whole, start=1, end=rank), axis=0)
        )
        return build.Concat(last, build.Expand(zero, shape), axis=0)

    def _is_exact(self, variable: Variable, n_initial: int) -> bool:
        """Return whether a buffer is known to hold all of an output and no more."""
        n_steps = self.node.inputs[0]
        size = buffer_size(variable) if n_initial else variable
        if size is None:
            return False
        if isinstance(size, Constant) and isinstance(n_steps, Constant):
            return int(size.data) == int(n_steps.data) + n_initial
        return is_sum(size, n_steps, n_initial)


def runs_at_least_once(n_steps: ir.Value) -> bool:
    """Return whether a number of steps is known to be positive."""
    return n_steps.const_value is not None and int(n_steps.const_value.numpy()) > 0
