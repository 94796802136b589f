"""Read single sizes without building the vector of all sizes."""

from collections.abc import Sequence
from functools import reduce
from operator import mul

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.rewriting.unify import Asterisk, OpPattern
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import MakeVector, cast
from pytensor.tensor.math import Prod
from pytensor.tensor.rewriting.basic import elemwise_of
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.rewriting.engine.patterns import ONE_INDEX, matching
from pytensor_onnx.rules import part_of, rewrites_nodes

_READ = OpPattern(Subtensor, idx_list=ONE_INDEX)
_SET = OpPattern(IncSubtensor, idx_list=ONE_INDEX, set_instead_of_inc=True)
_VECTOR = (OpPattern(MakeVector), Asterisk("elements"))
_INDEX = {"pattern": "index", "constraint": lambda x: isinstance(x, Constant)}


def _element(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    position, dtype = int(index.data), node.outputs[0].type.dtype
    return cast(elements[position], dtype) if -len(elements) <= position < len(elements) else None


@rewrites_nodes(
    [Subtensor],
    name="read_one_size",
    family="shape",
    purpose="size",
    identity="cast(vector(a, b), t)[i] = cast((a, b)[i], t), set(v, y, i)[j] = v[j] or y, and "
    "prod(vector(a, b)) = a * b",
    requires="constant i and j; integers",
    begins_at=("Subtensor", "Prod"),
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
@matching(_READ, (elemwise_of(Cast), _VECTOR), _INDEX)
def cast_one_size(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    """Replace an element of a cast vector of scalars by the cast scalar."""
    return _element(node, elements, index)


@part_of(cast_one_size.rule, [Subtensor])
@matching(_READ, _VECTOR, _INDEX)
def read_one_size(node: Apply, elements: Sequence[Variable], index: Constant) -> Variable | None:
    """Replace an element of a vector of scalars by the scalar."""
    return _element(node, elements, index)


@part_of(cast_one_size.rule, [Subtensor])
@matching(_READ, (_SET, "before", "value", _INDEX | {"pattern": "place"}), _INDEX)
def read_before_replacing(
    node: Apply, before: TensorVariable, value: Variable, place: Constant, index: Constant
) -> Variable | None:
    """Replace an element of a vector with a replaced element by its source.

    PyTensor's shape of a part of a split is a vector of sizes with one replaced.
    """
    wanted, written = int(index.data), int(place.data)
    if wanted < 0 or written < 0:
        return None
    return cast(value, before.type.dtype) if written == wanted else before[wanted]


@part_of(cast_one_size.rule, [Prod])
@matching(OpPattern(Prod), _VECTOR)
def multiply_sizes(node: Apply, elements: Sequence[Variable]) -> Variable | None:
    """Replace the product of a vector of integers by a product of scalars."""
    dtype = node.outputs[0].type.dtype
    is_exact = node.inputs[0].type.dtype == dtype and dtype.startswith(("int", "uint"))
    return reduce(mul, [cast(x, dtype) for x in elements]) if is_exact else None
