"""Functions that this package writes into files, as the operations that they stand for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.graph.domains import FUNCTION_DOMAIN, STANDARD_DOMAIN
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.ops.networks.kept_operator import note_origin

GUARDED = "guarded in the file"
"""Key of the metadata of an operator that a function of the file guards."""
_NAME = re.compile(r"(?P<op>\w+?)_float(32|64)(_batch\d+|_in_blocks)*")
_KEPT = re.compile(r"(KeepNonFiniteIn|RequireNonEmpty)[A-Z]\w*")
_DTYPE = r"_(?:bool|float16|float32|float64|u?int(?:8|16|32|64))"
_COMPUTED = re.compile(f"(CumProd|CumProdOrEmpty|FloorDivide|FloorModulo|Power){_DTYPE}")
_EXTREMUM = re.compile(f"(ReduceMax|ReduceMin)(KeepDims)?(?:OfOneSign)?{_DTYPE}(?:_all)?")
_TOP_K = re.compile(f"TopK(Largest|Smallest)Axis(Minus)?(\\d+){_DTYPE}")
_UNIQUE = re.compile(f"Unique{_DTYPE}")
_FUNCTIONS: dict[str, Callable[..., Variable]] = {
    "CumProd": partial(pt.cumprod, axis=0),
    "CumProdOrEmpty": partial(pt.cumprod, axis=0),
    "FloorDivide": pt.int_div,
    "FloorModulo": pt.mod,
    "Power": pt.pow,
}


def own_operation(node: ir.Node) -> Callable[..., Variable] | None:
    """Return the operation that a call of a function of this package stands for, or None.

    A function of the standard domain is the definition of the operation of its name. A guard of a
    runtime's operator returns its last operand where that operator is right, as PyTensor's is.
    Arithmetic with NumPy's rules is PyTensor's.

    Examples
    --------
    >>> node = ir.node("Erfinv_float32", [ir.val("x")], domain="pytensor.standard")
    >>> import pytensor.tensor as pt
    >>> print(own_operation(node)(pt.fvector("x")).owner.op)
    Erfinv
    """
    if node.domain == FUNCTION_DOMAIN:
        if _KEPT.fullmatch(node.op_type):
            return _last
        match = _COMPUTED.fullmatch(node.op_type)
        return _FUNCTIONS[match[1]] if match else None
    match = _NAME.fullmatch(node.op_type) if node.domain == STANDARD_DOMAIN else None
    return _elementwise().get(match["op"]) if match else None


def own_operator(node: ir.Node) -> ir.Node | None:
    """Return the operator of the standard that a function of this package guards, or None.

    Examples
    --------
    >>> x = ir.val("x")
    >>> node = ir.node("TopKLargestAxisMinus1_float32", [x, x], num_outputs=2, domain="pytensor")
    >>> operator = own_operator(node)
    >>> operator.op_type, operator.attributes["axis"].value
    ('TopK', -1)
    """
    if node.domain != FUNCTION_DOMAIN:
        return None
    match = _EXTREMUM.fullmatch(node.op_type)
    if match:
        return _operator(node, match[1], keepdims=int(match[2] is not None))
    match = _TOP_K.fullmatch(node.op_type)
    if match:
        axis = -int(match[3]) if match[2] else int(match[3])
        return _operator(node, "TopK", axis=axis, largest=int(match[1] == "Largest"))
    return _operator(node, "Unique") if _UNIQUE.fullmatch(node.op_type) else None


def _operator(node: ir.Node, op_type: str, **attributes: int) -> ir.Node:
    inputs = [None] * len(node.inputs)
    operator = ir.node(op_type, inputs, attributes, num_outputs=len(node.outputs))
    operator.meta[GUARDED] = True
    return operator


def _last(*operands: Any) -> Any:
    """Return the result that a function guards, whose operation is guarded again in exports."""
    note_origin(operands[-1], imported=False)
    return operands[-1]


@cache
def _elementwise() -> dict[str, Elemwise]:
    """Return the elementwise operations by the names of their definitions."""
    import_modules("pytensor_onnx.functions.special")
    found: dict[str, Elemwise] = {}
    for op_type, definition in DEFINITIONS.items():
        if not definition.is_elementwise or definition.keywords or not definition.is_own:
            continue
        instance = next(
            (v for v in vars(sys.modules[op_type.__module__]).values() if type(v) is op_type), None
        )
        if isinstance(instance, ScalarOp):
            found[op_type.__name__] = Elemwise(instance)
    return found
