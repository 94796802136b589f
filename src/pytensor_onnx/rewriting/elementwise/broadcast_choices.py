"""Replace choices by an Op whose result has NumPy's shape."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable

from pytensor_onnx.ops.elementwise import ChooseFrom


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
    is_list = choices.owner is not None and isinstance(choices.owner.op, MakeList)
    if not is_list and not hasattr(choices.type, "ndim"):
        return None
    arrays = choices.owner.inputs if is_list else [choices]
    results: Sequence[Variable]
    results = ChooseFrom(node.op.mode, is_stacked=not is_list).make_node(numbers, *arrays).outputs
    return results
