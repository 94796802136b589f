"""Correct the static shapes of reshaped empty arrays."""

from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.tensor.shape import Reshape
from pytensor.tensor.type import TensorType

from pytensor_onnx.rules import rewrites_graphs


class ForgetSizesBesideZero(Feature):
    """Graph feature that corrects PyTensor's static shape of ``reshape(x, (n, 0))`` for an empty x.

    PyTensor divides the number of elements by the known sizes, and treats zero divided by zero as
    zero: rewrites would assume that ``n`` is zero. The types of dependent variables are corrected
    too.

    Examples
    --------
    >>> import warnings
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> n, x = pt.lscalar("n"), pt.vector("x", shape=(0,))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     y = pt.reshape(x, (n, 0))
    >>> y.type.shape
    (0, 0)
    >>> fgraph = FunctionGraph([n, x], [y], clone=False, features=[ForgetSizesBesideZero()])
    >>> y.type.shape
    (None, 0)
    """

    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Correct the nodes of the graph."""
        for node in fgraph.toposort():
            _correct(node)

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        """Correct a new node."""
        _correct(node)


def _correct(node: Apply) -> None:
    if isinstance(node.op, Reshape) and 0 in node.outputs[0].type.shape:
        made = _made_of_unknown_sizes(node)
        if 0 not in made.outputs[0].type.shape:
            return
    elif isinstance(node.op, HasInnerGraph) or not any(map(_may_be_corrected, node.inputs)):
        return
    else:
        made = node.op.make_node(*node.inputs)
    for output, new in zip(node.outputs, made.outputs, strict=True):
        if output.type != new.type:
            output.type = new.type
            forget_sizes_beside_zero.rule.note()


def _made_of_unknown_sizes(node: Apply) -> Apply:
    """Return a reshape whose static shape follows from its sizes argument only."""
    x, sizes = node.inputs
    unknown = TensorType(x.type.dtype, shape=(None,) * x.type.ndim)()
    return node.op.make_node(unknown, sizes)


def _may_be_corrected(variable: Variable) -> bool:
    type_ = variable.type
    return isinstance(type_, TensorType) and 0 in type_.shape and None in type_.shape


@rewrites_graphs(
    family="shape",
    purpose="correctness",
    identity="static shape of reshape(x, s) = s",
    requires="a size of zero beside an unknown size",
    begins_at=("Reshape",),
    measured="docs/project/upstream.md#sizes-beside-a-zero-are-inferred-from-the-number-of-elements",
)
def forget_sizes_beside_zero(fgraph: FunctionGraph) -> None:
    """Correct static shapes in the graph and in later rewrites."""
    fgraph.attach_feature(ForgetSizesBesideZero())
