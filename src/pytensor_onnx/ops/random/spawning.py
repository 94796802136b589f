"""Split a random generator into independent ones, within a graph."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.type import RandomType


class Spawn(RNGConsumerOp):
    """Generators whose streams are independent of one another and of the one they come from.

    Parameters
    ----------
    count
        Number of generators.
    """

    __props__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def make_node(self, rng: Variable) -> Apply:
        """Return the node, whose first output is the next state of the generator."""
        if not isinstance(rng.type, RandomType):
            raise TypeError(f"spawn takes a random generator, not {rng.type}")
        return Apply(self, [rng], [rng.type() for _ in range(self.count + 1)])

    def update(self, node: Apply) -> dict[Variable, Variable]:
        """Return the generator and its next state."""
        return {node.inputs[0]: node.outputs[0]}

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Seed new generators of NumPy by numbers of the first."""
        generator = copy.deepcopy(inputs[0])
        seeds = generator.integers(2**63, size=(self.count, 4))
        children = [np.random.default_rng(seed.tolist()) for seed in seeds]
        for storage, value in zip(outputs, [generator, *children], strict=True):
            storage[0] = value


def spawn(rng: Variable, count: int) -> tuple[Variable, list[Variable]]:
    """Return the next state of a random generator, and new generators that share no numbers.

    The key of a new generator is one block of the generator, and its counter zero.

    Parameters
    ----------
    rng
        A generator of PyTensor.
    count
        Number of new generators.

    Raises
    ------
    TypeError
        If ``rng`` is no generator.
    ValueError
        If the number is negative.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> rng = pt.random.rng("rng")
    >>> following, [first, second] = spawn(rng, 2)
    >>> draws = [generator.normal(size=2)[1] for generator in (first, second, following)]
    >>> x, y, z = export_onnx([rng], draws)(np.random.default_rng(1))
    >>> len({*x, *y, *z})
    6
    """
    if count < 0:
        raise ValueError(f"spawn takes a number of generators of 0 or more, not {count}")
    following, *children = Spawn(count).make_node(rng).outputs
    return following, children
