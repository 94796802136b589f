"""Support named dimensions (`pytensor.xtensor`): types, lowering, and names in ONNX."""

import sys
from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type
from pytensor.scan.op import Scan
from pytensor.tensor.type import DenseTensorType


def is_named(type_: Type) -> bool:
    """Return whether a type has named dimensions."""
    # Such a graph has imported the module already; importing it here would load xarray and pandas.
    module = sys.modules.get("pytensor.xtensor.type")
    return module is not None and isinstance(type_, module.XTensorType)


def is_tensor(type_: Type) -> bool:
    """Return whether values of a type are dense arrays, with named dimensions or not.

    Examples
    --------
    >>> import pytensor.tensor as pt, pytensor.xtensor as px
    >>> is_tensor(pt.vector().type), is_tensor(px.xtensor(dims=["city"]).type)
    (True, True)
    """
    return isinstance(type_, DenseTensorType) or is_named(type_)


def dim_names(variable: Variable) -> list[str]:
    """Return the names of the dimensions of a variable, an empty list without names.

    Examples
    --------
    >>> import pytensor.xtensor as px
    >>> dim_names(px.xtensor(dims=["city", "2*day"]))
    ['city', '2*day']
    """
    return list(variable.type.dims) if is_named(variable.type) else []


def tensor_of(variable: Variable) -> Variable:
    """Return the tensor of a variable, without names of its dimensions.

    Examples
    --------
    >>> import pytensor.xtensor as px
    >>> tensor_of(px.xtensor("x", dims=["city"])).type
    TensorType(float64, shape=(None,))
    """
    return variable.values if is_named(variable.type) else variable


def without_named(variables: Sequence[Variable]) -> list[Variable]:
    """Return tensors for variables, computed without operations on named dimensions.

    Operations on named dimensions have no gradients, and PyTensor does not lower them within loops.
    Operations that two variables depend on are computed once for both tensors.

    Examples
    --------
    >>> import pytensor, pytensor.xtensor as px
    >>> x = px.xtensor("x", dims=["city"])
    >>> (cost,) = without_named([(x**2).sum()])
    >>> pytensor.grad(cost, x).type.dims
    ('city',)
    """
    if not _have_named(variables):
        return list(variables)
    tensors = [tensor_of(v) for v in variables]
    fgraph = FunctionGraph(outputs=tensors, clone=True, copy_inputs=False)
    lower_named(fgraph)
    return list(fgraph.outputs)


def lower_named(fgraph: FunctionGraph) -> None:
    """Lower operations on named dimensions of a graph in place, and those within its loops."""
    if "pytensor.xtensor.type" not in sys.modules or not _have_named(fgraph.outputs):
        return
    from pytensor.xtensor.rewriting.utils import lower_xtensor_db

    for node in fgraph.toposort():
        if isinstance(node.op, Scan) and _have_named(node.op.fgraph.outputs):
            inner = node.op.fgraph.unfreeze()
            lower_named(inner)
            loop = node.op.clone_with_inner_graph(inner)(*node.inputs, return_list=True)
            fgraph.replace_all_validate(list(zip(node.outputs, loop, strict=True)))
    lower_xtensor_db.query("+minimum_compile").rewrite(fgraph)


def _have_named(results: Sequence[Variable]) -> bool:
    """Return whether a graph, or a loop in it, has named dimensions."""
    loops = set()
    for v in ancestors(results):
        if is_named(v.type):
            return True
        if v.owner is not None and isinstance(v.owner.op, Scan):
            loops.add(v.owner)
    return any(_have_named(loop.op.fgraph.outputs) for loop in loops)
