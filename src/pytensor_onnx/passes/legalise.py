"""The legaliser: makes an ideal model run on a target, exactly.

For every node it asks the target's profile whether there is a kernel and whether it is right. Where
not, the node is replaced: by a definition of ours, by a form that avoids the runtime's trap, or by
the same operator between casts that lose nothing. float64 is never narrowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import onnx_ir as ir

from pytensor_onnx.builder import FUNCTION_DOMAIN, Builder, ModelScope
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.inference import dims_of, signature
from pytensor_onnx.passes import exact
from pytensor_onnx.passes.rewriting import GraphLike, replace_node
from pytensor_onnx.targets import Profile, main_type

Decomposition = Callable[..., ir.Value]
Decompositions = Mapping[str, Decomposition]

_INTEGERS = tuple(ir.DataType[f"{s}INT{b}"] for s in ("", "U") for b in (8, 16, 32, 64))
_WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    ir.DataType.BOOL: (ir.DataType.UINT8, ir.DataType.INT32),
    ir.DataType.INT8: (ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.INT16: (ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.UINT8: (ir.DataType.INT32, ir.DataType.INT64),
    ir.DataType.UINT16: (ir.DataType.INT32, ir.DataType.INT64),
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
    legaliser.visit(model.graph, Builder(scope))
    done: set[int] = set()
    while True:
        new = [f.function for f in scope.functions.values() if id(f) not in done]
        if not new:
            break
        done.update(id(f) for f in scope.functions.values())
        for function in new:
            legaliser.visit_function(function)
    used = _used_functions(model, scope)
    model.functions.clear()
    for function in used:
        model.functions[function.identifier()] = function
        _forget_shapes(function)
    if used:
        model.graph.opset_imports[FUNCTION_DOMAIN] = 1
    for value in scope.initializers.values():
        if value.name not in model.graph.initializers and any(True for _ in value.uses()):
            model.graph.register_initializer(value)
    if legaliser.refused:
        listing = "\n".join(f"- {line}" for line in dict.fromkeys(legaliser.refused))
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operators:\n{listing}"
        )
    return [
        f"{change} ({count} times)" if count > 1 else change
        for change, count in legaliser.changes.items()
    ]


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

    def visit_function(self, function: ir.Function) -> None:
        shaped = any(value.shape is not None for value in function.inputs)
        self.visit(function, Builder(self.scope, in_function=True, shaped=shaped))

    def visit(self, owner: GraphLike, parent: Builder) -> None:
        """Legalise the nodes of a graph, those of its subgraphs first."""
        for node in list(owner):
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.GRAPH:
                    self.visit(attribute.as_graph(), parent)
            if node.domain == "":
                self._visit_node(owner, node, parent)

    def _visit_node(self, owner: GraphLike, node: ir.Node, parent: Builder) -> None:
        if node.op_type in ("Constant", "If", "Loop", "Scan"):
            return
        dtype = self._main_dtype(node)
        if dtype is None:
            return
        rewrite, change = self._find_rewrite(node, dtype)
        if rewrite is None:
            return
        builder = Builder(self.scope, in_function=parent.in_function, shaped=parent.shaped)
        builder.provenance = dict(node.metadata_props)
        result = rewrite(builder, node)
        results = [result] if isinstance(result, ir.Value) else result
        names = self.scope.names
        replace_node(owner, node, builder, results, names)
        self.changes[change] += 1
        for new in builder.nodes:
            if new.domain == "" and new.op_type != node.op_type:
                self._visit_node(owner, new, parent)

    def _main_dtype(self, node: ir.Node) -> ir.DataType | None:
        types = signature(node.op_type, self.scope.opset_version)
        main = main_type(node.op_type, self.scope.opset_version)
        for position, value in enumerate(node.inputs):
            if value is not None and types.input_type(position) == main:
                return value.dtype
        return node.outputs[0].dtype

    def _find_rewrite(
        self, node: ir.Node, dtype: ir.DataType
    ) -> tuple[Callable[[Builder, ir.Node], ir.Value | list[ir.Value]] | None, str]:
        op, profile = node.op_type, self.profile
        name = str(dtype.numpy()) if dtype != ir.DataType.STRING else "string"
        if dtype in profile.inaccurate.get(op, ()) and op in self.decompositions:
            return self._decompose, f"{op} of {name} computed by pytensor::{op}: more accurate"
        if dtype in _INTEGERS and op in profile.integer_reductions_through_double:
            reduction = exact.INTEGER_REDUCTIONS.get(op)
            if reduction is not None:
                return reduction, f"{op} of {name} made exact"
        if (
            not self.assume_finite
            and op in profile.reductions_ignore_nan
            and dtype.is_floating_point()
        ):
            guarded = exact.NAN_REDUCTIONS.get(op)
            if guarded is not None and not exact.is_guarded(node):
                return guarded, f"{op} of {name} guarded: NaN propagates"
        if op in profile.refuses_zero_dim and op in exact.LIFTED and self._is_zero_dim(node):
            return exact.lift_zero_dim, f"{op} of a 0-d value lifted to one dimension"
        if self._runs_as_is(node, dtype):
            return None, ""
        if op in self.decompositions:
            return self._decompose, f"{op} of {name} computed by a function: no kernel"
        if op == "Where":
            return (
                (exact.where_bool, "Where of bool computed by logic: no kernel")
                if dtype == ir.DataType.BOOL
                else self._cast_or(node, dtype, exact.where_unsigned)
            )
        return self._cast_or(node, dtype, None)

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

    def _cast_or(
        self,
        node: ir.Node,
        dtype: ir.DataType,
        otherwise: Callable[[Builder, ir.Node], ir.Value] | None,
    ) -> tuple[Callable[[Builder, ir.Node], ir.Value | list[ir.Value]] | None, str]:
        """Run a node in a wider dtype, or in another form where there is none."""
        name = str(dtype.numpy())
        for wider in _WIDER.get(dtype, ()):
            if self.profile.supports(
                node.op_type, wider, self.scope.opset_version, node.attributes
            ):
                return (
                    partial(exact.between_casts, dtype=dtype, wider=wider),
                    f"{node.op_type} of {name} computed in {wider.numpy()}: no kernel",
                )
        if otherwise is not None:
            return otherwise, f"{node.op_type} of {name} computed by arithmetic: no kernel"
        self.refused.append(f"{node.op_type} of {name} (node {node.name!r})")
        return None, ""


def _used_functions(model: ir.Model, scope: ModelScope) -> list[ir.Function]:
    """Return the functions that the graph calls, directly or not, in the order of definition."""
    known = {f.function.identifier(): f.function for f in scope.functions.values()}
    used: dict[tuple, ir.Function] = {}
    waiting: list[GraphLike] = [model.graph]
    while waiting:
        for node in waiting.pop().all_nodes():
            function = known.get(node.op_identifier())
            if function is not None and function.identifier() not in used:
                used[function.identifier()] = function
                waiting.append(function)
    return [f for key, f in known.items() if key in used]


def _forget_shapes(function: ir.Function) -> None:
    """Drop shapes and types from a function's body, which the runtime infers for each call."""
    for node in function.all_nodes():
        for value in node.outputs:
            value.shape = None
            value.type = None
    for value in function.inputs:
        value.shape = None
        value.type = None
