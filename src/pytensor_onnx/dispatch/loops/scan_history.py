"""Find the values of earlier steps that a loop carries, one for each tap."""

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scan.op import Scan

from pytensor_onnx.dispatch.loops.scan_buffers import (
    buffer_size,
    most_steps,
    nearest_later,
    written_to_fresh_buffer,
)
from pytensor_onnx.dispatch.loops.scan_rows import zeros_like_row
from pytensor_onnx.dispatch.registry.graphs import convert_expressions
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.sizes import constant_ints

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
        canonical = self.build.scope.canonical_dim
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
