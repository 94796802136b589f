"""Ops that draw from a counter, that spawn generators, and that are graphs of ciphers."""

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.type import RandomType
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
        """Return the node for a state, uint64 of shape (3,), and a 0-d length, made int64."""
        state, n = pt.as_tensor(state), pt.as_tensor(n)
        length = int(n.data) if isinstance(n, pt.TensorConstant) else None
        if n.type.dtype != "int64":
            n = n.astype("int64") if length is None else pt.constant(length, dtype="int64")
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


# Define the Ops that draw by inversion or rejection: one number for each element of parameters.
#
# A number draws from a stream of its own, which the counter of the state numbers. So the next state
# does not depend on the parameters or on the attempts of the numbers, and a number not on its place
# in an array. All samplers compute in float64.

Expression = Callable[..., Sequence[Variable]]


class Sampler(Op):
    """Base of the Ops that draw a number for each element of vectors of parameters.

    Attributes
    ----------
    expression
        The definition, as which PyTensor computes the Op too.
    """

    __props__ = ()
    expression: ClassVar[Expression]

    def make_node(self, state: Variable, *parameters: Variable) -> Apply:
        """Return the node for a state, uint64 of shape (3,), and float64 vectors of one length."""
        inputs = [pt.as_tensor(state), *(pt.as_tensor(x, dtype="float64") for x in parameters)]
        length = next((x.type.shape[0] for x in inputs[1:] if x.type.shape[0] is not None), None)
        return Apply(self, inputs, [state_variable(), tensor(dtype="float64", shape=(length,))])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shapes of the state and of the vector."""
        return [(3,), shapes[1]]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw by the definition, computed by PyTensor."""
        results = _in_python(type(self).expression, len(inputs) - 1)(*inputs)
        outputs[0][0], outputs[1][0] = results


class KeyedSampler(Op):
    """Draws of a sampler whose streams have counters of their own, in any order.

    Parameters
    ----------
    sampler
        The sampler.
    """

    __props__ = ("sampler",)
    expression: ClassVar[Callable[..., Variable]]

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def make_node(self, key: Variable, counters: Variable, *parameters: Variable) -> Apply:
        """Return the node for a key, uint64 of shape (2,), and vectors of one length."""
        inputs = [pt.as_tensor(key), pt.as_tensor(counters)]
        inputs += [pt.as_tensor(x, dtype="float64") for x in parameters]
        return Apply(self, inputs, [tensor(dtype="float64", shape=counters.type.shape)])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the shape of the counters."""
        return [shapes[1]]

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Draw by the definition, computed by PyTensor."""
        outputs[0][0] = _keyed_in_python(self.sampler, len(inputs) - 2)(*inputs)


class StandardGamma(Sampler):
    """Gamma number of scale 1, for a shape."""


class LogGamma(Sampler):
    """Logarithm of a gamma number of scale 1, for a shape."""


class StandardPoisson(Sampler):
    """Poisson number for a mean."""


class StandardBinomial(Sampler):
    """Number of successes for a number of trials and a probability."""


class StandardHypergeometric(Sampler):
    """Number of good elements for the numbers of good, bad and drawn ones."""


class StandardVonMises(Sampler):
    """Angle from -pi to pi for a concentration around zero."""


class StandardPolyaGamma(Sampler):
    """Pólya-Gamma number for a shape and a tilt."""


class StandardTruncatedNormal(Sampler):
    """Standard normal number between a lower and an upper bound."""


@cache
def _keyed_in_python(sampler: Sampler, count: int) -> Callable[..., Any]:
    inputs = [tensor(dtype="uint64", shape=(2,)), tensor(dtype="uint64", shape=(None,))]
    inputs += [pt.vector(dtype="float64") for _ in range(count)]
    with pytensor.config.change_flags(floatX="float64"):  # as the definition is made
        result = KeyedSampler.expression(*inputs, sampler=sampler)
    return pytensor.function(inputs, result, mode=Mode("py", None))


@cache
def _in_python(expression: Expression, count: int) -> Callable[..., Any]:
    inputs = [state_variable(), *(pt.vector(dtype="float64") for _ in range(count))]
    with pytensor.config.change_flags(floatX="float64"):  # as the definition is made
        results = expression(*inputs)
    return pytensor.function(inputs, results, mode=Mode("py", None))


class StandardGraph(OpFromGraph):
    """Inner graph that files have as a function of its name, for which runtimes may have kernels.

    Parameters
    ----------
    inputs, outputs
        The graph.
    name
        Name of the function.
    narrow
        Returns the Op of float32 that takes its place in files without float64, None if the graph
        has no floats.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        *,
        name: str,
        narrow: "Callable[[], StandardGraph] | None" = None,
        **settings: Any,
    ) -> None:
        # The inner graph has no names.
        self.parameters = [str(x.name) for x in inputs]
        super().__init__(inputs, outputs, name=name, **settings)
        self.narrow = narrow
