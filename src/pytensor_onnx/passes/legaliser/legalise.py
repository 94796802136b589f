"""Replace nodes so that a model runs exactly on a target: the legaliser.

For every node it asks the target's profile whether there is a kernel, and the table of defects
whether it is right. If not, the node is replaced: by its definition, by the decomposition in the
table, or by the same operator between casts that lose nothing. float64 is never narrowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import onnx_ir as ir

from pytensor_onnx.changes import Change, changes_of
from pytensor_onnx.errors import UnsupportedCase, UnsupportedOpError
from pytensor_onnx.graph.bounds import is_count
from pytensor_onnx.graph.builder import Builder, convert_fallback, has_fallback
from pytensor_onnx.graph.scope import LocalFunction, ModelScope
from pytensor_onnx.graph.traversal import all_nodes, is_absolute_error_accepted, is_imported
from pytensor_onnx.operators.entries import WITH_BODIES
from pytensor_onnx.passes.defects import ByDefinition, Decomposition, Defect, defects_by_operator
from pytensor_onnx.passes.forms import exact, integer
from pytensor_onnx.passes.legaliser.missing_kernels import Refusal, describe_refusals, main_dtype
from pytensor_onnx.passes.legaliser.small_words import split_words
from pytensor_onnx.passes.matching import store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import Form, GraphLike, NodeWalk, Results
from pytensor_onnx.targets import Profile
from pytensor_onnx.targets.kernel_tables import holds_attributes

_CONTAINERS = WITH_BODIES | {"Constant"}


@model_pass(
    family="structure",
    purpose="conversion",
    identity="f(x) = a form in operators that the target runs",
    requires="no kernel, or one of the table of defects",
    ensures="every node has a correct kernel",
    measured="docs/reference/defects.md, Kernels",
)
def legalise(
    model: ir.Model,
    scope: ModelScope,
    profile: Profile,
    *,
    decompositions: Decompositions,
    assume_finite: bool = False,
    splits_words: bool = False,
) -> list[Change]:
    """Change a model in place so that the target runs it, with the same results.

    Parameters
    ----------
    model
        Model of standard operators and model-local functions.
    scope
        Names, constants and functions of the model.
    profile
        Kernels and defects of the target.
    decompositions
        Functions of a builder and the operands, by the operator that they decompose.
    assume_finite
        Whether to leave out the guards against runtimes that drop NaN.
    splits_words
        Whether words of random generators are computed in parts; see `split_words`.

    Returns
    -------
    list of str
        Changes, one line for each kind.

    Raises
    ------
    UnsupportedOpError
        If the target can run a node in no form; all such nodes are listed.
    """
    if splits_words:
        split_words(model.graph, scope)
    chooser = Chooser(profile, scope.opset_version, decompositions, assume_finite)
    legaliser = _Legaliser(chooser, scope)
    legaliser.visit(model.graph)
    done: set[int] = set()
    while new := [local for local in scope.functions.values() if id(local) not in done]:
        done.update(map(id, new))
        for local in new:
            legaliser.visit(local.function, local)
    used = _used_functions(model, scope)
    model.functions.clear()
    for function in used:
        model.functions[function.identifier()] = function
    scope.import_domains(model.graph, used)
    store_constants(model.graph, scope)
    if legaliser.refused:
        listing = describe_refusals(legaliser.refused, model)
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operations:\n{listing}{profile.way_out}"
        )
    return changes_of(legaliser.changes)


class _Legaliser:
    def __init__(self, chooser: Chooser, scope: ModelScope) -> None:
        self.chooser = chooser
        self.scope = scope
        self.changes: Counter[str] = Counter()
        self.refused: list[Refusal] = []

    def visit(self, owner: GraphLike, local: LocalFunction | None = None) -> None:
        """Legalise the nodes of a graph or function, and their replacements."""
        shaped = local is None or any(v.shape is not None for v in local.function.inputs)
        replace = partial(self._replace, local=local)
        NodeWalk(owner, self.scope, replace, shaped=shaped, visits_new=True).run()

    def _replace(
        self, build: Builder, node: ir.Node, local: LocalFunction | None
    ) -> Results | None:
        if local is None:
            for value in node.outputs:
                self.scope.dims.name_axes(value)
        is_standard = not node.domain and node.op_type not in _CONTAINERS
        dtype = main_dtype(node, self.scope.opset_version) if is_standard else None
        if dtype is None:
            return None
        in_definition = local is not None and local.is_definition
        form, change = self.chooser.choose(node, dtype, in_definition)
        if form is None:
            if change:
                self._refuse(change, node, local)
            return None
        try:
            results = form(build, node)
        except UnsupportedCase as case:
            self._refuse(case.reason, node, local)
            return None
        self.changes[change] += 1
        return results

    def _refuse(self, reason: str, node: ir.Node, local: LocalFunction | None) -> None:
        function = None if local is None else local.function
        self.refused.append(Refusal(reason, node, function))


def _used_functions(model: ir.Model, scope: ModelScope) -> list[ir.Function]:
    """Return the functions that the graph calls, directly or not, callees first.

    Readers such as the reference evaluator of ONNX need this order.
    """
    known = {f.function.identifier(): f.function for f in scope.functions.values()}

    def calls(graph: GraphLike) -> Iterator[ir.Function]:
        found = (known.get(node.op_identifier()) for node in all_nodes(graph))
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


Decompositions = Mapping[str, Callable[..., ir.Value]]

Choice = tuple[Form | None, str]
"""The replacement of a node and a line on it; no form and no line to leave it alone."""

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


class Substitute(NamedTuple):
    """Replacement of an operator without a kernel, and its description in the report.

    Attributes
    ----------
    operators
        Operators with their replacements.
    means
        How the form computes, for the report.
    dtype
        The dtype that it serves; None for every dtype.
    """

    operators: Mapping[str, Form]
    means: str
    dtype: ir.DataType | None = None


BEFORE_CASTS = (
    Substitute({"Where": exact.where_bool}, "computed by logic", ir.DataType.BOOL),
    Substitute({"NonZero": integer.non_zero}, "computed in bool"),
    Substitute({"Compress": exact.compress}, "computed by positions"),
    Substitute({"IsInf": exact.is_infinite}, "computed by absolute values"),
    # Its definition needs it for large arguments.
    Substitute({"Cos": exact.cosine}, "computed by the sine of the half", ir.DataType.DOUBLE),
)
"""Forms that need fewer operators than casts to a wider dtype."""

LAST = (
    Substitute({"Where": exact.where_unsigned}, "computed by arithmetic"),
    Substitute(integer.UINT64, "computed in int64", ir.DataType.UINT64),
    Substitute(integer.ORDERED, "computed by comparison", ir.DataType.INT64),
    Substitute({"ReduceProd": exact.integer_product}, "computed in pairs", ir.DataType.DOUBLE),
)
"""Forms for nodes that no other dtype and no fallback serves."""


@dataclass(frozen=True)
class Chooser:
    """Chooses the replacement of a node.

    Attributes
    ----------
    profile
        Kernels and defects of the target.
    opset_version
        Opset of the model.
    decompositions
        For operators: a function of a builder and the operands that emits the same in others.
    assume_finite
        Whether to leave out forms that only NaN and infinities need.
    """

    profile: Profile
    opset_version: int
    decompositions: Decompositions
    assume_finite: bool = False
    _runs: dict[tuple[Any, ...], bool] = field(default_factory=dict)

    def choose(self, node: ir.Node, dtype: ir.DataType, in_definition: bool) -> Choice:
        """Return the replacement of a node.

        Parameters
        ----------
        node
            Node of a standard operator.
        dtype
            Dtype of its main type variable.
        in_definition
            Whether it is part of an elementwise definition. These are written for the runtime's
            operators: they know where they are accurate.
        """
        if self.profile.accelerator and is_count(node):
            # Exact, and the accelerator has it in int32.
            return None, ""
        if node.attributes and not self._holds_attributes(node, dtype):
            return self._replace_attributes(node, dtype)
        for defect in defects_by_operator(self.profile.name).get(node.op_type, ()):
            if defect.concerns(dtype):
                choice = self._treat(defect, node, dtype, in_definition)
                if choice[0] is not None:
                    return choice
        if not self._has_kernel(node, dtype):
            return self._replace_missing(node, dtype)
        if in_definition or not self._is_coarse(node, dtype):
            return None, ""
        return self._define(node, dtype, "more accurate")

    def _is_coarse(self, node: ir.Node, dtype: ir.DataType) -> bool:
        """Return whether the kernel loses more digits than the user accepts."""
        of_network = has_fallback(node) or is_absolute_error_accepted(node)
        return self.profile.is_coarse(node.op_type, dtype, absolute=of_network)

    def _treat(
        self, defect: Defect, node: ir.Node, dtype: ir.DataType, in_definition: bool
    ) -> Choice:
        treatment = defect.treatment
        if isinstance(treatment, ByDefinition):
            if in_definition or is_absolute_error_accepted(node):
                return None, ""
            return self._define(node, dtype, "more accurate")
        if (
            not isinstance(treatment, Decomposition)
            or (treatment.of_non_finite and self.assume_finite)
            # Operators of an imported model had no guards around them there.
            or ((treatment.of_non_finite or treatment.of_kernel) and is_imported(node))
            or not treatment.condition(node)
            or (treatment.of_kernel and not self._has_kernel(node, dtype))
        ):
            return None, ""
        return treatment.form, _filled_in(treatment.change, node.op_type, dtype)

    def _define(self, node: ir.Node, dtype: ir.DataType, reason: str) -> Choice:
        """Return the definition of an operator, or the fallback of a node."""
        what = describe(node.op_type, dtype)
        if node.op_type in self.decompositions:
            return self._decompose, f"{what} computed by a function: {reason}"
        if has_fallback(node):
            return convert_fallback, f"{what} as it is defined: {reason}"
        return None, ""

    def _decompose(self, builder: Builder, node: ir.Node) -> ir.Value:
        return self.decompositions[node.op_type](builder, *node.inputs)

    def _holds_attributes(self, node: ir.Node, dtype: ir.DataType) -> bool:
        return holds_attributes(node.op_type, dtype, self.opset_version, node.attributes)

    def _replace_attributes(self, node: ir.Node, dtype: ir.DataType) -> Choice:
        """Return the fallback of a node whose operator lacks attributes, or rounds them."""
        what = describe(node.op_type, dtype)
        if has_fallback(node):
            return convert_fallback, f"{what} as it is defined: attributes"
        return None, f"{what} with these attributes"

    def _replace_missing(self, node: ir.Node, dtype: ir.DataType) -> Choice:
        """Return a form in operators of the target."""
        first = _substitute(BEFORE_CASTS, node, dtype)
        if first is None and node.op_type in self.decompositions:
            return self._define(node, dtype, "no kernel")
        return (
            first
            or self._in_wider(node, dtype)
            or (self._define(node, dtype, "no kernel") if has_fallback(node) else None)
            or _substitute(LAST, node, dtype)
            or (None, self._refusal(node.op_type, dtype))
        )

    def _refusal(self, op_type: str, dtype: ir.DataType) -> str:
        what = describe(op_type, dtype)
        is_wrong = self.profile.is_wrong(op_type, dtype, self.opset_version)
        return f"{what}, for which the runtime returns other numbers" if is_wrong else what

    def _in_wider(self, node: ir.Node, dtype: ir.DataType) -> Choice | None:
        for wider in _WIDER.get(dtype, ()):
            if self._has_kernel(node, wider):
                what = describe(node.op_type, dtype)
                form = partial(exact.between_casts, dtype=dtype, wider=wider)
                return form, f"{what} computed in {wider.numpy()}: no kernel"
        return None

    def _has_kernel(self, node: ir.Node, dtype: ir.DataType) -> bool:
        attributes = {k: v for k, v in node.attributes.items() if v.type != ir.AttributeType.TENSOR}
        key = (node.op_type, dtype, *((k, str(v.value)) for k, v in attributes.items()))
        if key not in self._runs:
            self._runs[key] = self.profile.supports(
                node.op_type, dtype, self.opset_version, node.attributes
            )
        return self._runs[key]


def _substitute(table: Iterable[Substitute], node: ir.Node, dtype: ir.DataType) -> Choice | None:
    for row in table:
        if node.op_type in row.operators and row.dtype in (None, dtype):
            what = describe(node.op_type, dtype)
            return row.operators[node.op_type], f"{what} {row.means}: no kernel"
    return None


@cache
def describe(op_type: str, dtype: ir.DataType) -> str:
    """Return the name of an operator in a dtype, for the report.

    Examples
    --------
    >>> describe("Erf", ir.DataType.DOUBLE)
    'Erf of float64'
    """
    return _filled_in("{op} of {dtype}", op_type, dtype)


@cache
def _filled_in(text: str, op_type: str, dtype: ir.DataType) -> str:
    name = "string" if dtype == ir.DataType.STRING else dtype.numpy()
    return text.format(op=op_type, dtype=name)
