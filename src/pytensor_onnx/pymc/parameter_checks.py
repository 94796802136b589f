"""Treat invalid parameters of distributions as PyMC's compiled functions do."""

from __future__ import annotations

from collections.abc import Sequence

from pymc.logprob.utils import local_check_parameter_to_ninf_switch, local_remove_check_parameter
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import in2out

_TO_INFINITY = in2out(local_check_parameter_to_ninf_switch)
_REMOVE = in2out(local_remove_check_parameter)


def replace_checks(graphs: Sequence[Variable], *, check_bounds: bool = True) -> list[Variable]:
    """Return graphs in which a density of invalid parameters is minus infinity, not an error.

    Parameters
    ----------
    graphs
        Densities and results computed from them.
    check_bounds
        That of the model; without, parameters are not checked at all.

    Examples
    --------
    >>> import pymc as pm, pytensor.tensor as pt
    >>> sigma = pt.scalar("sigma")
    >>> (logp,) = replace_checks([pm.logp(pm.Normal.dist(0.0, sigma), 0.0)])
    >>> float(logp.eval({sigma: -1.0}, mode="FAST_COMPILE"))
    -inf
    """
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    (_TO_INFINITY if check_bounds else _REMOVE).rewrite(fgraph)
    return list(fgraph.outputs)
