"""Encode random generators by their state (``docs/understanding/random.md``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.type import Type
from pytensor.scan.op import Scan
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.type import RandomType, random_generator_type
from pytensor.tensor.type import TensorType

from pytensor_onnx.encodings.registry import Encoding, register_encoding
from pytensor_onnx.random import generator_of, state_of


@register_encoding
class Generators(Encoding):
    """Encoding with one part, ``state``: a key and a counter, three words of 64 bits."""

    name = "generator"
    # NumPy draws other numbers from the generator of a state.
    returned_as_tensors = True
    warning_if_stored = (
        "every run of the model draws the same, as the generator has no update. Give its next "
        "state in updates={rng: next_rng}"
    )

    def serves(self, type_: Type) -> bool:
        """Return whether a type is a generator of PyTensor, for named tensors or not."""
        return isinstance(type_, RandomType)

    def parts(self, type_: RandomType) -> Mapping[str, TensorType]:
        """Return the type of the state."""
        return {"state": TensorType("uint64", shape=(3,))}

    def type_of(self, parts: Mapping[str, TensorType], details: Mapping[str, str]) -> Type:
        """Return the type of generators."""
        return random_generator_type

    def encode(self, type_: RandomType, value: Any) -> Sequence[np.ndarray]:
        """Return the state of a generator or a seed."""
        return [state_of(value)]

    def decode(self, type_: RandomType, arrays: Sequence[np.ndarray]) -> np.random.Generator:
        """Return a generator with the state, which may be of numbers of 16 bits."""
        return generator_of(arrays[0])

    def succeed(
        self, type_: RandomType, arrays: Sequence[np.ndarray], former: np.random.Generator
    ) -> np.random.Generator:
        """Return a generator with the state, whose bit generator keeps the class of the former."""
        return generator_of(arrays[0], type(former.bit_generator).__name__)

    def following(self, fgraph: FunctionGraph, variable: Variable) -> Variable | None:
        """Return the generator after all draws, or None if two Ops draw from the same state."""
        generator = variable
        while True:
            nodes = {node for node, _ in fgraph.clients.get(generator, []) if node.outputs}
            if not nodes:
                return generator
            after = _after(nodes.pop(), generator) if len(nodes) == 1 else None
            if after is None:
                return None
            generator = after


def _after(node: Apply, generator: Variable) -> Variable | None:
    """Return the state of a generator after an operation, or None if the operation is unknown."""
    op = node.op
    if isinstance(op, RNGConsumerOp):
        following: Variable | None = op.update(node).get(generator)
        return following
    if isinstance(op, Scan):
        carried = zip(
            op.outer_untraced_sit_sot(node.inputs),
            op.outer_untraced_sit_sot_outs(node.outputs),
            strict=True,
        )
        return dict(carried).get(generator)
    return None
