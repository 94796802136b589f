"""Write a model in the operators of an older opset than it is converted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import onnx_ir as ir

from pytensor_onnx.changes import Change, changes_of
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.operators.reductions import REDUCTIONS
from pytensor_onnx.passes.matching import attributes_of, required, store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import GraphLike, NodeWalk, Results
from pytensor_onnx.targets.kernel_tables import misfit

_Older = Callable[[Builder, ir.Node, int], Results | None]
_IR_VERSIONS = {13: 8, 14: 8, 15: 8, 16: 8, 17: 8}
"""Version of the format by opset; functions of a model need 8."""


@model_pass(
    family="structure",
    purpose="conversion",
    identity="f(x) = f of an older opset",
    requires="an opset below 18",
    ensures="the opset has all operators, with these attributes and operands",
)
def lower_opset(model: ir.Model, scope: ModelScope, version: int) -> list[Change]:
    """Replace operators of opset 18 by those of an older one.

    Returns
    -------
    list of Change
        Operators that were replaced, one change for each.

    Raises
    ------
    UnsupportedOpError
        If the opset lacks operators of the model; the message lists all of them.
    """

    def older(build: Builder, node: ir.Node) -> Results | None:
        form = _FORMS.get(node.op_type)
        results = None if node.domain or form is None else form(build, node, version)
        if results is not None:
            counts[f"{node.op_type} in the form of opset {version}"] += 1
        return results

    counts: Counter[str] = Counter()
    owners: list[GraphLike] = [model.graph, *model.functions.values()]
    for owner in owners:
        NodeWalk(owner, scope, older, _FORMS).run()
    store_constants(model.graph, scope)
    lacking = list(dict.fromkeys(_lacking(model, version)))
    if lacking:
        listing = "\n".join(f"- {line}" for line in lacking)
        raise UnsupportedOpError(f"opset {version} cannot express this graph:\n{listing}")
    for owner in owners:
        owner.opset_imports[""] = version
    model.ir_version = _IR_VERSIONS[version]
    return changes_of(counts)


def _lacking(model: ir.Model, version: int) -> Iterator[str]:
    """Yield the operators that an opset lacks, and the first opset that has them."""
    for node in nodes_of_model(model):
        if node.domain or misfit(node, version) is None:
            continue
        first = next(v for v in range(version, 19) if misfit(node, v) is None)
        yield f"{misfit(node, version)}: choose opset_version={first}"


def _axes_as_attribute(build: Builder, node: ir.Node, version: int) -> Results | None:
    """Reduce along axes that are an attribute, as constant axes can be."""
    axes = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None:
        return None
    keeps = attribute_of(node, "keepdims")
    return _emit(build, node, [required(node.inputs[0])], {"axes": axes, "keepdims": keeps})


def _whole_shape(build: Builder, node: ir.Node, version: int) -> Results | None:
    """Slice a Shape, which has no bounds before opset 15."""
    if version >= 15 or not node.attributes.keys() & {"start", "end"}:
        return None
    start = attribute_of(node, "start")
    end = node.attributes.get_int("end", 2**31)
    shape = build.Shape(required(node.inputs[0]))
    shape.shape = None
    return build.Slice(shape, build.ints([start]), build.ints([end]), build.ints([0]))


def _zeros_copied(build: Builder, node: ir.Node, version: int) -> Results | None:
    """Reshape to constant sizes without a zero, where `allowzero` has no effect."""
    if version >= 14 or "allowzero" not in node.attributes:
        return None
    sizes = constant_ints(node.inputs[1])
    if attribute_of(node, "allowzero") and (sizes is None or 0 in sizes):
        return None
    return _emit(build, node, list(node.inputs), {})


def _equal_parts(build: Builder, node: ir.Node, version: int) -> Results | None:
    """Split into parts of given sizes; their number alone is no attribute before opset 18."""
    if "num_outputs" not in node.attributes or len(node.inputs) > 1:
        return None
    axis = attribute_of(node, "axis")
    dims = [dims[axis] if (dims := dims_of(value)) else None for value in node.outputs]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) < len(dims):
        return None
    attributes = {k: v for k, v in attributes_of(node).items() if k != "num_outputs"}
    return _emit(build, node, [node.inputs[0], build.ints(sizes)], attributes)


def _emit(
    build: Builder, node: ir.Node, operands: list[ir.Value | None], attributes: dict[str, object]
) -> list[ir.Value]:
    """Emit an operator of the older opset, which the builder does not know."""
    results = [ir.Value(type=value.type, shape=value.shape) for value in node.outputs]
    build._emit(node.op_type, operands, results, attributes)
    return results


_FORMS: dict[str, _Older] = {
    "Reshape": _zeros_copied,
    "Shape": _whole_shape,
    "Split": _equal_parts,
    # The axes of ArgMax and ArgMin are attributes in all opsets, the ones of ReduceSum in none.
    **dict.fromkeys({*REDUCTIONS} - {"ArgMax", "ArgMin", "ReduceSum"}, _axes_as_attribute),
}
