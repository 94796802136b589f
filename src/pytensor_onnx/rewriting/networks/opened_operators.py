"""Open operators of imported models: put their expressions in their place.

All modes but ONNX compute the expressions, and files for runtimes of any maker have them.
"""

from collections.abc import Callable, Sequence

from pytensor.compile.mode import optdb
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import GraphRewriter

from pytensor_onnx.compat.pytensor import vectorize_node
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.rewriting.engine.registration import OPEN_OPERATORS


class OpenOperators(GraphRewriter):
    """Replaces operators of imported models by their expressions, and those within them.

    Parameters
    ----------
    is_opened
        Which ones to replace; all unless given.
    """

    def __init__(self, is_opened: Callable[[KeptOperator], bool] = lambda op: True) -> None:
        self.is_opened = is_opened

    def apply(self, fgraph: FunctionGraph) -> None:
        """Rewrite a graph in place; results keep their names."""
        while opened := [node for node in fgraph.apply_nodes if self._opens(node)]:
            for node in opened:
                results = inline_ofg_node(node)
                for old, new in zip(node.outputs, results, strict=True):
                    if new.owner is not None and new.name is None:
                        new.name = old.name
                pairs = list(zip(node.outputs, results, strict=True))
                fgraph.replace_all(pairs, reason=OPEN_OPERATORS, import_missing=True)

    def _opens(self, node: Apply) -> bool:
        return isinstance(node.op, KeptOperator) and self.is_opened(node.op)


# A query of mode ONNX that excludes the name notes it as a tag without rewrites, and refuses it.
if OPEN_OPERATORS not in optdb._names:
    optdb.__db__.pop(OPEN_OPERATORS, None)
optdb.register(
    OPEN_OPERATORS,
    OpenOperators(),
    "fast_run",
    "fast_compile",
    position=optdb.__position__["inline_ofg_expansion"],
)


def opened_for_portable(fgraph: FunctionGraph) -> FunctionGraph:
    """Return a graph without operators that only some runtimes have, itself if it has none.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> fgraph = FunctionGraph([x], [x + 1], clone=False)
    >>> opened_for_portable(fgraph) is fgraph
    True
    """
    opener = OpenOperators(lambda op: op.imported.is_of_few_runtimes)
    if not any(map(opener._opens, fgraph.apply_nodes)):
        return fgraph
    copy = fgraph.clone(check_integrity=False)
    opener.rewrite(copy)
    return copy


@vectorize_node.register(KeptOperator)
def _vectorized(op: KeptOperator, node: Apply, *inputs: Variable) -> Apply | Sequence[Variable]:
    """Apply the expression over further axes; the operator has none."""
    if all(new.type.ndim == old.type.ndim for new, old in zip(inputs, node.inputs, strict=True)):
        return op.make_node(*inputs)
    inner = op.fgraph.unfreeze()
    return vectorize_graph(list(inner.outputs), dict(zip(inner.inputs, inputs, strict=True)))
