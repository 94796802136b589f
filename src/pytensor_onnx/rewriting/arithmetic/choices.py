"""Replace a choice between the arrays of a list, which ONNX lacks, by a chain of selections."""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Choose
from pytensor.typed_list.basic import MakeList


@node_rewriter([Choose])
def select_from_list(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Select the array by its number, with the last array as default."""
    numbers, choices = node.inputs
    if choices.owner is None or not isinstance(choices.owner.op, MakeList):
        return None
    arrays = choices.owner.inputs
    if arrays[0].type.ndim > numbers.type.ndim:
        return None
    numbers = _within(numbers.astype("int64"), len(arrays), node.op.mode)
    result = arrays[-1]
    for number, array in reversed(list(enumerate(arrays[:-1]))):
        result = pt.switch(pt.eq(numbers, number), array, result)
    if len(arrays) == 1:
        result = pt.second(numbers, result)
    return [node.outputs[0].type.filter_variable(result)]


def _within(numbers: Variable, count: int, mode: str) -> Variable:
    if mode == "wrap":
        return numbers % count
    if mode == "clip":
        return pt.clip(numbers, 0, count - 1)
    valid = pt.all(pt.ge(numbers, 0) & pt.lt(numbers, count))
    return CheckAndRaise(ValueError, "invalid entry in choice array")(numbers, valid)
