"""Names survive rewrites: what takes the place of a named variable takes over its name."""

from typing import Any

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter


class KeepNames(Feature):
    """Gives a name to the unnamed result that replaces a named one.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> x = pt.vector("x")
    >>> y = 2 * x
    >>> y.name = "doubled"
    >>> fgraph = FunctionGraph([x], [y], clone=False, features=[KeepNames()])
    >>> fgraph.replace(y, x + x)
    >>> fgraph.outputs[0].name
    'doubled'
    """

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        """Take over the name; inputs and constants have theirs from elsewhere."""
        if old.name and new.name is None and new.owner is not None:
            new.name = old.name


@graph_rewriter
def keep_names(fgraph: FunctionGraph) -> None:
    """Let names survive the rewrites that follow."""
    fgraph.attach_feature(KeepNames())


# Before the first rewrite of all.
optdb.register("onnx_keep_names", keep_names, "onnx", position=-0.03)
