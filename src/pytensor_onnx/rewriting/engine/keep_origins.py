"""Copy names, lines of code and original Ops from replaced variables to their replacements."""

from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.rules import rewrites_graphs
from pytensor_onnx.user_code import Origin, replaced_by_rewrite, user_line


class KeepOrigins(Feature):
    """Graph feature that copies the name, user line and original Ops of replaced variables.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx.user_code import origins_of
    >>> from pytensor.graph.fg import FunctionGraph
    >>> x = pt.vector("x")
    >>> y = 2 * x
    >>> y.name = "doubled"
    >>> fgraph = FunctionGraph([x], [y], clone=False, features=[KeepOrigins()])
    >>> fgraph.replace(y, x + x)
    >>> fgraph.outputs[0].name
    'doubled'
    >>> str(origins_of(fgraph.outputs[0])[0].op)
    'Mul'
    """

    def __init__(self) -> None:
        self._new: list[Apply] = []

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any = None) -> None:
        """Record a new node before it replaces another."""
        self._new.append(node)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        """Copy the origin to the replacement, unless it is an input or a constant."""
        if old.name and new.name is None and new.owner is not None:
            new.name = old.name
        if self._new and old.owner is not None:
            keep_origins.rule.note()
            origins = replaced_by_rewrite(old)
            for made in self._new:
                _attach_origins(made, old, origins)
        self._new.clear()


def _attach_origins(node: Apply, old: Variable, origins: tuple[Origin, ...]) -> None:
    """Attach the user's line and Ops to new results."""
    for variable in node.outputs:
        if not user_line(variable) and hasattr(old.tag, "trace"):
            variable.tag.trace = old.tag.trace
        if not hasattr(variable.tag, "origins"):
            variable.tag.origins = origins


@rewrites_graphs(
    family="structure",
    purpose="conversion",
    identity="name and line of a replacement = those of the replaced variable",
    ensures="features of the graph only",
)
def keep_origins(fgraph: FunctionGraph) -> None:
    """Attach `KeepOrigins` to a graph."""
    fgraph.attach_feature(KeepOrigins())
