"""Choose the replacement of a node without a correct kernel on a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import onnx_ir as ir

from pytensor_onnx.graph.bounds import is_count
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.fallbacks import convert_fallback, has_fallback
from pytensor_onnx.graph.node_flags import is_absolute_error_accepted, is_imported
from pytensor_onnx.passes.defects import ByDefinition, Decomposition, Defect, defects_by_operator
from pytensor_onnx.passes.legaliser import exact, integer
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.targets import Profile
from pytensor_onnx.targets.schema import holds_attributes

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
            or (treatment.of_non_finite and self._is_taken_as_finite(node))
            or not treatment.condition(node)
            or (treatment.of_kernel and not self._has_kernel(node, dtype))
        ):
            return None, ""
        return treatment.form, _filled_in(treatment.change, node.op_type, dtype)

    def _is_taken_as_finite(self, node: ir.Node) -> bool:
        """Return whether to leave out a guard: operators of an imported model had none there."""
        return self.assume_finite or is_imported(node)

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
