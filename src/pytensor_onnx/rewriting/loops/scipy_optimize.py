"""Write PyTensor's calls of SciPy's optimizers as loops; the first call imports the searches."""

import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.optimize import ScipyWrapperOp

from pytensor_onnx.functions.loops.optimize.search_options import Refused
from pytensor_onnx.rewriting.engine.walkers import Visit
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [ScipyWrapperOp],
    family="control_flow",
    purpose="conversion",
    identity="scipy.optimize(f, x0) = loop over steps of the search",
)
def search_by_loops(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an optimizer by a bounded loop; the lowering refuses methods that have none."""
    from pytensor_onnx.functions.loops.optimize.optimizer_calls import search

    try:
        # Under a floatX of float32 PyTensor would round the constants of the searches.
        with config.change_flags(floatX="float64"):
            point, converged = search(node)
    except Refused:
        return None
    solution, success = node.outputs
    point = point.reshape(node.inputs[0].shape).astype(solution.type.dtype)
    return [
        solution.type.filter_variable(point, allow_convert=True),
        success.type.filter_variable(pt.scalar_from_tensor(converged)),
    ]


search_in_graph = Visit(search_by_loops)
"""The rewrite of a whole graph, for references too: SciPy takes another way to the same point."""
