"""The legaliser: makes an ideal model run on a target, exactly.

For every node it asks the target's profile whether there is a kernel and whether it is right. Where
not, the node is replaced: by a definition of ours, by a form that avoids the runtime's trap, or by
the same operator between casts that lose nothing. float64 is never narrowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

import onnx_ir as ir

from pytensor_onnx.builder import FUNCTION_DOMAIN, Builder
from pytensor_onnx.errors import UnsupportedCase, UnsupportedOpError
from pytensor_onnx.inference import dims_of
from pytensor_onnx.passes import (
    definitions,
    empty,
    exact,
    integer,
    ordering,
    pooling,
    short_axes,
)
from pytensor_onnx.passes.missing_kernels import main_dtype
from pytensor_onnx.passes.rewriting import Form, GraphLike, replace_node, store_constants
from pytensor_onnx.scope import ModelScope, Names, names_in
from pytensor_onnx.targets import Profile
from pytensor_onnx.targets.schema import holds_attributes

Decomposition = Callable[..., ir.Value]
Decompositions = Mapping[str, Decomposition]
Rewrite = tuple[Form | None, str]
"""What takes the place of a node, and a line on it; no form and no line to leave it alone."""

_CONTAINERS = frozenset({"Constant", "If", "Loop", "Scan"})
_INTEGERS = tuple(ir.DataType[f"{s}INT{b}"] for s in ("", "U") for b in (8, 16, 32, 64))
_WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    ir.DataType.BOOL: (ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.INT8: (ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.INT16: (ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.UINT8: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32),
    ir.DataType.UINT16: (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32),
    ir.DataType.INT32: (ir.DataType.INT64,),
    ir.DataType.UINT32: (ir.DataType.INT64,),
    ir.DataType.FLOAT16: (ir.DataType.FLOAT, ir.DataType.DOUBLE),
    ir.DataType.FLOAT: (ir.DataType.DOUBLE,),
}


def legalise(
    model: ir.Model,
    profile: Profile,
    scope: ModelScope,
    *,
    decompositions: Decompositions,
    assume_finite: bool = False,
) -> list[str]:
    """Change a model in place so that the target runs it, with the same results.

    Parameters
    ----------
    model
        Model of standard operators and model-local functions.
    profile
        What is known of the target.
    scope
        Names, constants and functions of the model.
    decompositions
        For operators: a function of a builder and the operands that emits the same in others.
    assume_finite
        Whether to leave out the guards against runtimes that drop NaN.

    Returns
    -------
    list of str
        What was changed, one line for each kind of change.

    Raises
    ------
    UnsupportedOpError
        If the target can run a node neither as it is nor in another form; all such nodes are
        listed.
    """
    legaliser = _Legaliser(profile, scope, decompositions, assume_finite)
    legaliser.visit(model.graph, _Place(scope.names))
    done: set[int] = set()
    while True:
        new = [f.function for f in scope.functions.values() if id(f) not in done]
        if not new:
            break
        done.update(id(f) for f in scope.functions.values())
        for function in new:
            legaliser.visit(function, _place_in(function))
    used = _used_functions(model, scope)
    model.functions.clear()
    for function in used:
        model.functions[function.identifier()] = function
    if used:
        model.graph.opset_imports[FUNCTION_DOMAIN] = 1
    store_constants(model.graph, scope)
    if legaliser.refused:
        listing = "\n".join(f"- {line}" for line in dict.fromkeys(legaliser.refused))
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operators:\n{listing}"
        )
    return [
        f"{change} ({count} times)" if count > 1 else change
        for change, count in legaliser.changes.items()
    ]


@dataclass(frozen=True)
class _Place:
    """Where nodes stand: what names are taken there, and in which function it is, if in any."""

    names: Names
    function: str = ""
    shaped: bool = True

    @property
    def in_function(self) -> bool:
        return bool(self.function)

    @property
    def in_definition(self) -> bool:
        """Whether it is the body of an elementwise definition, which serves every rank."""
        return self.in_function and not self.shaped

    @property
    def description(self) -> str:
        return f" of function {self.function}" if self.function else ""


def _place_in(function: ir.Function) -> _Place:
    shaped = any(value.shape is not None for value in function.inputs)
    return _Place(names_in(function), f"{function.domain}::{function.name}", shaped)


class _Legaliser:
    def __init__(
        self,
        profile: Profile,
        scope: ModelScope,
        decompositions: Decompositions,
        assume_finite: bool,
    ) -> None:
        self.profile = profile
        self.scope = scope
        self.decompositions = decompositions
        self.assume_finite = assume_finite
        self.changes: Counter[str] = Counter()
        self.refused: list[str] = []
        self._runs: dict[tuple, bool] = {}

    def visit(self, owner: GraphLike, place: _Place) -> None:
        """Legalise the nodes of a graph and of its subgraphs, and what takes their place."""
        self._visit_nodes(owner, list(owner), place)

    def _visit_nodes(self, owner: GraphLike, nodes: Iterable[ir.Node], place: _Place) -> None:
        for node in nodes:
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.GRAPH:
                    self.visit(attribute.as_graph(), place)
            if not place.in_function:
                for value in node.outputs:
                    self.scope.name_dims(value)
            if node.domain == "" and node.op_type not in _CONTAINERS:
                self._visit_node(owner, node, place)

    def _visit_node(self, owner: GraphLike, node: ir.Node, place: _Place) -> None:
        dtype = main_dtype(node, self.scope.opset_version)
        if dtype is None:
            return
        rewrite, change = self._find_rewrite(node, dtype, place)
        if rewrite is None:
            if change:
                self.refused.append(f"{change} (node {node.name!r}{place.description})")
            return
        builder = Builder(self.scope, in_function=place.in_function, shaped=place.shaped)
        builder.provenance = dict(node.metadata_props)
        try:
            result = rewrite(builder, node)
        except UnsupportedCase as case:
            self.refused.append(f"{case.reason} (node {node.name!r}{place.description})")
            return
        results = [result] if isinstance(result, ir.Value) else result
        new_nodes = replace_node(owner, node, builder, results, place.names)
        self.changes[change] += 1
        self._visit_nodes(owner, new_nodes, place)

    def _find_rewrite(self, node: ir.Node, dtype: ir.DataType, place: _Place) -> Rewrite:
        if node.attributes and not self._holds_attributes(node, dtype):
            return self._replace_attributes(node, dtype)
        form, change = self._avoid_trap(node, dtype, place)
        if form is not None or self._runs_as_is(node, dtype):
            return form, change
        return self._replace_missing(node, dtype)

    def _holds_attributes(self, node: ir.Node, dtype: ir.DataType) -> bool:
        opset_version = self.scope.opset_version
        return holds_attributes(node.op_type, dtype, opset_version, node.attributes)

    def _replace_attributes(self, node: ir.Node, dtype: ir.DataType) -> Rewrite:
        """Return the definition of a node whose operator lacks attributes, or has them coarser."""
        what = _describe(node, dtype)
        if definitions.has_definition(node):
            return definitions.convert_definition, f"{what} as it is defined: attributes"
        return None, f"{what} with these attributes"

    def _avoid_trap(self, node: ir.Node, dtype: ir.DataType, place: _Place) -> Rewrite:
        """Return a form that is right where the target's own kernel is not."""
        op, profile, what = node.op_type, self.profile, _describe(node, dtype)
        if op in profile.refuses_zero_dim and op in exact.LIFTED and self._is_zero_dim(node):
            return exact.lift_zero_dim, f"{op} of a 0-d value lifted to one dimension"
        # A definition is written for the runtime's operators: it knows where they are accurate.
        is_inaccurate = dtype in profile.inaccurate.get(op, ()) and not (
            place.in_definition or exact.is_absolute_error_accepted(node)
        )
        if is_inaccurate and op in self.decompositions:
            return self._decompose, f"{what} computed by a function: more accurate"
        if is_inaccurate and definitions.has_definition(node):
            return definitions.convert_definition, f"{what} as it is defined: more accurate"
        if dtype in profile.computed_wider.get(op, ()):
            return self._in_wider(node, dtype, "more accurate")
        if dtype in _INTEGERS and not exact.is_guarded(node):
            form = self._exact_form(node, dtype)
            if form is not None:
                return form, f"{what} made exact"
        if (
            op in profile.reductions_ignore_nan
            and dtype.is_floating_point()
            and not self.assume_finite
            and not exact.is_guarded(node)
        ):
            return exact.NAN_REDUCTIONS[op], f"{what} guarded: NaN propagates"
        if op == "LogSoftmax" and dtype in profile.log_softmax_loses_nan and not self.assume_finite:
            return exact.nan_log_softmax, f"{what} guarded: NaN propagates"
        if op in ("TopK", "Unique") and not ordering.is_guarded(node):
            return self._order_form(node, dtype)
        if (
            op in short_axes.POOLS
            and profile.finds_window_on_short_axis
            and short_axes.may_be_short(node)
            and self._runs_as_is(node, dtype)
        ):
            return short_axes.check_room, f"{op} refuses arrays smaller than a window"
        if (
            op == "Conv"
            and profile.hangs_without_taps
            and short_axes.may_have_no_taps(node)
            and self._runs_as_is(node, dtype)
        ):
            return short_axes.check_taps, f"{op} refuses filters without taps"
        if op in pooling.GUARDED and self._loses_nan(node, dtype) and self._runs_as_is(node, dtype):
            return pooling.GUARDED[op], f"{what} guarded: NaN and minus infinity survive"
        if (
            op == "Expand"
            and profile.expand_to_nothing_is_dropped
            and empty.expands_to_nothing(node)
        ):
            return empty.expand_to_nothing, "Expand to a size of zero made a Slice"
        if op == "MatMul" and profile.empty_products_unwritten:
            form = exact.empty_product_form(node)
            return form, "" if form is None else f"{what} guarded: an empty product is zero"
        return None, ""

    def _loses_nan(self, node: ir.Node, dtype: ir.DataType) -> bool:
        loses = node.op_type in self.profile.loses_nan and dtype.is_floating_point()
        return loses and not self.assume_finite and not exact.is_guarded(node)

    def _order_form(self, node: ir.Node, dtype: ir.DataType) -> Rewrite:
        op, profile = node.op_type, self.profile
        meets_nan = op in profile.loses_nan and dtype.is_floating_point() and not self.assume_finite
        if op == "Unique" and "axis" in node.attributes:
            kills = profile.unique_of_empty_slices_kills and ordering.may_have_empty_slices(node)
            if meets_nan or kills:
                return ordering.unique_slices, f"{op} of slices in {dtype.numpy()} made safe"
        elif meets_nan:
            form = ordering.top_k if op == "TopK" else ordering.unique
            return form, f"{_describe(node, dtype)} guarded: NaN comes last"
        return None, ""

    def _exact_form(self, node: ir.Node, dtype: ir.DataType) -> Form | None:
        op, profile = node.op_type, self.profile
        if op in profile.integer_reductions_through_double:
            return exact.INTEGER_REDUCTIONS.get(op) or integer.REDUCTIONS.get(op)
        if dtype == ir.DataType.INT64 and op in profile.int64_compared_by_halves:
            return integer.ORDERED[op]
        if dtype == ir.DataType.INT64 and op == "Range" and profile.integer_range_through_double:
            return integer.integer_range if integer.counts_in_double(node) else None
        if op == "Mod" and profile.integer_fmod_through_double:
            return integer.truncated_modulo if integer.is_truncated(node) else None
        return None

    def _replace_missing(self, node: ir.Node, dtype: ir.DataType) -> Rewrite:
        """Return a form in operators that the target has."""
        op, what = node.op_type, _describe(node, dtype)
        if op in self.decompositions:
            return self._decompose, f"{what} computed by a function: no kernel"
        if op == "Where" and dtype == ir.DataType.BOOL:
            return exact.where_bool, f"{what} computed by logic: no kernel"
        if op == "NonZero":
            return integer.non_zero, f"{what} computed in bool: no kernel"
        form, change = self._in_wider(node, dtype, "no kernel")
        if form is not None:
            return form, change
        if definitions.has_definition(node):
            return definitions.convert_definition, f"{what} as it is defined: no kernel"
        if op == "Where":
            return exact.where_unsigned, f"{what} computed by arithmetic: no kernel"
        if dtype == ir.DataType.UINT64 and op in integer.UINT64:
            return integer.UINT64[op], f"{what} computed in int64: no kernel"
        if dtype == ir.DataType.INT64 and op in integer.ORDERED:
            return integer.ORDERED[op], f"{what} computed by comparison: no kernel"
        return None, what

    def _in_wider(self, node: ir.Node, dtype: ir.DataType, reason: str) -> Rewrite:
        for wider in _WIDER.get(dtype, ()):
            if self.profile.supports(
                node.op_type, wider, self.scope.opset_version, node.attributes
            ):
                return (
                    partial(exact.between_casts, dtype=dtype, wider=wider),
                    f"{_describe(node, dtype)} computed in {wider.numpy()}: {reason}",
                )
        return None, ""

    def _runs_as_is(self, node: ir.Node, dtype: ir.DataType) -> bool:
        attributes = {k: v for k, v in node.attributes.items() if v.type != ir.AttributeType.TENSOR}
        key = (node.op_type, dtype, *((k, str(v.value)) for k, v in attributes.items()))
        if key not in self._runs:
            self._runs[key] = self.profile.supports(
                node.op_type, dtype, self.scope.opset_version, node.attributes
            )
        return self._runs[key]

    def _is_zero_dim(self, node: ir.Node) -> bool:
        value = node.inputs[0] if node.inputs else None
        return value is not None and dims_of(value) == ()

    def _decompose(self, builder: Builder, node: ir.Node) -> ir.Value:
        return self.decompositions[node.op_type](builder, *node.inputs)


def _describe(node: ir.Node, dtype: ir.DataType) -> str:
    return _describe_operator(node.op_type, dtype)


@cache
def _describe_operator(op_type: str, dtype: ir.DataType) -> str:
    return f"{op_type} of {'string' if dtype == ir.DataType.STRING else dtype.numpy()}"


def _used_functions(model: ir.Model, scope: ModelScope) -> list[ir.Function]:
    """Return the functions that the graph calls, directly or not, each after those it calls.

    Readers such as the reference evaluator of ONNX need this order.
    """
    known = {f.function.identifier(): f.function for f in scope.functions.values()}

    def calls(graph: GraphLike) -> Iterator[ir.Function]:
        found = (known.get(node.op_identifier()) for node in graph.all_nodes())
        return (function for function in found if function is not None)

    used: dict[ir.OperatorIdentifier, ir.Function] = {}

    def add(function: ir.Function) -> None:
        if function.identifier() not in used:
            for inner in calls(function):
                add(inner)
            used[function.identifier()] = function

    for function in calls(model.graph):
        add(function)
    return list(used.values())
