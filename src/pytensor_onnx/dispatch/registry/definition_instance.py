"""The body of a definition for given types, and scalar Ops that are one operator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.scalar import basic as ps, math as psm
from pytensor.scalar.basic import ScalarInnerGraphOp, ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.functions.random.streams import masked
from pytensor_onnx.functions.registry import Definition, definition_of
from pytensor_onnx.functions.special.arithmetic import narrow
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.random.draws import Draw
from pytensor_onnx.rewriting.loops.inner_loops import prepare_definition

# How many graphs are kept for other models. A special function has one for each dtype and rank.
_KEPT = 256


@dataclass(frozen=True, eq=False)
class Specialised:
    """Definition for given attributes, sizes, dtypes and ranks; equal ones are one function.

    Attributes
    ----------
    definition
        Expression registered for the Op.
    keywords
        Attributes of the Op and sizes of core axes that the expression asks for.
    operand_dtypes, dtypes
        Dtypes of the operands and of the results.
    ranks
        Ranks of the operands; None for a function that serves all.
    widens
        Whether functions of float32 may be computed in float64.
    masks_draws
        Whether draws by rejection keep the sizes of arrays.
    """

    definition: Definition
    keywords: Mapping[str, Any]
    operand_dtypes: tuple[str, ...]
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...] | None = None
    widens: bool = True
    masks_draws: bool = False

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """All properties on which the graph depends."""
        dtypes = self.operand_dtypes, self.dtypes
        flags = self.widens, self.masks_draws
        return self.definition, *dtypes, self.ranks, *flags, identity_of(dict(self.keywords))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specialised) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    @property
    def name(self) -> str:
        """The name of the Op."""
        return self.definition.op_type.__name__

    @property
    def variant(self) -> str:
        """The part of the function's name that says which attributes, dtypes and rank it has.

        Integers, which count and index, are named where there are no floats. A number is added
        where this does not tell functions apart.
        """
        texts = (_text_of(k, v) for k, v in self.keywords.items() if k != "dtype")
        rank = [f"batch{self.batch_rank}"] if self.batch_rank else []
        dtypes = dict.fromkeys((*self.operand_dtypes, *self.dtypes))
        floats = [dtype for dtype in dtypes if dtype.startswith("float")]
        parts = [*texts, *(floats or dict.fromkeys(self.operand_dtypes)), *rank]
        return "_".join(part for part in parts if part)

    @property
    def is_standard(self) -> bool:
        """Whether the name tells all that the results depend on, in every version of the package.

        Names tell one dtype of floats, and attributes that are flags, numbers and texts, but not
        whether there are optional operands.
        """
        if issubclass(self.definition.op_type, Draw):  # with the dtype of its numbers
            return self.definition.is_own
        is_named = "dtype" not in self.keywords and all(
            value is None or isinstance(value, bool | int | float | str)
            for value in self.keywords.values()
        )
        has_one_dtype = self.operand_dtypes[:1] in (("float32",), ("float64",))
        has_one_dtype &= len(set(self.operand_dtypes)) == 1
        has_optional = self.definition.has_optional(len(self.operand_dtypes))
        return self.definition.is_own and is_named and has_one_dtype and not has_optional

    @property
    def batch_rank(self) -> int:
        """The number of axes before the core axes."""
        if self.ranks is None:
            return 0
        core, *_ = self.definition.inputs or [()]
        return self.ranks[0] - len(core)

    def of_vectors(self) -> Specialised:
        """Return the same elementwise definition for vectors, itself if it serves every rank."""
        if self.serves_every_rank():
            return self
        return replace(self, ranks=(1,) * len(self.operand_dtypes))

    def serves_every_rank(self, within: frozenset[Specialised] = frozenset()) -> bool:
        """Return whether elementwise operations are all that the expression uses.

        Parameters
        ----------
        within
            Definitions that call this one; calls of themselves are left to the conversion.
        """
        if not self.definition.is_elementwise or self in within:
            return self.definition.is_elementwise
        callers = within | {self}
        return all(_is_elementwise(node, callers) for node in self.graph().apply_nodes)

    def operands(self) -> list[TensorVariable]:
        """Return symbols for the operands, with the static sizes that the expression uses."""
        if self.ranks is None:
            return [tensor(dtype=dtype, shape=()) for dtype in self.operand_dtypes]
        cores = self.definition.inputs or [()] * len(self.ranks)
        shapes = [
            (*[None] * (rank - len(core)), *map(self._size, core))
            for rank, core in zip(self.ranks, cores, strict=True)
        ]
        return [
            tensor(dtype=dtype, shape=shape)
            for dtype, shape in zip(self.operand_dtypes, shapes, strict=True)
        ]

    def _size(self, axis: str) -> int | None:
        """Return the size of a core axis that the function relies on."""
        return int(axis) if axis.isdigit() else self.keywords.get(axis)

    def graph(self) -> FunctionGraph:
        """Return the expression as a graph, with a check that it fits the Op.

        Equal specialisations share one graph, also in other models: it must not be changed. Without
        ranks it is one of numbers, whose loops and branches are left as they are.
        """
        return _graph(self, self.definition.float_x)

    def check(self, results: Sequence[TensorVariable]) -> None:
        """Raise if the results do not have the number, the dtypes or the ranks of the Op's."""
        found = [f"{v.type.dtype} of rank {v.type.ndim}" for v in results]
        cores = self.definition.outputs or [()] * len(self.dtypes)
        ranks = [self.batch_rank + len(core) for core in cores]
        wanted = [f"{d} of rank {r}" for d, r in zip(self.dtypes, ranks, strict=False)]
        if found != wanted or len(self.dtypes) != len(ranks):
            raise UnsupportedCase(
                f"the definition of {self.name} at {self.definition.location} returns "
                f"{', '.join(found) or 'nothing'}, where the Op has {', '.join(wanted)}",
                "cast the results, and check the signature of the definition",
            )


