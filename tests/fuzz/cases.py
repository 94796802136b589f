"""Cases to compare: a graph with chosen outputs, and the options of its export."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.layouts import laid_out
from tests.fuzz.scripts import script
from tests.fuzz.terms import Term


@dataclass
class Case:
    """A graph with outputs and updates chosen.

    Attributes
    ----------
    graph
        The graph.
    outputs
        Results to compute.
    updates
        Shared variables and their new values.
    resized
        Other sizes that it is called with as well, wherever the types leave a size open:
        ``"larger"`` ones, or ``"empty"``, or none.
    options
        How the model is exported.
    is_rewritten
        Whether a result agrees with PyTensor's own rewrites and not with the graph as written.
    """

    graph: Graph
    outputs: list[Term]
    updates: list[tuple[Term, Term]]
    resized: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    is_rewritten: bool = False

    @property
    def code(self) -> str:
        """A script that reproduces the case."""
        values = [t.value for t in self.graph.inputs]
        code = script(self.graph, self.outputs, self.updates, values, self.options)
        if self.resized:
            code += script(self.graph, self.outputs, self.updates, self.resized_values(), {})
        return code

    @property
    def is_standard(self) -> bool:
        """Whether the model is made for no runtime."""
        return self.options.get("target") == "standard"

    @property
    def arguments(self) -> list[np.ndarray]:
        """The values of the inputs as they lie in memory."""
        return [laid_out(t.value, t.layout) for t in self.graph.inputs]

    def resized_values(self) -> list[np.ndarray]:
        """Return values of the inputs with other sizes wherever the types leave them open.

        Equal sizes stay equal. A size of one stays, since PyTensor refuses to broadcast it, and a
        size of zero where another is fixed: NumPy takes a mask of no elements for any size.
        """
        leaves = [t for t in self.graph.terms if t.variable.owner is None]
        fixed = {0 for t in leaves if t not in self.graph.inputs and 0 in t.shape}
        fixed |= {0 for t in self.graph.inputs if 0 in t.static}
        kept = {1, *fixed}
        sizes = {
            size: size + 1 if size else 7
            for t in self.graph.inputs
            for size, static in zip(t.shape, t.static, strict=True)
            if static is None and size not in kept
        }
        if self.resized == "empty":
            # A size that is fixed elsewhere would no longer fit it.
            known = {size for t in leaves if t not in self.graph.inputs for size in t.shape}
            known |= {size for t in self.graph.inputs for size in t.static}
            sizes = dict.fromkeys([size for size in sizes if size and size not in known][:1], 0)
        values = []
        for term in self.graph.inputs:
            shape = [
                sizes.get(size, size) if static is None else size
                for size, static in zip(term.shape, term.static, strict=True)
            ]
            values.append(laid_out(np.resize(term.value, shape), term.layout))
        return values
