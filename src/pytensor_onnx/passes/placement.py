"""Tell which nodes of a model a target's accelerator leaves to the processor."""

from __future__ import annotations

import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.passes.legaliser.missing_kernels import main_dtype
from pytensor_onnx.passes.narrowing.uses import Uses
from pytensor_onnx.targets import Profile

_CONTAINERS = frozenset({"If", "Loop", "Scan"})


def describe_placement(model: ir.Model, profile: Profile) -> list[Change]:
    """Return a line on the nodes that the accelerator of a target does not run, if it has one.

    Nodes of bodies and functions count once. Those without a kernel run all the same, on the
    processor, with copies of the arrays before and after. Sizes are not counted: the processor
    computes them in any case.
    """
    opset_version = model.graph.opset_imports[""]
    uses = Uses.in_model(model)
    standard = [
        node
        for node in nodes_of_model(model)
        if node.domain == "" and not (node.outputs and uses.is_size(node.outputs[0]))
    ]
    left = [node for node in standard if not _is_accelerated(node, profile, opset_version)]
    if not left:
        return [Change(f"all {len(standard)} nodes run on the accelerator")]
    kinds = ", ".join(sorted({_described(node, opset_version) for node in left}))
    return [Change(f"{len(left)} of {len(standard)} nodes are left to the processor: {kinds}")]


def _is_accelerated(node: ir.Node, profile: Profile, opset_version: int) -> bool:
    if node.op_type in _CONTAINERS:
        return False
    dtype = main_dtype(node, opset_version)
    return dtype is None or profile.accelerates(node.op_type, dtype, opset_version, node.attributes)


def _described(node: ir.Node, opset_version: int) -> str:
    dtype = main_dtype(node, opset_version)
    return node.op_type if dtype is None else f"{node.op_type} of {dtype.numpy()}"
