"""Branches and checks."""

from __future__ import annotations

import builtins

from pytensor.conditional import ifelse
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.graph.builder import CHECK, is_check
from pytensor_onnx.importing.registry.bodies import Body
from pytensor_onnx.importing.registry.known_values import arguments_for, known
from pytensor_onnx.importing.registry.operator_imports import onnx_import


@onnx_import("If")
def branch(condition: TensorVariable, *, then_branch: Body, else_branch: Body) -> list[Variable]:
    """Compute one of two graphs; only the taken one, if the condition is known."""
    value = known(condition)
    if value is not None:
        return then_branch() if value.reshape(()) else else_branch()
    check = _check(else_branch)
    if check is not None:
        return [check(v, condition.reshape(())) for v in then_branch()]
    pairs = list(zip(then_branch(), else_branch(), strict=True))
    for a, b in pairs:
        _check_types(condition, a, b)
    results = ifelse(condition.reshape(()), [a for a, _ in pairs], [b for _, b in pairs])
    return list(results) if isinstance(results, list | tuple) else [results]


def _check(branch: Body) -> CheckAndRaise | None:
    """Return the check whose failure this package wrote as a branch, or None."""
    texts = [node.metadata_props[CHECK] for node in branch.graph if is_check(node)]
    if not texts:
        return None
    name, _, message = texts[0].partition(": ")
    error = getattr(builtins, name, ValueError)
    return CheckAndRaise(error if issubclass(error, Exception) else ValueError, message)


def _check_types(condition: Variable, a: Variable, b: Variable) -> None:
    if not (isinstance(a, TensorVariable) and isinstance(b, TensorVariable)):
        raise UnsupportedCase("a result of its branches is not a tensor")
    if a.type.ndim != b.type.ndim:
        raise UnsupportedCase(
            f"its branches return {a.type.ndim} and {b.type.ndim} axes, PyTensor needs one rank",
            f"{arguments_for(condition)}, so that the condition is known at import",
        )
