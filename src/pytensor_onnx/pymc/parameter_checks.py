"""Give invalid parameters of distributions the density zero, within inner graphs too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.rewriting import rewrite_inner_graph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.scalar.basic import discrete_types

from pytensor_onnx.rewriting.engine.inner_graphs import inner_nodes


def replace_checks(graphs: Sequence[Variable]) -> list[Variable]:
    """Return graphs in which a density of invalid parameters is minus infinity, not an error.

    So it is wherever the check stands: in the steps of loops, in functions, and in the loops and
    functions within these. A checked integer becomes the lowest number of its dtype.

    Examples
    --------
    >>> import pymc as pm, pytensor.tensor as pt
    >>> sigma = pt.scalar("sigma")
    >>> (logp,) = replace_checks([pm.logp(pm.Normal.dist(0.0, sigma), 0.0)])
    >>> float(logp.eval({sigma: -1.0}, mode="FAST_COMPILE"))
    -inf
    """
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    _replace_checks(fgraph)
    return list(fgraph.outputs)


def _replace_checks(fgraph: FunctionGraph) -> None:
    """Replace the checks of a graph and of its inner graphs, in place."""
    rewrite_inner_graph(fgraph, _has_checks, _replace_inner_checks)
    _REPLACE.rewrite(fgraph)


def _replace_inner_checks(
    linker: object, op: Op, node: Apply, inner: FunctionGraph, *, mode: object
) -> None:
    _replace_checks(inner)


def _has_checks(op: Op) -> bool:
    return isinstance(op, HasInnerGraph) and any(
        isinstance(node.op, CheckParameterValue) for node in inner_nodes(op)
    )


@node_rewriter([CheckParameterValue])
def _lowest_unless_valid(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Replace a check of a parameter by the choice of the lowest number if it fails."""
    value, *conditions = node.inputs
    dtype = value.type.dtype
    lowest = np.iinfo(dtype).min if dtype in discrete_types else -np.inf
    is_valid = pt.all(conditions) if len(conditions) > 1 else conditions[0]
    result = pt.switch(is_valid, value, np.asarray(lowest, dtype))
    result.name = node.op.msg
    return [node.outputs[0].type.filter_variable(result)]


_REPLACE = in2out(_lowest_unless_valid)
