"""The registry of imported operators, by groups, with their types."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir as ir
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Argmax, Dot, Max
from pytensor.tensor.shape import Reshape, Shape_i
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry import known_values
from pytensor_onnx.importing.registry.narrow_types import NARROW, wide_dtype
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.operators.inference import signature
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.rewriting.engine.predicates import elementwise

MACHINE_LEARNING = "ai.onnx.ml"
OF_STRING_LABELS = (
    "import the probabilities alone, from_onnx(model, outputs=[their name]), or train with labels "
    "that are integers"
)
"""Way out for classifiers whose labels PyTensor has no arrays of."""

_FACTS = {"kept_axes", "outputs", "rank"}
_IMPORTS: defaultdict[tuple[str, str], list[OperatorImport]] = defaultdict(list)


@dataclass(frozen=True)
class OperatorImport:
    """How an operator becomes a PyTensor expression, from one version on.

    Attributes
    ----------
    operator, domain
        Name of the operator and its domain, empty for the operators of the standard.
    since
        First opset of the domain with this meaning of the operator.
    function
        Function of the operands, None where an optional one is left out, with the attributes as
        keyword arguments. It returns one variable, a list, or NotImplemented for the function of
        the standard.
    attributes
        Names of the attributes.
    facts
        Keywords for facts of the node: ``outputs``, the number of its results, ``rank``, the
        number of axes that the file gives the first one, or None, and ``kept_axes``, the axes,
        counted from the last, of equal sizes in the first operand and the first result.
    """

    operator: str
    domain: str
    since: int
    function: Callable[..., Any]
    attributes: frozenset[str]
    facts: frozenset[str]
    types: Callable[..., Sequence[TensorType] | None] | None = None


def onnx_import[F: Callable[..., Any]](
    *operators: str,
    since: int = 1,
    domain: str = "",
    types: Callable[..., Sequence[TensorType] | None] | None = None,
) -> Callable[[F], F]:
    """Register a function as the import of operators.

    Parameters
    ----------
    operators
        Names of the operators that the function computes.
    since
        First opset with this meaning; a later registration takes its place from its opset on.
    domain
        Domain of the operators.
    types
        Function of operands and attributes that returns the types of the results, where their
        expression is large: it is then built when something needs it. None where it does not
        know them.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> @onnx_import("Twice", domain="example")
    ... def twice(x, *, offset=0):
    ...     return 2 * x + offset
    >>> sorted(import_of("example", "Twice", 1).attributes)
    ['offset']
    """

    def register(function: F) -> F:
        keywords = {
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        }
        facts = frozenset(keywords & _FACTS)
        attributes = frozenset(keywords - facts)
        for operator in operators:
            known = _IMPORTS[domain, operator]
            known.append(
                OperatorImport(operator, domain, since, function, attributes, facts, types)
            )
            known.sort(key=lambda entry: entry.since)
        return function

    return register


@cache
def import_of(domain: str, operator: str, opset: int) -> OperatorImport | None:
    """Return the import of an operator in an opset, or None."""
    _load()
    entries = [entry for entry in _IMPORTS.get((domain, operator), ()) if entry.since <= opset]
    return entries[-1] if entries else None


def imported_operators() -> list[str]:
    """Return the names of the standard operators that are imported."""
    _load()
    return sorted(operator for domain, operator in _IMPORTS if not domain)


@cache
def _load() -> None:
    """Import the modules of all families, which register their operators."""
    package = __name__.rpartition(".registry")[0]
    import_modules(package)
    for family in ("control_flow", "loops", "networks"):
        import_modules(f"{package}.{family}")


def operands_of(variable: Variable | None, op_type: Any) -> list[Any] | None:
    """Return the operands of the operation of a type that computes a variable, or None."""
    node = getattr(variable, "owner", None)
    return list(node.inputs) if node is not None and isinstance(node.op, op_type) else None


def simplified(
    operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> TensorVariable | None:
    """Return the operation that a group of operators ending in one stands for, or None.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> is_large = pt.vector("x") > 1
    >>> largest = pt.max(is_large.astype("int32"))
    >>> print(simplified("Greater", [largest, pt.constant(0, dtype="int32")], {}).owner.op)
    Any{axes=None}
    """
    pattern = _PATTERNS.get(operator)
    return pattern(*operands, **attributes) if pattern else None


def _where(condition: Any, a: Any, b: Any) -> TensorVariable | None:
    """Return the position of the first maximum, or a product, without its guard.

    NaN is PyTensor's largest number, and its product along an axis of no elements is zero.
    """
    a, b = _as_argmax(a), _as_argmax(b)
    for_nan, for_numbers = operands_of(a, Argmax), operands_of(b, Argmax)
    if for_nan is not None and for_numbers is not None:
        mask, x = operands_of(for_nan[0], Elemwise), for_numbers[0]
        is_guard = a.owner.op == b.owner.op and elementwise(for_nan[0], ps.Cast)
        if is_guard and mask is not None and elementwise(mask[0], ps.IsNan):
            return b if mask[0].owner.inputs[0] is x else None
        return None
    factors = operands_of(b, Dot | Blockwise)
    if factors is None or not elementwise(condition, ps.EQ):
        return None
    is_product = isinstance(b.owner.op, Dot) or isinstance(b.owner.op.core_op, Dot)
    size, zero = condition.owner.inputs
    while size.owner is not None and isinstance(size.owner.op, DimShuffle | MakeVector):
        size = size.owner.inputs[0]
    of_size = operands_of(size, Shape_i)
    numbers = [known_values.known(before_broadcast(v)) for v in (zero, a)]
    are_zero = all(value is not None and not value.any() for value in numbers)
    return b if is_product and are_zero and of_size and of_size[0] in factors else None


def _as_argmax(x: Any) -> Any:
    """Return the position of a maximum as PyTensor's operation, other variables as they are."""
    op = getattr(x.owner, "op", None)
    if not isinstance(op, KeptOperator) or op.operator != "ArgMax":
        return x
    (result,) = inline_ofg_node(x.owner)
    return x if operands_of(result, Argmax) is None else result


