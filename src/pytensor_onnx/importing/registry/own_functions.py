"""Functions that this package writes into files, as the operations that they stand for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.graph.domains import FUNCTION_DOMAIN, STANDARD_DOMAIN
from pytensor_onnx.late_names import import_modules

_NAME = re.compile(r"(?P<op>\w+?)_float(32|64)(_batch\d+|_in_blocks)*")
_GUARD = "KeepNonFiniteIn"


def own_operation(node: ir.Node) -> Callable[..., Variable] | None:
    """Return the operation that a call of a function of this package stands for, or None.

    A function of the standard domain is the definition of the operation of its name. A guard of a
    runtime's operator returns its last operand where that operator is right, as PyTensor's is.

    Examples
    --------
    >>> node = ir.node("Erfinv_float32", [ir.val("x")], domain="pytensor.standard")
    >>> import pytensor.tensor as pt
    >>> print(own_operation(node)(pt.fvector("x")).owner.op)
    Erfinv
    """
    if node.domain == FUNCTION_DOMAIN and node.op_type.startswith(_GUARD):
        return _last
    match = _NAME.fullmatch(node.op_type) if node.domain == STANDARD_DOMAIN else None
    return _elementwise().get(match["op"]) if match else None


def _last(*operands: Any) -> Any:
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
