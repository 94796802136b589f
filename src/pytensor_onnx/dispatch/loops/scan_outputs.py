"""Build the outputs of a Scan from the stacked and carried values of its loop."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scan.op import Scan

from pytensor_onnx.dispatch.loops.scan_buffers import buffer_size, is_sum
from pytensor_onnx.dispatch.loops.scan_history import History
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import dtype_of

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
