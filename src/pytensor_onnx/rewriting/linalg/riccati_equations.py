"""Write solutions of Riccati equations as an Op with a definition of its own."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.dtype_utils import linalg_output_dtype
from pytensor.tensor.linalg.solvers.linear_control import SolveDiscreteARE
from pytensor.tensor.rewriting.blockwise import blockwise_of

from pytensor_onnx.ops.linalg.riccati_ops import DiscreteRiccati
from pytensor_onnx.rewriting.engine.inner_graphs import core_op
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [SolveDiscreteARE, blockwise_of(SolveDiscreteARE)],
    family="linalg",
    purpose="correctness",
    identity="X from an ordered Schur form = X by doubling",
    requires="real matrices",
)
def solve_riccati(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the graph around a generalised Schur form by doubling, for real matrices."""
    return riccati_solution(node)


def riccati_solution(node: Apply) -> list[Variable] | None:
    """Return the solution of a Riccati equation as an Op; None for other Ops."""
    if not isinstance(core_op(node.op), SolveDiscreteARE):
        return None
    dtype = linalg_output_dtype(*(x.type.dtype for x in node.inputs))
    if not dtype.startswith("float"):
        return None
    (old,) = node.outputs
    new = Blockwise(DiscreteRiccati())(*(x.astype(dtype) for x in node.inputs))
    return [old.type.filter_variable(new.astype(old.type.dtype), allow_convert=True)]
