"""Define the Ops that draw from a state; their Python implementations are the reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor

from pytensor_onnx.ops.random import draw_reference as reference


class Threefry(Op):
    """Threefry-2x64-20, which encrypts two counter words with two key words."""

    __props__ = ()

    def make_node(self, *words: Variable) -> Apply:
        """Return the node for the key and the counter, uint64 tensors that broadcast."""
        variables = [pt.as_tensor(word) for word in words]
        shape = _broadcast(*(v.type.shape for v in variables))
        return Apply(self, variables, [tensor(dtype="uint64", shape=shape) for _ in range(2)])

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
        """Return the node for a state, uint64 of shape (3,), and a 0-d int64 length."""
        state, n = pt.as_tensor(state), pt.as_tensor(n, dtype="int64")
        length = int(n.data) if isinstance(n, pt.TensorConstant) else None
        return Apply(
            self, [state, n], [state_variable(), tensor(dtype=self.dtype, shape=(length,))]
        )

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shapes of the state and of the vector."""
        return [(3,), (node.inputs[1],)]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw as the reference does."""
        state, n = inputs
        outputs[0][0], outputs[1][0] = self.reference(state, int(n))

    def reference(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and the vector."""
        after, words = reference.bits(state, self.words(n))
        return after, self.numbers(words, n)

    def words(self, n: Any) -> Any:
        """Return the number of 64-bit words that a vector of n numbers uses, a variable or not."""
        return (n + 1) // 2 if self.dtype == "float32" else n

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Convert random words to a vector of n numbers."""
        raise NotImplementedError


class RandomBits(Draw):
    """Draw of 64-bit integers."""

    def __init__(self, dtype: str = "uint64") -> None:
        super().__init__(dtype)

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Return the words."""
        return words


class StandardUniform(Draw):
    """Draw of numbers in [0, 1)."""

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Convert random words to a vector of n numbers."""
        return reference.uniform_of(words, n, self.dtype)


class OpenUniform(Draw):
    """Draw of numbers in (0, 1), whose logarithms are finite."""

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Convert random words to a vector of n numbers."""
        return reference.open_uniform_of(words, n, self.dtype)


class StandardNormal(Draw):
    """Draw of standard normal numbers."""

    def words(self, n: Any) -> Any:
        """Return the number of words of whole pairs: one for a number, or for two float32."""
        pairs = (n + 1) // 2
        return pairs if self.dtype == "float32" else 2 * pairs

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Convert random words to a vector of n numbers."""
        return reference.normal_of(words, n, self.dtype)


class NormalPairs(StandardNormal):
    """Draw of standard normal numbers; the first ones do not depend on the size of the draw."""

    def numbers(self, words: np.ndarray, n: int) -> np.ndarray:
        """Convert random words to a vector of n numbers."""
        return reference.normal_pairs_of(words, n, self.dtype)


class DrawsOfSteps(Op):
    """Numbers that a loop draws in its steps, which use the same number of words each.

    Parameters
    ----------
    draw
        Op that draws the numbers of a step.
    n
        Length of the vector of a step.
    stride, offset
        Number of words that a step uses, and number of its words before this draw.
    """

    __props__ = ("draw", "n", "stride", "offset")

    def __init__(self, draw: Draw, n: int, stride: int, offset: int) -> None:
        self.draw, self.n, self.stride, self.offset = draw, n, stride, offset

    def make_node(self, words: Variable, steps: Variable) -> Apply:
        """Return the node for the words of all steps and a 0-d int64 number of steps."""
        steps = pt.as_tensor(steps, dtype="int64")
        count = int(steps.data) if isinstance(steps, pt.TensorConstant) else None
        numbers = tensor(dtype=self.draw.dtype, shape=(count, self.n))
        return Apply(self, [pt.as_tensor(words), steps], [numbers])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shape of the numbers."""
        return [(node.inputs[1], pt.constant(self.n, dtype="int64"))]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Compute the numbers of each step as the reference does."""
        words, steps = inputs
        end = self.offset + self.draw.words(self.n)
        outputs[0][0] = np.empty((int(steps), self.n), self.draw.dtype)
        for row, given in zip(outputs[0][0], words.reshape(int(steps), self.stride), strict=True):
            row[:] = self.draw.numbers(given[self.offset : end], self.n)


class DrawsOfRows(Op):
    """Numbers that the rows of a matrix of words become.

    Parameters
    ----------
    draw
        Op that draws the numbers of a row.
    n
        Length of the vector of a row.
    """

    __props__ = ("draw", "n")

    def __init__(self, draw: Draw, n: int) -> None:
        self.draw, self.n = draw, n

    def make_node(self, words: Variable) -> Apply:
        """Return the node for a matrix of words."""
        words = pt.as_tensor(words)
        shape = (words.type.shape[0], self.n)
        return Apply(self, [words], [tensor(dtype=self.draw.dtype, shape=shape)])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shape of the numbers."""
        return [(shapes[0][0], pt.constant(self.n, dtype="int64"))]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Compute the numbers of each row as the reference does."""
        (words,) = inputs
        outputs[0][0] = np.empty((len(words), self.n), self.draw.dtype)
        for row, given in zip(outputs[0][0], words, strict=True):
            row[:] = self.draw.numbers(given, self.n)


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
    TensorType(uint64, shape=(3,))
    """
    return tensor(name, dtype="uint64", shape=(3,))
