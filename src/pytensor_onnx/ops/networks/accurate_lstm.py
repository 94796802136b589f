"""Define the Op of an LSTM over one sequence whose small results have correct digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable

from pytensor_onnx.ops.networks.base import NetworkOp

LOOP_NAME = "accurate_lstm"
"""Name of the loop in the inner graph, which is not made an Op again."""

LARGEST = 64
"""Number of hidden units up to which the lowering takes less time than a loop."""


def least_steps(hidden: int) -> int:
    """Return the number of steps from which the lowering takes less time than a loop."""
    return max(8, hidden // 2)


class AccurateLSTM(NetworkOp):
    """Long short-term memory over one sequence (time, inputs).

    Further inputs are the weights of the sequence (inputs, 4 * hidden) and of the state (hidden, 4
    * hidden) and the bias (4 * hidden,), of the gates i, o, f and g in this order, and the initial
    output and memory (hidden,). The results are outputs and memories of all steps (time, hidden).

    Parameters
    ----------
    hidden
        Number of hidden units.
    """

    __props__ = ("hidden",)
    hidden: int

    def build_inner_graph(self, x: Any, w: Any, u: Any, b: Any, h0: Any, c0: Any) -> list[Variable]:
        """Run the steps in a loop."""

        def step(e: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> tuple[Any, Any]:
            parts = pt.split(e @ w + h @ u + b, [self.hidden] * 4, n_splits=4)
            i, o, f = map(pt.sigmoid, parts[:3])
            c = f * c + i * pt.tanh(parts[3])
            return o * pt.tanh(c), c

        found = pytensor.scan(
            step, [x], [h0, c0], [w, u, b], name=LOOP_NAME, strict=True, return_updates=False
        )
        return list(found)

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Infer the sizes from those of the inputs."""
        (time, _), *_, (hidden,), _ = input_shapes
        return [[time, hidden]] * 2
