"""Replace the Ops of PyMC that have a counterpart here, without importing PyMC."""

from __future__ import annotations

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.ops.bessel import i0e, i1e

_MODULE = "pymc.distributions.dist_math"
_COUNTERPARTS = {"I0e": i0e, "I1e": i1e}


@node_rewriter([Elemwise])
def replace_scalar_of_pymc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the exponentially scaled Bessel functions of PyMC."""
    op_type = type(node.op.scalar_op)
    if op_type.__module__ != _MODULE or op_type.__name__ not in _COUNTERPARTS:
        return None
    old = node.outputs[0]
    new = _COUNTERPARTS[op_type.__name__](*node.inputs)
    if new.type != old.type:
        return None
    new.name = old.name
    return [new]