def _extremum_of_bool(x: Any, is_negated: bool = False) -> TensorVariable | None:
    """Return whether any, or all, elements are true, for an extremum of these as integers."""
    operands = operands_of(x, Max | KeptOperator)
    if operands is None or not elementwise(operands[0], ps.Cast):
        return None
    (mask,), op = operands[0].owner.inputs, x.owner.op
    is_minimum = isinstance(op, KeptOperator) and op.operator == "ReduceMin"
    if mask.type.dtype != "bool" or not (isinstance(op, Max) or (is_minimum and x.type.ndim == 0)):
        return None
    mask = pt.invert(mask) if is_negated else mask
    axis = None if is_minimum else op.axis
    return (pt.all if is_minimum is not is_negated else pt.any)(mask, axis=axis)


def _cast(x: Any, *, to: int, **_: Any) -> TensorVariable | None:
    return _extremum_of_bool(x) if to == _BOOL else None


def _greater(x: Any, y: Any) -> TensorVariable | None:
    return _extremum_of_bool(x) if _is_zero(y) else None


def _less_or_equal(x: Any, y: Any) -> TensorVariable | None:
    return _extremum_of_bool(x, is_negated=True) if _is_zero(y) else None


def _is_zero(x: Variable) -> bool:
    value = known_values.known(x)
    return value is not None and value.ndim == 0 and value == 0


_BOOL = 9
_PATTERNS: dict[str, Callable[..., TensorVariable | None]] = {
    "Cast": _cast,
    "Greater": _greater,
    "LessOrEqual": _less_or_equal,
    "Where": _where,
}


def columns(indices: TensorVariable, depth: int) -> list[TensorVariable]:
    """Return the elements of a last axis; the parts themselves, if it joins them.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> rows, places = pt.lvectors("rows", "places")
    >>> columns(pt.stack([rows, places], axis=-1), 2)
    [rows, places]
    """
    last = indices.type.ndim - 1
    joined = operands_of(indices, Join)
    is_last = indices.owner is not None and getattr(indices.owner.op, "axis", None) == last
    if joined is not None and is_last and all(part.type.shape[-1] == 1 for part in joined):
        return [_without_last_axis(part) for part in joined]
    if depth == 1:
        return [_without_last_axis(indices)]
    return [indices[..., i] for i in range(depth)]


def _without_last_axis(x: TensorVariable) -> TensorVariable:
    op = getattr(x.owner, "op", None)
    if isinstance(op, DimShuffle) and op.new_order[-1] == "x":
        (source,) = x.owner.inputs
        order = op.new_order[:-1]
        return source if order == tuple(range(source.type.ndim)) else source.dimshuffle(order)
    return x[..., 0]


def before_broadcast(x: TensorVariable) -> TensorVariable:
    """Return an array whose broadcast another one is, where that is known.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, n = pt.dscalar("x"), pt.lscalar("n")
    >>> before_broadcast(pt.broadcast_to(x, (n, 2)).reshape((-1,)))
    x
    """
    operands = operands_of(x, Alloc)
    if operands is not None:
        return before_broadcast(operands[0])
    operands = operands_of(x, (Reshape, DimShuffle))
    if operands is not None:
        inner = before_broadcast(operands[0])
        return inner if inner.type.ndim == 0 else x
    return x


_NOT_OF_PYTENSOR = "PyTensor has no arrays of {}"


def dtype_name(dtype: ir.DataType) -> str:
    """Return the name of a dtype in PyTensor, for types of few bits that of their wide arrays.

    Raises
    ------
    UnsupportedCase
        If PyTensor has no such arrays.

    Examples
    --------
    >>> dtype_name(ir.DataType.FLOAT), dtype_name(ir.DataType.BOOL)
    ('float32', 'bool')
    """
    name = wide_dtype(dtype) if dtype in NARROW else _NAMES.get(dtype)
    if name is None:
        raise UnsupportedCase(_NOT_OF_PYTENSOR.format(dtype.name.lower()))
    return name


_NAMES = {
    ir.DataType.BOOL: "bool",
    ir.DataType.COMPLEX64: "complex64",
    ir.DataType.COMPLEX128: "complex128",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    **{
        ir.DataType[f"{kind.upper()}{bits}"]: f"{kind}{bits}"
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}


def result_dtypes(
    domain: str, operator: str, opset: int, operands: Sequence[Variable | None], count: int
) -> list[str | None]:
    """Return the dtypes of results that the operands determine, None for others.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> result_dtypes("", "TopK", 21, [pt.fvector(), pt.lvector()], 2)
    ['float32', 'int64']
    """
    types = signature(operator, opset, domain)
    if types is None:
        return [None] * count
    bound: dict[str | None, str] = {}
    for position, operand in enumerate(operands if types.inputs else ()):
        variable = types.input_type(position)
        if operand is not None and isinstance(variable, str):
            bound.setdefault(variable, getattr(operand.type, "dtype", ""))
    last = len(types.outputs) - 1
    results = [types.outputs[min(position, last)] for position in range(count)]
    return [_NAMES.get(r) if isinstance(r, ir.DataType) else bound.get(r) or None for r in results]