def specialised(
    definition: Definition, op: Op, node: Apply, operand_dtypes: Sequence[str]
) -> Specialised:
    """Return a definition for an Op and its node, for every rank.

    Parameters
    ----------
    definition
        Expression registered for the Op.
    op
        The Op, without the Elemwise or Blockwise that may be around it.
    node
        Apply node: the static sizes of the operands, and the dtypes of the results.
    operand_dtypes
        Dtypes of the operands, which may be cast ones.

    Raises
    ------
    ValueError
        If sizes are known to differ that the signature of the definition has to be equal.
    """
    _check_static_sizes(definition, op, node)
    attributes = {k: getattr(op, k) for k in definition.keywords if k not in _axes(definition)}
    dtypes = tuple(variable.type.dtype for variable in node.outputs)
    keywords = attributes | _known_sizes(definition, node)
    return Specialised(definition, keywords, tuple(operand_dtypes), dtypes)


def _axes(definition: Definition) -> set[str]:
    return set(chain.from_iterable(definition.inputs or ()))


def _check_static_sizes(definition: Definition, op: Op, node: Apply) -> None:
    """Raise if operands have other sizes than the signature of a definition."""
    sizes: dict[str, int] = {}
    for variable, core in zip(node.inputs, definition.inputs or (), strict=False):
        static = variable.type.shape[variable.type.ndim - len(core) :]
        for axis, size in zip(core, static, strict=True):
            if size is not None and sizes.setdefault(axis, size) != size:
                raise ValueError(
                    f"{type(op).__name__}: operands of shapes "
                    f"{', '.join(str(v.type.shape) for v in node.inputs)} "
                    f"have the sizes {sizes[axis]} and {size} where they must be equal"
                )


def _known_sizes(definition: Definition, node: Apply) -> dict[str, int | None]:
    """Return the sizes of core axes that the expression uses, None for unknown ones.

    A size that only some of the operands are known to have is unknown: the others may have another
    one, which the expression has to check.
    """
    sizes: dict[str, int | None] = {}
    for variable, core in zip(node.inputs, definition.inputs or (), strict=False):
        static = variable.type.shape[variable.type.ndim - len(core) :]
        for axis, size in zip(core, static, strict=True):
            if axis in definition.keywords:
                sizes[axis] = None if size is None else sizes.get(axis, size)
    largest = definition.known_up_to
    return {
        k: n if n is None or largest is None or n <= largest else None for k, n in sizes.items()
    }


