"""Define the Op of a GRU over one sequence whose small results have correct digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable

from pytensor_onnx.ops.networks.base import NetworkOp

LOOP_NAME = "accurate_gru"
"""Name of the loop in the inner graph, which is not made an Op again."""


class AccurateGRU(NetworkOp):
    """Gated recurrent unit over one sequence (time, inputs).

    Further inputs are the weights of the sequence (inputs, 3 * hidden) and of the state (hidden, 3
    * hidden) and the bias (3 * hidden,), of the gates z and r and of the candidate in this order,
    and the initial state (hidden,). The result are the states of all steps (time, hidden).

    Parameters
    ----------
    hidden
        Number of hidden units.
    resets_product
        Whether r scales the product of the state, and not the state; a further input is then a
        bias of that product (hidden,).
    """

    __props__ = ("hidden", "resets_product")
    hidden: int
    resets_product: bool

    def build_inner_graph(self, x: Any, w: Any, u: Any, b: Any, h0: Any, *more: Any) -> list[Any]:
        """Run the steps in a loop."""

        def step(e: Any, h: Any, w: Any, u: Any, b: Any, *more: Any) -> Any:
            sizes = [2 * self.hidden, self.hidden]
            of_gates, of_candidate = pt.split(e @ w + b, sizes, n_splits=2)
            u_gates, u_candidate = pt.split(u, sizes, n_splits=2, axis=1)
            gates = pt.split(of_gates + h @ u_gates, [self.hidden] * 2, n_splits=2)
            z, r = map(pt.sigmoid, gates)
            of_state = r * (h @ u_candidate + more[0]) if more else (r * h) @ u_candidate
            return (1 - z) * pt.tanh(of_candidate + of_state) + z * h

        found = pytensor.scan(
            step, [x], [h0], [w, u, b, *more], name=LOOP_NAME, strict=True, return_updates=False
        )
        return [found]

    def infer_shape(
        self, node: Apply, input_shapes: Sequence[Sequence[Variable]]
    ) -> list[list[Variable]]:
        """Infer the sizes from those of the inputs."""
        (time, _), _, _, _, (hidden,), *_ = input_shapes
        return [[time, hidden]]
