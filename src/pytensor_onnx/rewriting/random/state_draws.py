"""Random variables draw from the states of their generators."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import random_generator_type

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.random.drawing import draw
from pytensor_onnx.functions.random.spawned_states import spawned
from pytensor_onnx.ops.random.spawning import Spawn

_GENERATORS = encoding_of(random_generator_type)
assert _GENERATORS is not None


@_GENERATORS.rewrites(RandomVariable)
def draw_from_state(
    op: RandomVariable, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors] | None:
    """Draw by the sampler of a distribution, or return None if it has no sampler."""
    drawn = draw(node, inputs[0][0])
    return None if drawn is None else [[result] for result in drawn]


@_GENERATORS.rewrites(Spawn)
def spawn_from_state(op: Spawn, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Take the keys of spawned generators from blocks of the parent's stream."""
    return [[state] for state in spawned(inputs[0][0], op.count)]
