"""Drop checks of input sizes that every call of a model makes anyway."""

from collections.abc import Sequence

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dim, dims_of
from pytensor_onnx.graph.failures import is_check
from pytensor_onnx.graph.sizes import sizes_in


def drop_checks_of_inputs(build: Builder, inputs: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    """Drop checks that two sizes of inputs are equal if other nodes require the same.

    The inputs then have one name for both sizes, and every call compares sizes of one name.

    Parameters
    ----------
    build
        Builder of the nodes.
    inputs
        Inputs of the model.

    Returns
    -------
    dict
        The checked value for each result of a check that was dropped.
    """
    scope = build.scope
    given = {dim for value in inputs for dim in dims_of(value) or () if isinstance(dim, str)}
    kept: dict[ir.Value, ir.Value] = {}
    for node in build.nodes:
        checked = _checked_sizes(node)
        if checked <= given and len({scope.canonical_dim(dim) for dim in checked}) == 1:
            (copy,) = node.attributes["then_branch"].as_graph()
            value = copy.inputs[0]
            assert value is not None
            kept[node.outputs[0]] = value
            ir.convenience.replace_all_uses_with(node.outputs[0], value)
    return kept


def _checked_sizes(node: ir.Node) -> set[Dim]:
    """Return the two dimensions whose equality a node checks, or an empty set."""
    if node.op_type != "If" or node.domain or node.inputs[0] is None:
        return set()
    failed = node.attributes["else_branch"].as_graph()
    condition = node.inputs[0].producer()
    if condition is None or condition.op_type != "Equal":
        return set()
    if not any(map(is_check, failed)):
        return set()
    sizes = [sizes_in(value) for value in condition.inputs]
    return {dim for known in sizes if known is not None and len(known) == 1 for dim in known}
