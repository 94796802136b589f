"""Tensors with named dimensions (`pytensor.xtensor`): types, lowering, and names in ONNX."""

import re
import sys

from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type
from pytensor.tensor.type import TensorType


def is_named(type_: Type) -> bool:
    """Return whether a type is that of tensors with named dimensions."""
    # A graph that has them has imported the module, which would load xarray and pandas.
    module = sys.modules.get("pytensor.xtensor.type")
    return module is not None and isinstance(type_, module.XTensorType)


def is_tensor(type_: Type) -> bool:
    """Return whether values of a type are arrays, their dimensions named or not.

    Examples
    --------
    >>> import pytensor.tensor as pt, pytensor.xtensor as px
    >>> is_tensor(pt.vector().type), is_tensor(px.xtensor(dims=["city"]).type)
    (True, True)
    """
    return isinstance(type_, TensorType) or is_named(type_)


def dim_names(variable: Variable) -> list[str]:
    """Return the names of the dimensions of a variable as ONNX takes them, none without names.

    Examples
    --------
    >>> import pytensor.xtensor as px
    >>> dim_names(px.xtensor(dims=["city", "2*day"]))
    ['city', '2_day']
    """
    if not is_named(variable.type):
        return []
    # `2*day` and `day[1:]` are what this package calls sizes derived from `day`.
    return [re.sub(r"\W+", "_", dim).strip("_") or "dim" for dim in variable.type.dims]


def without_named(variable: Variable) -> Variable:
    """Return a variable computed without operations on named dimensions, which have no gradients.

    Inputs of the graph stay what they are, and the graph itself is left alone. A variable that no
    named dimension went into is returned as it is.

    Examples
    --------
    >>> import pytensor, pytensor.xtensor as px
    >>> x = px.xtensor("x", dims=["city"])
    >>> pytensor.grad(without_named((x**2).sum()), x).type.dims
    ('city',)
    """
    if not any(is_named(ancestor.type) for ancestor in ancestors([variable])):
        return variable
    if is_named(variable.type):
        variable = variable.values
    fgraph = FunctionGraph(outputs=[variable], clone=True, copy_inputs=False)
    lower_named(fgraph)
    return fgraph.outputs[0]


def lower_named(fgraph: FunctionGraph) -> None:
    """Rewrite a graph in place so that only tensors without names are computed with.

    Operations on named dimensions have no implementation of their own, not even in Python.
    """
    if any(is_named(variable.type) for variable in fgraph.variables):
        from pytensor.xtensor.rewriting.utils import lower_xtensor_db

        lower_xtensor_db.query("+minimum_compile").rewrite(fgraph)
