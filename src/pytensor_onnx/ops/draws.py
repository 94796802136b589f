"""Define the Ops that draw from a state; their Python implementations are the reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor

from pytensor_onnx.ops import draw_reference as reference


class Threefry(Op):
    """Threefry-2x32-20, which encrypts two counter words with two key words."""

    __props__ = ()

    def make_node(self, *words: Variable) -> Apply:
        """Return the node for the key and the counter, uint32 tensors that broadcast."""
        variables = [pt.as_tensor(word) for word in words]
        shape = _broadcast(*(v.type.shape for v in variables))
        return Apply(self, variables, [tensor(dtype="uint32", shape=shape) for _ in range(2)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Compute the words."""
        words = reference.threefry(*inputs)
        for storage, word, variable in zip(outputs, words, node.outputs, strict=True):
            storage[0] = word.reshape(word.shape[word.ndim - variable.type.ndim :])


class Draw(Op):
    """Base of the Ops that draw a vector from a state and return the next state.

    Parameters
    ----------
    dtype
        Dtype of the vector.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, state: Variable, n: Variable) -> Apply:
        """Return the node for a state, uint32 of shape (4,), and a 0-d int64 length."""
        state, n = pt.as_tensor(state), pt.as_tensor(n, dtype="int64")
        length = int(n.data) if isinstance(n, pt.TensorConstant) else None
        return Apply(
            self, [state, n], [state_variable(), tensor(dtype=self.dtype, shape=(length,))]
        )

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shapes of the state and of the vector."""
        return [(4,), (node.inputs[1],)]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw as the reference does."""
        state, n = inputs
        outputs[0][0], outputs[1][0] = self.reference(state, int(n))

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        raise NotImplementedError

    def blocks(self, n: int) -> int:
        """Return the number of blocks that a vector of n numbers uses."""
        return int(self.reference(np.zeros(4, "uint32"), n)[0][2])


class RandomBits(Draw):
    """Draw of 64-bit integers."""

    def __init__(self, dtype: str = "uint64") -> None:
        super().__init__(dtype)

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        return reference.bits(state, n)


class StandardUniform(Draw):
    """Draw of numbers in [0, 1)."""

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        return reference.uniform(state, n, self.dtype)


class OpenUniform(Draw):
    """Draw of numbers in (0, 1), whose logarithms are finite."""

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        return reference.open_uniform(state, n, self.dtype)


class StandardNormal(Draw):
    """Draw of standard normal numbers."""

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        return reference.normal(state, n, self.dtype)


class NormalPairs(Draw):
    """Draw of standard normal numbers of which the first do not depend on how many follow."""

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        return reference.normal_pairs(state, n, self.dtype)


class DrawsOfSteps(Op):
    """Draws of all steps of a loop, which together use the same number of blocks in each.

    Parameters
    ----------
    draw
        What a step draws.
    n
        Length of the vector of a step.
    stride, offset
        Number of blocks that a step uses, and those of the step that come before this draw.
    """

    __props__ = ("draw", "n", "stride", "offset")

    def __init__(self, draw: Draw, n: int, stride: int, offset: int) -> None:
        self.draw, self.n, self.stride, self.offset = draw, n, stride, offset

    def make_node(self, state: Variable, steps: Variable) -> Apply:
        """Return the node for a state and a 0-d int64 number of steps."""
        steps = pt.as_tensor(steps, dtype="int64")
        count = int(steps.data) if isinstance(steps, pt.TensorConstant) else None
        numbers = tensor(dtype=self.draw.dtype, shape=(count, self.n))
        return Apply(self, [pt.as_tensor(state), steps], [state_variable(), numbers])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shapes of the state after all steps and of the numbers."""
        return [(4,), (node.inputs[1], pt.constant(self.n, dtype="int64"))]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw step by step, as the reference does."""
        state, steps = inputs
        rows = np.empty((int(steps), self.n), self.draw.dtype)
        for row in rows:
            start = reference.blocks(state, self.offset)[0]
            row[:] = self.draw.reference(start, self.n)[1]
            state = reference.blocks(state, self.stride)[0]
        outputs[0][0], outputs[1][0] = state, rows


def _broadcast(*shapes: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the static shape of the words; an axis is of size one only if it is known to be."""
    rank = max(map(len, shapes))
    axes = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in axes)


def state_variable(name: str | None = None) -> Variable:
    """Return a variable for a state.

    Examples
    --------
    >>> state_variable().type
    TensorType(uint32, shape=(4,))
    """
    return tensor(name, dtype="uint32", shape=(4,))
