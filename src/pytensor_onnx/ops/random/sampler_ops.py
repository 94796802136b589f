"""Define the Ops that draw by inversion or rejection: one number for each element of parameters.

A number draws from a stream of its own, which the counter of the state numbers. So the next state
does not depend on the parameters or on the attempts of the numbers, and a number not on its place
in an array. All samplers compute in float64.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor

from pytensor_onnx.ops.random.draws import state_variable

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
