"""Graphs inside of nodes: the branches of If, the bodies of Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
from pytensor.graph.basic import Constant, Variable

type Environment = dict[ir.Value, Variable]


class BodyFailure(Exception):  # noqa: N818  (control flow)
    """Raised for a body with nodes that cannot be imported, which are noted."""


@dataclass(frozen=True)
class Body:
    """A graph of a node, as a function of variables.

    Attributes
    ----------
    graph
        The graph in the file.
    run
        Function that imports the nodes of a graph in an environment and returns its results.
    look_up
        Function that returns the variable of a value in an environment.
    outer
        Variables of the values around the node.
    """

    graph: ir.Graph
    run: Callable[[ir.Graph, Environment], list[Variable]]
    look_up: Callable[[ir.Value, Environment], Any]
    outer: Environment = field(repr=False)

    @property
    def captured(self) -> list[Variable]:
        """Return the variables of the surrounding graph that the body uses, but constants."""
        return [self.outer[value] for value in self._captured_values()]

    def _captured_values(self) -> list[ir.Value]:
        used = dict.fromkeys(
            value
            for node in self.graph.all_nodes()
            for value in node.inputs
            if value is not None and value in self.outer
        )
        used.update((v, None) for v in self.graph.outputs if v in self.outer)
        found = [(value, self.look_up(value, self.outer)) for value in used]
        return [v for v, x in found if isinstance(x, Variable) and not isinstance(x, Constant)]

    def __call__(
        self, *arguments: Variable, captured: Sequence[Variable] | None = None
    ) -> list[Variable]:
        """Return the results for some arguments.

        Parameters
        ----------
        arguments
            One variable for each input of the graph.
        captured
            Variables in place of those of `captured`, such as the arguments of a step of a scan.
        """
        environment = dict(self.outer)
        if captured is not None:
            environment.update(zip(self._captured_values(), captured, strict=True))
        environment.update(zip(self.graph.inputs, arguments, strict=False))
        return self.run(self.graph, environment)
