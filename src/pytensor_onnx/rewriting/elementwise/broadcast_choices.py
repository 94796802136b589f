"""Replace choices by an Op whose result has NumPy's shape."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable

from pytensor_onnx.ops.elementwise import ChooseFrom
from pytensor_onnx.rewriting.engine.predicates import made_by


def chosen_of_any_shape(node: Apply) -> Sequence[Variable] | None:
    """Return a `choose` of known shape, or None if the choices are no literal list.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> chosen = pt.choose(pt.lvector(), pt.matrices("xy"))
    >>> chosen.type.ndim, chosen_of_any_shape(chosen.owner)[0].type.ndim
    (1, 2)
    """
    # A node that chooses has loaded it already; alone it loads PyTensor's debug mode.
    from pytensor.typed_list.basic import MakeList

    numbers, choices = node.inputs
    made = made_by(choices, MakeList)
    if made is None and not hasattr(choices.type, "ndim"):
        return None
    arrays = [choices] if made is None else made.inputs
    results: Sequence[Variable]
    results = ChooseFrom(node.op.mode, is_stacked=made is None).make_node(numbers, *arrays).outputs
    return results
