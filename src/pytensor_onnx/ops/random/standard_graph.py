"""Graphs that files have as functions of one name, for which runtimes may have kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable


class StandardGraph(OpFromGraph):
    """Inner graph whose name tells the computation, in every file.

    Parameters
    ----------
    inputs, outputs
        The graph.
    name
        Name of the function.
    narrow
        Returns the Op of float32 that takes its place in files without float64, None if the graph
        has no floats.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        *,
        name: str,
        narrow: Callable[[], StandardGraph] | None = None,
        **settings: Any,
    ) -> None:
        # The inner graph has no names.
        self.parameters = [str(x.name) for x in inputs]
        super().__init__(inputs, outputs, name=name, **settings)
        self.narrow = narrow
