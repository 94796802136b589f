"""Arithmetic in the dtypes that NumPy computes in."""

from collections.abc import Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import (
    Add,
    Cast,
    Mul,
    Pow,
    ScalarType,
    Second,
    Sub,
    Switch,
    TrueDiv,
    UnaryScalarOp,
)
from pytensor.tensor.basic import cast, constant
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.math import add, mul, neg, sub, true_div
from pytensor.tensor.type import TensorType

from pytensor_onnx.rewriting.elementwise.formulas import WIDE, formula_of, is_narrow, is_number
from pytensor_onnx.rewriting.engine.predicates import applies, only_client
from pytensor_onnx.rules import rewrites_graphs, rewrites_nodes

# Compute with numbers in float64 where a float64 result depends on them.
#
# PyTensor makes a float32 constant of the Python number 1.5 and an int8 of 2, as these are exact,
# and so float32 results of ``log(1.5)`` and ``gammaln(2)``. Beside a float64 array, the rounding of
# these decides the result.

REASON = "widen_numbers"
NOT_A_TERM = Switch | Second
"""Operations whose first operand chooses, or has the shape, and is no part of the number."""


@rewrites_graphs(
    family="elementwise",
    purpose="correctness",
    identity="log(1.5f) * x64 = log(1.5) * x64",
    requires="operands of constants alone, a float64 result",
    measured="docs/project/upstream.md#functions-of-numbers-are-computed-in-float32",
)
def widen_numbers(fgraph: FunctionGraph) -> None:
    """Compute the operands of float64 arithmetic in float64 if they are made of constants alone.

    A condition may choose between such operands. Float32 inputs and casts to float32 stay as they
    are, and so does a float32 result.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dscalar("x")
    >>> fgraph = FunctionGraph([x], [pt.log(1.5) * x], clone=False)
    >>> widen_numbers.rewrite(fgraph)
    >>> fgraph.outputs[0].owner.inputs[0].type
    TensorType(float64, shape=())
    """
    nodes = fgraph.toposort()
    if not any(map(_rounded_operands, nodes)):
        return
    numbers = _Numbers()
    for node in nodes:
        for i in _rounded_operands(node):
            if (wide := numbers.widened(node.inputs[i])) is not None:
                # The type of the node stays, and only that of this operand changes.
                fgraph.change_node_input(node, i, wide, reason=REASON, check=False)
        numbers.visit(node)


def _rounded_operands(node: Apply) -> list[int]:
    """Return the positions of operands of float64 arithmetic that may be rounded to float32."""
    if not applies(node) or node.outputs[0].type.dtype != WIDE:
        return []
    operands = enumerate(node.inputs)
    return [i for i, x in operands if is_narrow(x) or formula_of(x) is not None]


class _Numbers:
    """Formulas in float64, by the variables that they replace."""

    def __init__(self) -> None:
        self._wide: dict[Variable, Variable | None] = {}
        self._fixed: dict[Variable, bool] = {}

    def visit(self, node: Apply) -> None:
        """Note the results of a node, whose operands were visited: no recursion is deep."""
        for x in node.outputs:
            self._is_fixed(x)
            if is_narrow(x):
                self.widened(x)

    def widened(self, x: Variable) -> Variable | None:
        """Return a float variable in float64, None if it is not made of constants."""
        if x not in self._wide:
            self._wide[x] = self._of_constant(x) if isinstance(x, Constant) else self._of_result(x)
        return self._wide[x]

    def _of_constant(self, x: Constant) -> Variable:
        formula = formula_of(x)
        wide = None if formula is None else self.widened(formula)
        return constant(x.data.astype(WIDE), name=x.name) if wide is None else wide

    def _of_result(self, x: Variable) -> Variable | None:
        node = x.owner
        if node is None or isinstance(node.op, HasInnerGraph):
            return None
        if applies(node, Cast):
            (operand,) = node.inputs
            if x.type.dtype == WIDE and is_narrow(operand):
                return self.widened(operand)
            return cast(x, WIDE) if isinstance(operand, Constant) else None
        operands = [self._operand(node, i) for i in range(len(node.inputs))]
        if any(operand is None for operand in operands):
            return None
        return _remade(node, [v for v in operands if v is not None], node.outputs.index(x))

    def _operand(self, node: Apply, i: int) -> Variable | None:
        """Return an operand of the wide formula, None if there is none."""
        x = node.inputs[i]
        if i == 0 and applies(node, NOT_A_TERM):
            return x
        if is_narrow(x) or (is_number(x) and self._is_fixed(x)):
            return self.widened(x)
        if not isinstance(x.type, TensorType | ScalarType):
            return None
        if x.type.dtype.startswith(("float", "complex")):
            return None
        if not applies(node) or x.type.dtype == "bool":
            return x
        # The functions of small integers are narrow.
        return cast(x, "int64") if self._is_fixed(x) else None

    def _is_fixed(self, x: Variable) -> bool:
        """Return whether a variable is computed from constants alone."""
        if x not in self._fixed:
            is_result = x.owner is not None and len(x.owner.inputs) > 0
            self._fixed[x] = isinstance(x, Constant) or (
                is_result and all(map(self._is_fixed, x.owner.inputs))
            )
        return self._fixed[x]


