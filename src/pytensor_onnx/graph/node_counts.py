"""Numbers of nodes in a model, by operator and by function."""

from collections import Counter

import onnx_ir as ir

from pytensor_onnx.graph.traversal import all_nodes


def operator_counts(model: ir.Model) -> Counter[str]:
    """Return the number of nodes of each operator, in subgraphs as well."""
    return Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for node in all_nodes(model.graph)
    )


def function_sizes(model: ir.Model) -> list[tuple[str, int]]:
    """Return the number of nodes of each model-local function."""
    return [(f"{f.domain}::{f.name}", len(f)) for f in model.functions.values()]
