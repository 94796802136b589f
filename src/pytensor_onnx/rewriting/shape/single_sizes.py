"""Read single sizes without building the vector of all sizes."""

from functools import reduce
from operator import mul

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import MakeVector, cast
from pytensor.tensor.math import Prod
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from pytensor_onnx.rewriting.engine.predicates import elementwise
from pytensor_onnx.rules import part_of, rewrites_nodes


@rewrites_nodes(
    [Subtensor],
    name="read_one_size",
    family="shape",
    purpose="size",
    identity="cast(vector(a, b), t)[i] = cast((a, b)[i], t), set(v, y, i)[j] = v[j] or y, and "
    "prod(vector(a, b)) = a * b",
    requires="constant i and j; integers",
    begins_at=("Subtensor", "Prod"),
)
def cast_one_size(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an element of a cast vector of scalars by the cast scalar."""
    vector, *indices = node.inputs
    if node.op.idx_list != (0,) or not isinstance(indices[0], Constant):
        return None
    conversion = elementwise(vector, Cast)
    if conversion is None:
        return None
    (made,) = conversion.inputs
    if made.owner is None or not isinstance(made.owner.op, MakeVector):
        return None
    elements, position = made.owner.inputs, int(indices[0].data)
    if not -len(elements) <= position < len(elements):
        return None
    return [cast(elements[position], node.outputs[0].type.dtype)]


@part_of(cast_one_size.rule, [Subtensor])
def read_before_replacing(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an element of a vector with replaced elements by its source.

    PyTensor's shape of a part of a split is a vector of sizes with one replaced.
    """
    vector, *index = node.inputs
    if node.op.idx_list != (0,) or vector.owner is None or not isinstance(index[0], Constant):
        return None
    op, wanted = vector.owner.op, int(index[0].data)
    if isinstance(op, MakeVector):
        elements = vector.owner.inputs
        inside = -len(elements) <= wanted < len(elements)
        return [cast(elements[wanted], op.dtype)] if inside else None
    if not isinstance(op, IncSubtensor) or not op.set_instead_of_inc or op.idx_list != (0,):
        return None
    before, value, place = vector.owner.inputs
    if not isinstance(place, Constant) or wanted < 0 or int(place.data) < 0:
        return None
    same = int(place.data) == wanted
    return [cast(value, vector.type.dtype)] if same else [before[wanted]]


@part_of(cast_one_size.rule, [Prod])
def multiply_sizes(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the product of a vector of integers by a product of scalars."""
    made = node.inputs[0].owner
    dtype = node.outputs[0].type.dtype
    if made is None or not isinstance(made.op, MakeVector) or made.op.dtype != dtype:
        return None
    if not dtype.startswith(("int", "uint")) or node.outputs[0].type.ndim:
        return None
    return [reduce(mul, [cast(element, dtype) for element in made.inputs])]