def _remade(node: Apply, operands: Sequence[Variable], position: int) -> Variable | None:
    """Return the result of a node remade with other operands, or None if it is not float64."""
    op = node.op
    if isinstance(op, CAReduce):
        op = type(op)(axis=op.axis) if hasattr(op, "dtype") else op
    try:
        made = op.make_node(*operands)
    except (TypeError, ValueError):
        return None
    new = made.outputs[position]
    return new if isinstance(new.type, TensorType) and new.type.dtype == WIDE else None


# Compute arithmetic of float32 numbers in float32 if a float64 result is rounded at once.
#
# A float64 number in a loss (``np.sqrt(2 * np.pi)``) makes part of its gradient float64. The casts
# between the parts would hide cancelling factors from PyTensor's rewrites, as in ``exp(x) * (1 /
# exp(x))``.

_NARROW, _WIDE = "float32", "float64"


@rewrites_nodes(
    [Elemwise],
    family="elementwise",
    purpose="correctness",
    identity="float32(float64(x) * float64(y)) = x * y",
    requires="one operation on float32 numbers, so equal bit for bit",
    ensures="no casts hide factors that cancel, such as exp(x) and 1 / exp(x)",
)
def narrow_arithmetic(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Compute one sum, product or quotient of float32 numbers in float32.

    The result is equal bit for bit: float64 has more than twice the digits of float32.
    """
    if not _is_cast(node, _WIDE, _NARROW):
        return None
    (wide,) = node.inputs
    inner = wide.owner
    if inner is None or inner.op not in (add, sub, mul, true_div, neg) or len(inner.inputs) > 2:
        return None
    if only_client(fgraph, wide) is None:
        return None
    if inner.op == true_div and isinstance(inner.inputs[1], Constant):
        # In float32 the division would become a product with a rounded reciprocal.
        return None
    operands = [_narrow(x) for x in inner.inputs]
    if any(x is None for x in operands):
        return None
    return [inner.op(*operands)]


def _narrow(x: Variable) -> Variable | None:
    """Return the float32 variable or constant that equals a float64 one."""
    if isinstance(x, Constant):
        with np.errstate(over="ignore"):
            narrow = np.asarray(x.data, _NARROW)
        return constant(narrow) if np.array_equal(narrow, x.data) else None
    if x.owner is not None and _is_cast(x.owner, _NARROW, _WIDE):
        return x.owner.inputs[0]
    return None


def _is_cast(node: Apply, source: str, target: str) -> bool:
    is_cast = applies(node, Cast)
    return is_cast and (node.inputs[0].type.dtype, node.outputs[0].type.dtype) == (source, target)


@rewrites_nodes(
    [Elemwise],
    family="elementwise",
    purpose="correctness",
    identity="op(x, y) = op(cast(x, t), cast(y, t))",
    requires="t is the dtype of the result",
    ensures="PyTensor's rewrites neither wrap around nor round",
    measured="docs/project/upstream.md#a-float-minus-an-unsigned-integer-wraps-around",
)
def widen_operands(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Cast the operands of arithmetic, and the base of a power, to the dtype of the result.

    PyTensor's rewrites compute with uncast operands, which wrap around and round: they replace
    ``0.0 - x`` by the uint8 ``-x``, ``log(1.0 + x)`` by the float32 ``log1p(x)``, and a square by
    one of int16. Across a function of integers that returns floats they simplify operations that
    wrap around: ``1 / (2 * x)``.
    """
    dtype = node.outputs[0].type.dtype
    count = _number_of_operands(node, dtype)
    operands, rest = node.inputs[:count], node.inputs[count:]
    if all(x.type.dtype == dtype for x in operands):
        return None
    return [node.op(*(_widened(x, dtype) for x in operands), *rest)]


def _number_of_operands(node: Apply, dtype: str) -> int:
    """Return the number of leading operands that need the dtype of the result."""
    op = node.op.scalar_op
    if isinstance(op, Add | Mul | Sub | TrueDiv):
        return len(node.inputs)
    if isinstance(op, Pow):
        return 1
    is_function = isinstance(op, UnaryScalarOp) and not isinstance(op, Cast)
    of_integers = node.inputs[0].type.dtype.startswith(("int", "uint", "bool"))
    return 1 if is_function and of_integers and dtype.startswith("float") else 0


def _widened(x: Variable, dtype: str) -> Variable:
    if isinstance(x, Constant) and x.type.dtype != dtype:
        return constant(x.data.astype(dtype), name=x.name)
    return cast(x, dtype)
