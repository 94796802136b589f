"""Names, lines of code and Ops as written survive rewrites: replacements take them over."""

from typing import Any

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter

from pytensor_onnx.user_code import Origin, replaced_by_rewrite, user_line


class KeepOrigins(Feature):
    """Tells of new nodes what they replace: the name, the line of code and the Op of the user's.

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
        """Note a new node, before it takes the place of another."""
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
        """Take over the origin; inputs and constants have theirs from elsewhere."""
        if old.name and new.name is None and new.owner is not None:
            new.name = old.name
        if self._new and old.owner is not None:
            origins = replaced_by_rewrite(old)
            for made in self._new:
                _take_origins(made, old, origins)
        self._new.clear()


def _take_origins(node: Apply, old: Variable, origins: tuple[Origin, ...]) -> None:
    """Let new results say by which line and Ops of the user's they were asked for."""
    for variable in node.outputs:
        if not user_line(variable) and hasattr(old.tag, "trace"):
            variable.tag.trace = old.tag.trace
        if not hasattr(variable.tag, "origins"):
            variable.tag.origins = origins


@graph_rewriter
def keep_origins(fgraph: FunctionGraph) -> None:
    """Let origins survive the rewrites that follow."""
    fgraph.attach_feature(KeepOrigins())


# Before the first rewrite of all.
optdb.register("onnx_keep_origins", keep_origins, "onnx", position=-0.03)
