"""Functions by which the standard defines operators, such as LayerNormalization and Attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.importing.registry.operator_types import schema_of


def standard_body(
    node: ir.Node, operands: Sequence[Any], attributes: Mapping[str, ir.Attr], opset: int
) -> ir.Function | None:
    """Return the function that the standard defines an operator by, or None.

    Parameters
    ----------
    node, operands
        The node, and the variables of its operands, whose types some functions depend on.
    attributes
        Its attributes, without references to those of a function.
    opset
        Opset of the model.
    """
    schema = schema_of(node.domain, node.op_type, opset)
    if schema is None:
        return None
    attributes = {**default_attributes(node.domain, node.op_type, opset), **attributes}
    if schema.has_function:
        return _fixed_body(node.domain, node.op_type, opset)
    if not schema.has_context_dependent_function:
        return None
    import onnx

    proto = onnx.helper.make_node(
        node.op_type,
        [f"operand_{i}" if v is not None else "" for i, v in enumerate(operands)],
        [f"result_{i}" if v.name else "" for i, v in enumerate(node.outputs)],
        domain=node.domain,
    )
    proto.attribute.extend(ir.serde.serialize_attribute(a) for a in attributes.values())
    types = [_type_proto(v).SerializeToString() if v is not None else b"" for v in operands]
    return _function(schema.get_context_dependent_function(proto.SerializeToString(), types))


@cache
def default_attributes(domain: str, operator: str, opset: int) -> Mapping[str, ir.Attr]:
    """Return the attributes of an operator that have a default."""
    schema = schema_of(domain, operator, opset)
    defaults = {} if schema is None else schema.attributes
    return {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in defaults.items()
        if attribute.default_value.name
    }


@cache
def _fixed_body(domain: str, operator: str, opset: int) -> ir.Function:
    schema = schema_of(domain, operator, opset)
    assert schema is not None
    function = _function(schema.function_body.SerializeToString())
    if not function.opset_imports:
        function.opset_imports[""] = opset
    return function


def _function(serialised: bytes) -> ir.Function:
    import onnx

    proto = onnx.FunctionProto()
    proto.ParseFromString(serialised)
    # Bodies leave out the results that a node does not use.
    computed = {*proto.input, *(name for node in proto.node for name in node.output)}
    for name in proto.output:
        if name not in computed:
            proto.node.append(onnx.helper.make_node("Constant", [], [name], value_int=0))
    return ir.serde.deserialize_function(proto)


def _type_proto(variable: Any) -> Any:
    import onnx

    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(variable.type.dtype))
    return onnx.helper.make_tensor_type_proto(dtype, variable.type.shape)
