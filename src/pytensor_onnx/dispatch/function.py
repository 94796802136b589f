"""Calls of model-local functions that are defined by PyTensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.traversal import apply_ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, NestedProblems, convert_inner, onnx_funcify
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.functions.registry import DEFINITIONS, Definition
from pytensor_onnx.inference import dtype_of
from pytensor_onnx.rewriting.definition_loops import keep_read_steps

_NO_LOWERING = onnx_funcify.dispatch(object)


@onnx_funcify.register(Op)
def lower_defined(op: Op, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Call the function that defines an Op."""
    definition = DEFINITIONS.get(type(op))
    if definition is None:
        return _NO_LOWERING(op, node, onnx, *inputs)
    return call_definition(definition, op, node, onnx, inputs)


def batches(op: Op) -> bool:
    """Return whether the definition of an Op takes axes before its core axes."""
    definition = DEFINITIONS.get(type(op))
    return definition is not None and not definition.is_elementwise and definition.batches


def call_definition(
    definition: Definition, op: Op, node: Apply, onnx: Builder, inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call the function that a PyTensor expression defines.

    Parameters
    ----------
    definition
        Expression registered for the Op.
    op
        The Op, without the Elemwise or Blockwise that may be around it.
    node
        Apply node: the static sizes of the operands, and the dtypes of the results.
    onnx
        Builder that receives the call.
    inputs
        Operands, with axes before the core axes where the definition batches.
    """
    attributes = {k: getattr(op, k) for k in definition.keywords if k not in _axes(definition)}
    sizes = _known_sizes(definition, node)
    dtypes = [variable.type.dtype for variable in node.outputs]
    return _call(definition, onnx, inputs, {**attributes, **sizes}, dtypes)


def decompositions() -> dict[str, Callable[..., ir.Value]]:
    """Return, for the operators of ONNX that a definition exists for, what calls the definition."""
    from pytensor_onnx.dispatch.scalar import OPERATORS

    def call(definition: Definition) -> Callable[..., ir.Value]:
        def decomposed(onnx: Builder, *inputs: ir.Value) -> ir.Value:
            dtype = str(dtype_of(inputs[0]).numpy())
            return _call(definition, onnx, inputs, {}, [dtype])[0]

        return decomposed

    return {
        operator: call(DEFINITIONS[op_type])
        for op_type, operator in OPERATORS.items()
        if op_type in DEFINITIONS
    }


def _call(
    definition: Definition,
    onnx: Builder,
    inputs: Sequence[ir.Value],
    keywords: Mapping[str, Any],
    dtypes: Sequence[str],
) -> list[ir.Value]:
    if definition.is_elementwise and inputs[0].dtype == ir.DataType.FLOAT16:
        wide = [onnx.cast(x, "float32") for x in inputs]
        results = _call(definition, onnx, wide, keywords, ["float32"] * len(dtypes))
        return [onnx.cast(x, dtype) for x, dtype in zip(results, dtypes, strict=True)]
    case = _Case(definition, keywords, tuple(str(dtype_of(x).numpy()) for x in inputs), dtypes)
    if not case.serves_every_rank():
        case = replace(case, ranks=tuple(len(onnx.dims(x)) for x in inputs))

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        try:
            return convert_inner(case.graph(), inner, arguments)
        except NestedProblems as nested:
            reason = f"in the definition of {case.name} at {definition.location}: "
            raise NestedProblems(
                [replace(p, reason=reason + p.reason) for p in nested.problems]
            ) from None

    return onnx.call(
        case.name,
        body,
        *inputs,
        variant=case.variant,
        key=case.identity,
        shapes=None if case.ranks is None else [v.type.shape for v in case.operands()],
        source=definition.expression,
    )


@dataclass(frozen=True)
class _Case:
    """A definition for given attributes, sizes, dtypes and ranks: the identity of a function."""

    definition: Definition
    keywords: Mapping[str, Any]
    operand_dtypes: tuple[str, ...]
    dtypes: Sequence[str]
    ranks: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        return self.definition.op_type.__name__

    @property
    def identity(self) -> tuple[Hashable, ...]:
        return self.definition, self.operand_dtypes, self.ranks, self.hashable_keywords

    @property
    def hashable_keywords(self) -> tuple[tuple[str, Hashable], ...]:
        """The attributes and sizes, as part of an identity."""
        return tuple((k, _hashable(v)) for k, v in self.keywords.items())

    @property
    def variant(self) -> str:
        """The part of the function's name that says which attributes, dtypes and rank it has."""
        texts = (_text_of(k, v) for k, v in self.keywords.items())
        rank = [f"batch{self.batch_rank}"] if self.batch_rank else []
        parts = [*texts, *dict.fromkeys(self.operand_dtypes), *rank]
        return "_".join(part for part in parts if part)

    @property
    def batch_rank(self) -> int:
        """The number of axes before the core axes."""
        if self.ranks is None:
            return 0
        core, *_ = self.definition.inputs or [()]
        return self.ranks[0] - len(core)

    def serves_every_rank(self) -> bool:
        """Return whether elementwise operations are all that the expression uses."""
        if not self.definition.is_elementwise:
            return False
        return _is_elementwise(self.definition, self.operand_dtypes, self.hashable_keywords)

    def operands(self) -> list[TensorVariable]:
        """Return symbols for the operands; only sizes that the expression asks for are known."""
        if self.ranks is None:
            return [tensor(dtype=dtype, shape=()) for dtype in self.operand_dtypes]
        cores = self.definition.inputs or [()] * len(self.ranks)
        shapes = [
            (*[None] * (rank - len(core)), *(self.keywords.get(axis) for axis in core))
            for rank, core in zip(self.ranks, cores, strict=True)
        ]
        return [
            tensor(dtype=dtype, shape=shape)
            for dtype, shape in zip(self.operand_dtypes, shapes, strict=True)
        ]

    def graph(self) -> FunctionGraph:
        """Return the expression as a graph, refused where it does not fit the Op."""
        operands = self.operands()
        results = self.definition(*operands, **self.keywords)
        self._check(results)
        fgraph = FunctionGraph(operands, results, clone=False)
        keep_read_steps(fgraph)
        return fgraph

    def _check(self, results: Sequence[TensorVariable]) -> None:
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


@cache
def _is_elementwise(
    definition: Definition, dtypes: tuple[str, ...], keywords: tuple[tuple[str, Any], ...]
) -> bool:
    symbols = [tensor(dtype=dtype, shape=()) for dtype in dtypes]
    results = definition(*symbols, **dict(keywords))
    return all(isinstance(node.op, Elemwise) for node in apply_ancestors(results))


def _axes(definition: Definition) -> set[str]:
    return set(chain.from_iterable(definition.inputs or ()))


def _known_sizes(definition: Definition, node: Apply) -> dict[str, int | None]:
    """Return the sizes of core axes that the expression asks for, None where they are not known."""
    sizes: dict[str, int | None] = {}
    for variable, core in zip(node.inputs, definition.inputs or (), strict=False):
        for axis, size in zip(
            core, variable.type.shape[variable.type.ndim - len(core) :], strict=True
        ):
            if axis in definition.keywords:
                sizes[axis] = sizes.get(axis) if size is None else size
    return sizes


def _hashable(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _text_of(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return keyword if value else ""
    return "" if value is None else f"{keyword}_{value}"
