"""Random variables as the expressions of draws from a state that define them.

The definitions stand in `distributions`. They are written into the graph before its rewrites and
become no functions, so that equal draws merge and known parameters are folded.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.compat.pytensor import shape_of_draw
from pytensor_onnx.functions.random.row_draws import RowState
from pytensor_onnx.functions.registry import Definition, Expression, define, definition_of
from pytensor_onnx.ops.random.draws import Draw
from pytensor_onnx.ops.random.sampler_ops import Sampler

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
