"""PyTensor's calls of SciPy's optimizers as loops around the graph of the function."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import NullTypeGradError, jacobian
from pytensor.graph.basic import Apply
from pytensor.graph.replace import graph_replace
from pytensor.tensor.optimize import (
    MinimizeOp,
    MinimizeScalarOp,
    RootOp,
    RootScalarOp,
    ScipyWrapperOp,
)
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops.minima import by_bfgs, downhill, given_bracket, in_bounds, within
from pytensor_onnx.functions.loops.roots import (
    between,
    by_dogleg,
    by_halving,
    by_secants,
    by_tangents,
)
from pytensor_onnx.functions.loops.search_options import Found, Function, Options, Refused, Stop

_XTOL = 1.48e-8
_BRACKETING = ("brentq", "brenth", "bisect", "ridder", "toms748")
_SMOOTH = {"bfgs", "l-bfgs-b", "cg", "newton-cg", "tnc", "slsqp", "dogleg"}
_SMOOTH |= {"trust-ncg", "trust-krylov", "trust-exact"}


def search(node: Apply) -> Found:
    """Return the search of an optimizer as a graph.

    Parameters
    ----------
    node
        An application of one of PyTensor's Ops that call `scipy.optimize`.

    Returns
    -------
    Found
        The point, in float64 and as a vector for those of vectors, and whether it converged.

    Raises
    ------
    Refused
        If the method or one of its options has no counterpart, or the function has no gradient
        that the method needs.

    Examples
    --------
    >>> from pytensor.tensor.optimize import root_scalar
    >>> x, a = pt.dscalars("x", "a")
    >>> solution, _ = root_scalar(x**2 - a, x, method="brentq", bracket=[0.0, 9.0])
    >>> float(search(solution.owner).point.eval({a: 4.0}, mode="FAST_COMPILE").round(6))
    2.0
    """
    options = Options(node.op.optimizer_kwargs)
    found = _SEARCHES[type(node.op)](node, options)
    options.check_all_taken()
    return found


def _root_of_number(node: Apply, options: Options) -> Found:
    op, (x, *constants) = node.op, _operands(node)
    bracket = _bounds(node, options, "bracket")
    brackets = op.method in _BRACKETING
    stop = Stop(
        options.take(2e-12 if brackets else _XTOL, "xtol"),
        options.take(4 * np.finfo("float64").eps if brackets else 0.0, "rtol"),
        options.take(100 if brackets else 50, "maxiter"),
    )
    if brackets:
        if bracket is None:
            raise Refused(f"method {op.method!r} needs a bracket", "give bracket=(a, b)")
        bracketed = by_halving if op.method == "bisect" else between
        return bracketed(_function(op), pt.as_tensor(bracket), constants, stop)
    if op.method == "secant":
        second = options.take(None, "x1")
        return by_secants(_function(op), x, constants, stop, second)
    if op.method in ("newton", "halley"):
        count = 3 if op.method == "halley" else 2
        return by_tangents([_derivative(op, i) for i in range(count)], x, constants, stop)
    raise Refused(f"method {op.method!r} has no counterpart", 'use "brentq" or "newton"')


def _minimum_of_number(node: Apply, options: Options) -> Found:
    op, (_, *constants) = node.op, _operands(node)
    function = _function(op)
    if op.method == "bounded":
        bounds = _bounds(node, options, "bounds")
        if bounds is None:
            raise Refused("method 'bounded' needs bounds", "give bounds=(a, b)")
        tolerance, steps = options.take(1e-5, "xatol", "tol"), options.take(500, "maxiter")
        return in_bounds(function, pt.as_tensor(bounds), constants, tolerance, steps)
    if op.method not in ("brent", "golden"):
        raise Refused(f"method {op.method!r} has no counterpart", 'use "brent"')
    points = _bounds(node, options, "bracket")
    points = pt.as_tensor([0.0, 1.0] if points is None else points).astype("float64")
    tolerance, steps = options.take(_XTOL, "xtol", "tol"), options.take(500, "maxiter")
    size = points.type.shape[0]
    if size is None:
        raise Refused("it has a bracket of unknown length", "give a bracket of two or three points")
    if size == 3:
        bracket, ok = given_bracket(function, points, constants), pt.ones((), "bool")
    else:
        bracket, ok = downhill(function, points[0], points[1], constants)
    found = within(function, bracket, constants, lambda x: tolerance * pt.abs(x) + 1e-11, steps)
    return found._replace(converged=found.converged & ok)


def _root_of_vector(node: Apply, options: Options) -> Found:
    op, (x, *constants) = node.op, _operands(node)
    if op.method not in ("hybr", "lm"):
        raise Refused(f"method {op.method!r} has no counterpart", 'use "hybr"')
    tolerance = options.take(1.49012e-8, "xtol", "tol")
    evaluations = options.take(100 * (x.size + 1), "maxfev", "maxiter")
    equations, slopes = _of_vector(op, _function(op), 1), _of_vector(op, _jacobian(op), 2)
    return by_dogleg(equations, slopes, x.ravel(), constants, tolerance, evaluations)


def _minimum_of_vector(node: Apply, options: Options) -> Found:
    op, (x, *constants) = node.op, _operands(node)
    if op.method.lower() not in _SMOOTH:
        raise Refused(f"method {op.method!r} has no counterpart", 'use "BFGS"')
    tolerance = options.take(1e-5, "gtol", "tol")
    steps = options.take(200 * x.size, "maxiter")
    value, slopes = _of_vector(op, _function(op), 0), _of_vector(op, _derivative(op, 1), 1)
    return by_bfgs(value, slopes, x.ravel(), constants, tolerance, steps)


_SEARCHES: dict[type[ScipyWrapperOp], Callable[[Apply, Options], Found]] = {
    RootScalarOp: _root_of_number,
    MinimizeScalarOp: _minimum_of_number,
    RootOp: _root_of_vector,
    MinimizeOp: _minimum_of_vector,
}


def _operands(node: Apply) -> list[TensorVariable]:
    """Return the start in float64, and the constants of the function."""
    (x, *constants), _ = node.op.split_inputs(node.inputs)
    return [x.astype("float64"), *constants]


def _bounds(node: Apply, options: Options, name: str) -> Any:
    """Return the bounds of a name: inputs of the node, or an option; None if there are none."""
    _, bounds = node.op.split_inputs(node.inputs)
    given = dict(zip(node.op.bound_kwargs, bounds, strict=True))
    return given.get(name, options.take(None, name))


def _function(op: ScipyWrapperOp) -> Function:
    return _derivative(op, 0)


def _derivative(op: ScipyWrapperOp, order: int) -> Function:
    """Return the function, or its first or second derivative, of a point in float64."""

    def derivative(x, result):  # type: ignore[no-untyped-def]
        for _ in range(order):
            result = pt.grad(result, x, disconnected_inputs="ignore")
        return result

    return _graph(op, derivative)


def _jacobian(op: RootOp) -> Function:
    """Return the derivatives of the equations, a matrix for vectors."""
    return _graph(op, lambda x, result: jacobian(result, x, vectorize=op.use_vectorized_jac))


def _graph(
    op: ScipyWrapperOp, make: Callable[[TensorVariable, TensorVariable], TensorVariable]
) -> Function:
    """Return the function of an expression of the inner graph, with values in float64.

    The expression is made of the variable and the result of that graph.

    Raises
    ------
    Refused
        If an operation of the inner graph has no gradient.
    """
    inner = op.fgraph.unfreeze()
    variables = inner.inputs
    try:
        result = make(variables[0], inner.outputs[0])
    except (NotImplementedError, NullTypeGradError) as error:
        cause = str(error).rpartition("because ")[2].partition("\n")[0].strip()
        raise Refused(f"its function has no gradient: {cause}", "use other operations") from None

    def function(x: TensorVariable, *constants: TensorVariable) -> TensorVariable:
        operands = (x.astype(variables[0].type.dtype), *constants)
        known = {
            old: old.type.filter_variable(new, allow_convert=True)
            for old, new in zip(variables, operands, strict=True)
        }
        (value,) = graph_replace([result], known, strict=False)
        return value.astype("float64")

    return function


def _of_vector(op: ScipyWrapperOp, function: Function, rank: int) -> Function:
    """Return a function of a number as one of a vector, of a rank; others are unchanged."""
    if op.inner_inputs[0].type.ndim:
        return function
    return lambda x, *constants: function(x[0], *constants).reshape((1,) * rank)
