"""Draws of continuous distributions.

The definitions stand in `distributions`. They are written into the graph before its rewrites and
become no functions, so that equal draws merge and known parameters are folded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable, TensorVariable as V

from pytensor_onnx.compat.pytensor import shape_of_draw
from pytensor_onnx.functions.random.streams import (
    counter_uniforms,
    everywhere,
    keys,
    normals,
    positions,
    put,
    samples,
    spare_uniform,
    taken,
    uniforms,
    until_drawn,
)
from pytensor_onnx.functions.registry import Definition, Expression, define, definition_of
from pytensor_onnx.ops.random.draws import (
    Draw,
    DrawsOfRows,
    KeyedSampler,
    LogGamma,
    Sampler,
    StandardGamma,
    StandardTruncatedNormal,
    StandardVonMises,
    Threefry,
)
from pytensor_onnx.ops.special import portable

# Draw numbers that depend on the key of a row, and not on the place of the row in a table.
#
# A row has the key of a seed and of the row; the numbers of a row are those of its first counters.

_COUNTERS = 2**32
"""Block numbers of counters of samplers, which follow those of words."""

_SAMPLERS = 0x9E3779B97F4A7C15
"""Second word of the keys of samplers."""


@dataclass(frozen=True)
class RowState:
    """The state of a generator of each row.

    Attributes
    ----------
    seed, keys
        The seed, 0-d, and the keys of the rows, a vector, both uint64.
    stream
        Number of the generator.
    draws
        Number of draws of each row, the size of the first axis.
    axis
        Axis of the rows in the drawn array, after the first.
    used
        Number of blocks that draws before have used in each row.
    """

    seed: V
    keys: V
    stream: int
    draws: int
    axis: int
    used: int = 0

    @property
    def type(self) -> Any:
        """Raise, as a loop takes the state of one generator.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("its sampler is a loop over one generator")

    def drawn(self, op: Draw, shape: Sequence[V]) -> tuple[RowState, V]:
        """Return the next state, and an Op's draws of a shape."""
        others = self._others(shape)
        n = reduce(lambda a, b: a * b, others, 1)
        count = int(op.words(n))
        words, after = self._words(count, self.stream)
        numbers = DrawsOfRows(op, n)(words)
        return after, self._placed(numbers, others)

    def sampled(
        self, op: Sampler, shape: Sequence[V], parameters: Sequence[V]
    ) -> tuple[RowState, V]:
        """Return the next state, and the numbers of a sampler for parameters of a shape."""
        others = self._others(shape)
        count = reduce(lambda a, b: a * b, others, 1)
        words, after = self._words(count, _COUNTERS + self.stream)
        counters = self._placed(words, others)
        shape = [counters.shape[i] for i in range(len(shape))]
        flat = [pt.broadcast_to(x.astype("float64"), shape).flatten() for x in parameters]
        key = pt.stack([self.seed, pt.constant(np.uint64(_SAMPLERS))])
        numbers = KeyedSampler(op)(key, counters.flatten(), *flat)
        return after, pt.reshape(numbers, shape, ndim=len(shape))

    def _words(self, count: int, number: int) -> tuple[V, RowState]:
        """Return a number of words of each row, as a matrix, and the next state."""
        blocks = -(-count // 2)
        places = pt.constant(np.arange(self.used, self.used + blocks, dtype="uint64"))
        pair = Threefry()(
            self.seed, self.keys[:, None], places[None, :], pt.constant(np.uint64(number))
        )
        both = pt.stack(list(pair), axis=-1)
        words = pt.reshape(both, (self.keys.shape[0], 2 * blocks))[:, :count]
        return words, replace(self, used=self.used + blocks)

    def _others(self, shape: Sequence[V]) -> list[int]:
        """Return the sizes of the axes without the rows.

        Raises
        ------
        ValueError
            If one is unknown.
        """
        others = [n for i, n in enumerate(shape) if i not in (0, self.axis)]
        if not all(isinstance(n, pt.TensorConstant) for n in others):
            raise ValueError("the size of an axis other than that of the rows is not known")
        return [self.draws, *(int(n.data) for n in others)]

    def _placed(self, numbers: V, others: Sequence[int]) -> V:
        """Return numbers of rows, a matrix, in a shape with the axis of the rows in its place."""
        shaped = pt.reshape(numbers, (self.keys.shape[0], *others), ndim=1 + len(others))
        return pt.moveaxis(shaped, 0, self.axis)


type State = Variable | RowState
type Drawn = tuple[State, TensorVariable]
Sizes = Sequence[TensorVariable]
Transform = Callable[..., TensorVariable]

_BY_NAME: dict[str, Definition] = {}


def draw(node: Apply, state: State) -> Drawn | None:
    """Return the next state and the draw of a random variable, or None if it has no sampler.

    Parameters
    ----------
    node
        Node of a `RandomVariable`.
    state
        State of the generator: a vector of three uint64, or states of rows.
    """
    op = node.op
    definition = sampler_of(op)
    if definition is None or (op.ndim_supp and op.batch_ndim(node) and not definition.batches):
        return None
    parameters = op.dist_params(node)
    shape = _sizes(shape_of_draw(op, op.size_param(node), parameters))
    dtype = node.outputs[1].type.dtype
    attributes = {k: dtype if k == "dtype" else getattr(op, k) for k in definition.keywords}
    results = definition(state, shape, *parameters, **attributes)
    states = [1] if isinstance(state, RowState) else [getattr(results[0].type, "ndim", None)]
    ranks = states + [getattr(result.type, "ndim", None) for result in results[1:]]
    if ranks != [1, len(shape)]:
        raise TypeError(
            f"the definition of {type(op).__name__} at {definition.location} returns results of "
            f"ranks {ranks}, and not a state and draws of rank {len(shape)}"
        )
    after, result = results
    return after, result.astype(dtype)


def sampler_of(op: RandomVariable) -> Definition | None:
    """Return the definition of a random variable, None if there is none."""
    name = f"{type(op).__module__}.{type(op).__qualname__}"
    return definition_of(type(op)) or _BY_NAME.get(name)


def define_by_name(name: str) -> Callable[[Expression], Expression]:
    """Register the definition of a random variable of a package that is not imported.

    Parameters
    ----------
    name
        Module and class, such as ``"pymc.distributions.continuous.RiceRV"``.
    """

    def register(expression: Expression) -> Expression:
        _BY_NAME[name] = Definition(RandomVariable, expression)
        return expression

    return register


def drawn(op: Draw, state: State, shape: Sizes) -> Drawn:
    """Return the next state, and an Op's draws of a shape."""
    if isinstance(state, RowState):
        return state.drawn(op, shape)
    known = [_known(n) for n in shape]
    if None in known:
        n = reduce(lambda a, b: a * b, shape)
    else:
        n = pt.constant(np.prod([size or 0 for size in known], dtype="int64"))
    after, flat = op(state, n)
    return after, flat if len(shape) == 1 else pt.reshape(flat, shape, ndim=len(shape))


def sampled(op: Sampler, state: State, shape: Sizes, *parameters: TensorVariable) -> Drawn:
    """Return the next state, and the numbers of a sampler for parameters broadcast to a shape."""
    if isinstance(state, RowState):
        return state.sampled(op, shape, parameters)
    flat = [pt.broadcast_to(x.astype("float64"), shape).flatten() for x in parameters]
    after, numbers = op(state, *flat)
    return after, pt.reshape(numbers, shape, ndim=len(shape))


def counted(op: Sampler, state: State, shape: Sizes, *parameters: TensorVariable) -> Drawn:
    """Return the next state and whole numbers; raise if a number was not drawn, which is NaN."""
    after, numbers = sampled(op, state, shape, *parameters)
    return after, require(numbers, ~pt.isnan(numbers), "no number was accepted", RuntimeError)


def _sizes(shape: Sequence[Variable]) -> Sizes:
    """Return sizes as 0-d int64 tensors, as constants where they can be told."""
    sizes, static = infer_static_shape(shape)
    return [
        pt.as_tensor(n, dtype="int64") if known is None else pt.constant(np.int64(known))
        for n, known in zip(sizes, static, strict=True)
    ]


def _known(size: Variable) -> int | None:
    return int(size.data) if isinstance(size, pt.TensorConstant) else None


def transforms(
    op_type: type[Draw], rv: type[RandomVariable], *not_negative: str
) -> Callable[[Transform], Transform]:
    """Register a function of standard numbers and parameters as the distribution of a variable.

    Parameters
    ----------
    op_type
        Draws the standard numbers.
    rv
        The random variable.
    not_negative
        Names of parameters that must not be negative.
    """

    def register(transform: Transform) -> Transform:
        names = list(inspect.signature(transform).parameters)[1:]

        def distribution(
            state: Variable, shape: Sizes, *parameters: TensorVariable, dtype: str
        ) -> Drawn:
            computed = dtype if dtype in ("float32", "float64") else "float32"
            after, standard = drawn(op_type(computed), state, shape)
            given = [
                require(x, ~(x < 0), f"{name} < 0") if name in not_negative else x
                for name, x in zip(names, parameters, strict=True)
            ]
            return after, transform(standard, *(x.astype(computed) for x in given))

        define(rv)(distribution)
        return transform

    return register


def require(
    x: TensorVariable,
    holds: TensorVariable,
    message: str,
    error: type[Exception] = ValueError,
) -> TensorVariable:
    """Return a parameter that is checked: where something does not hold, the draw raises."""
    return CheckAndRaise(error, message)(x, pt.all(holds))


@samples(StandardVonMises, 1)
def standard_vonmises(state: V, kappa: V) -> tuple[V, V]:
    """Draw angles around zero from a wrapped Cauchy distribution until one is accepted.

    From D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
    Statistics 28 (1979) 152-157. Their formulas in cosines are written by half the tangent here,
    so that nothing cancels however large or small the concentration is: their ``s - 1`` is
    ``distance / kappa``.
    """
    after, key, counters = keys(state, kappa.shape[0])
    distance = (1 + 1 / (pt.sqrt(1 + 4 * kappa * kappa) + 2 * kappa)) / 2
    width = 1 / pt.sqrt(1 + 2 * kappa / distance)

    def attempt(k: V, key: V, counters: V, kappa: V, *shape: V) -> tuple[V, V, list[V]]:
        distance, width = shape
        u, v = uniforms(k, key, counters, 2)
        tangent = width * portable.cot_pi(u)
        square = tangent * tangent
        y = distance + 2 * kappa * square / (1 + square)
        # NaN is accepted, so that a concentration that is NaN needs no more attempts.
        is_drawn = ~(portable.log(y / v) + 1 - y < 0)
        return 2 * pt.arctan(tangent), is_drawn, [counters, kappa, distance, width]

    start = [counters, kappa, distance, width]
    return after, until_drawn(attempt, pt.zeros_like(kappa), everywhere(kappa), start, [key])


_WIDE = np.sqrt(2 * np.pi)


@samples(StandardTruncatedNormal, 2)
def standard_truncated_normal(state: V, lower: V, upper: V) -> tuple[V, V]:
    """Draw normal, uniform or exponential numbers until one is accepted.

    From C. P. Robert, "Simulation of truncated normal variables", Statistics and Computing 5 (1995)
    121-125: exponential numbers in a tail, and between bounds around zero uniform ones if these are
    near. Half of the attempts succeed at least.
    """
    after, key, counters = keys(state, lower.shape[0])
    first = counter_uniforms(state, lower.shape[0])
    is_flipped = upper < 0
    low, high = pt.switch(is_flipped, -upper, lower), pt.switch(is_flipped, -lower, upper)

    def attempt(k: V, key: V, counters: V, first: V, low: V, high: V) -> tuple[V, V, list[V]]:
        u, angle, v = uniforms(k, key, counters, 3, first)
        width = high - low
        normal = normals(u, angle)
        uniform = low + width * u
        rate = (low + pt.sqrt(low * low + 4)) / 2
        beyond = -portable.log1p(u * portable.expm1(-rate * width)) / rate
        is_tail, is_wide = low > 0, width > _WIDE
        x = pt.switch(is_tail, low + beyond, pt.switch(is_wide, normal, uniform))
        # The distance of a tail's number from the rate; it includes ``low - rate``.
        distance = pt.switch(is_tail, beyond - 1 / rate, uniform)
        by_density = ~(portable.log(v) > -distance * distance / 2)
        is_inside = ~((normal < low) | (normal > high))
        is_drawn = pt.switch(is_tail | ~is_wide, by_density, is_inside)
        return pt.clip(x, low, high), is_drawn, [counters, first, low, high]

    start = [counters, first, low, high]
    x = until_drawn(attempt, pt.zeros_like(lower), everywhere(lower), start, [key])
    return after, pt.switch(is_flipped, -x, x)


@samples(StandardGamma, 1)
def standard_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw gamma numbers; small shapes are drawn as logarithms, which do not underflow."""
    after, x, where, small = _gammas(state, shape)
    return after, put(x, where, portable.exp(portable.log(taken(x, where)) + small))


@samples(LogGamma, 1)
def log_gamma(state: V, shape: V) -> tuple[V, V]:
    """Draw logarithms of the same gamma numbers."""
    after, x, where, small = _gammas(state, shape)
    x = portable.log(x)
    return after, put(x, where, taken(x, where) + small)


def _gammas(state: V, shape: V) -> tuple[V, V, V, V]:
    """Return the next state, gamma draws, and the factors that correct draws of shapes below one.

    For a shape below one, a number is drawn for the shape plus one. The corrections are the
    positions of these numbers and the logarithms of their factors ``u**(1 / shape)``.
    """
    after, key, counters = keys(state, shape.shape[0])
    u = counter_uniforms(state, shape.shape[0])
    x = _of_large_shape(key, counters, u, shape)
    where, (few, small) = positions(shape < 1, counters, shape)
    return after, x, where, portable.log(spare_uniform(key, few)) / small


def _of_large_shape(key: V, counters: V, first: V, shape: V) -> V:
    """Draw gamma numbers; for shapes below one, draw with the shape plus one.

    From G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM Trans.
    Math. Softw. 26 (2000) 363-372. Of 100 attempts 95 succeed at least, most by the squeeze.
    """
    d = pt.switch(shape < 1, shape + 1, shape) - 1 / 3
    c = 1 / pt.sqrt(9 * d)

    def attempt(k: V, key: V, counters: V, first: V, d: V, c: V) -> tuple[V, V, list[V]]:
        *pair, u = uniforms(k, key, counters, 3, first)
        x = normals(*pair)
        y = c * x
        root = 1 + y
        square = x * x
        is_drawn = u < 1 - 0.0331 * square * square
        where, (u, y, square, d_) = positions(~is_drawn, u, y, square, d)
        exponent = square / 2 + 3 * d_ * (portable.log1p(y) - y - y * y - y * y * y / 3)
        # NaN is accepted, so that a shape that is NaN needs no more attempts.
        is_drawn = put(is_drawn, where, ~(portable.log(u) >= exponent))
        return d * root * root * root, is_drawn & ~(root <= 0), [counters, first, d, c]

    start = [counters, first, d, c]
    return until_drawn(attempt, pt.zeros_like(shape), everywhere(shape), start, [key])
