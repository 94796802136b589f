"""Branches and checks."""

from __future__ import annotations

from pytensor.conditional import ifelse
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.bodies import Body
from pytensor_onnx.importing.registry.known_values import known
from pytensor_onnx.importing.registry.operator_imports import onnx_import


@onnx_import("If")
def branch(condition: TensorVariable, *, then_branch: Body, else_branch: Body) -> list[Variable]:
    """Compute one of two graphs; only the taken one, if the condition is known."""
    value = known(condition)
    if value is not None:
        return then_branch() if value.reshape(()) else else_branch()
    pairs = list(zip(then_branch(), else_branch(), strict=True))
    for a, b in pairs:
        _check_types(a, b)
    results = ifelse(condition.reshape(()), [a for a, _ in pairs], [b for _, b in pairs])
    return list(results) if isinstance(results, list | tuple) else [results]


def _check_types(a: Variable, b: Variable) -> None:
    if not (isinstance(a, TensorVariable) and isinstance(b, TensorVariable)):
        raise UnsupportedCase("a result of its branches is not a tensor")
    if a.type.ndim != b.type.ndim:
        raise UnsupportedCase(
            f"its branches return {a.type.ndim} and {b.type.ndim} axes, PyTensor needs one rank",
            "from_onnx(model, inputs={name: value}), so that the condition is known at import",
        )
