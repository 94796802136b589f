"""Compute with numbers in float64 where a float64 result depends on them.

PyTensor makes a float32 constant of the Python number 1.5 and an int8 of 2, as these are exact,
and so float32 results of ``log(1.5)`` and ``gammaln(2)``. Beside a float64 array, the rounding of
these decides the result.
"""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.scalar.basic import Cast, ScalarType, Second, Switch
from pytensor.tensor.basic import cast, constant
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.type import TensorType

from pytensor_onnx.rewriting.elementwise.formulas import WIDE, formula_of, is_narrow, is_number
from pytensor_onnx.rewriting.engine.predicates import applies
from pytensor_onnx.rules import rewrites_graphs

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