@lru_cache(maxsize=_KEPT)
def _graph(case: Specialised, float_x: str) -> FunctionGraph:
    """Return the graph of a case, as the expression makes it under a ``floatX``."""
    operands = case.operands()
    with narrow(not case.widens), masked(case.masks_draws):
        results = case.definition(*operands, **case.keywords)
    case.check(results)
    fgraph = FunctionGraph(operands, results, clone=False)
    if case.ranks is not None:
        prepare_definition(fgraph)
    return fgraph


def _is_elementwise(node: Apply, callers: frozenset[Specialised]) -> bool:
    """Return whether a node, or the definition of its Op, consists of elementwise operations."""
    op = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
    if isinstance(op, ScalarInnerGraphOp):
        return all(_is_elementwise(inner, callers) for inner in op.fgraph.apply_nodes)
    definition = definition_of(type(op))
    if definition is None or type(op) in OPERATORS:
        return isinstance(op, ScalarOp)
    dtypes = [node.outputs[0].type.dtype] * len(node.inputs)
    return specialised(definition, op, node, dtypes).serves_every_rank(callers)


def identity_of(value: Any) -> Hashable:
    """Return a key that equal values share: arrays, lists, dictionaries and numbers as well.

    Numbers that are equal and of different types are told apart, as are both zeros; objects that
    have no hash are equal to themselves alone.

    Examples
    --------
    >>> identity_of([1.0]) == identity_of([1]), identity_of(0.0) == identity_of(-0.0)
    (False, False)
    >>> identity_of({"a": np.arange(3)}) == identity_of({"a": np.arange(3)})
    True
    """
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return type(value), tuple(map(identity_of, value))
    if isinstance(value, dict):
        return dict, tuple((identity_of(k), identity_of(v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return type(value), frozenset(map(identity_of, value))
    if isinstance(value, float | complex):
        return type(value), repr(value)
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return type(value), value


class _Itself(NamedTuple):
    """An object that is equal to itself alone."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _text_of(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return keyword if value else ""
    return f"{keyword}_{value}" if isinstance(value, int | float | str | tuple) else ""


def refuse_recursion(case: Specialised, build: Builder) -> None:
    """Raise if a definition is called by itself."""
    if case in build.scope.unfinished:
        raise build.unsupported(
            f"the definition of {case.name} at {case.definition.location} calls itself",
            "write it with other operations, or give the calls other attributes",
        )


OPERATORS: dict[type[ScalarOp], str] = {
    ps.Exp: "Exp",
    ps.Log: "Log",
    ps.Sqrt: "Sqrt",
    ps.Sin: "Sin",
    ps.Cos: "Cos",
    ps.Tan: "Tan",
    ps.ArcSin: "Asin",
    ps.ArcCos: "Acos",
    ps.ArcTan: "Atan",
    ps.Sinh: "Sinh",
    ps.Cosh: "Cosh",
    ps.Tanh: "Tanh",
    ps.ArcSinh: "Asinh",
    ps.ArcCosh: "Acosh",
    ps.ArcTanh: "Atanh",
    ps.Ceil: "Ceil",
    ps.Floor: "Floor",
    ps.RoundHalfToEven: "Round",
    ps.Reciprocal: "Reciprocal",
    ps.TrueDiv: "Div",
    ps.Sub: "Sub",
    ps.Sign: "Sign",
    psm.Erf: "Erf",
    psm.Sigmoid: "Sigmoid",
    psm.Softplus: "Softplus",
}
COMPARISONS: dict[type[ScalarOp], str] = {
    ps.LT: "Less",
    ps.GT: "Greater",
    ps.LE: "LessOrEqual",
    ps.GE: "GreaterOrEqual",
    ps.EQ: "Equal",
}
LOGICAL_AND_BITWISE: dict[type[ScalarOp], tuple[str, str]] = {
    ps.AND: ("And", "BitwiseAnd"),
    ps.OR: ("Or", "BitwiseOr"),
    ps.XOR: ("Xor", "BitwiseXor"),
    ps.Invert: ("Not", "BitwiseNot"),
}
