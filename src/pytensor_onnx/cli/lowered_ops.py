"""The Ops that have a lowering or a definition, for the table of coverage."""

from pytensor.graph.op import Op
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.random.op import RandomVariable


def registered_ops() -> set[type[Op]]:
    """Return the classes with a registered lowering or definition, base classes included."""
    from pytensor_onnx.dispatch import onnx_funcify
    from pytensor_onnx.dispatch.registry.definition_instance import (
        COMPARISONS,
        LOGICAL_AND_BITWISE,
        OPERATORS,
    )
    from pytensor_onnx.dispatch.registry.problem_names import REFUSED
    from pytensor_onnx.functions.registry import DEFINITIONS, PACKAGES
    from pytensor_onnx.late_names import import_modules

    for package in PACKAGES:
        import_modules(package)
    # Random variables are rewritten; the registered lowering refuses the others.
    registered = set(onnx_funcify.registry) - {object, Op, RandomVariable, *REFUSED}
    return registered | {*OPERATORS, *COMPARISONS, *LOGICAL_AND_BITWISE, *DEFINITIONS}


def is_lowered(op_type: type[Op]) -> bool:
    """Return whether a class has a lowering, of its own or of a base class.

    Examples
    --------
    >>> from pytensor.scalar.basic import Complex, Exp
    >>> is_lowered(Exp), is_lowered(Complex)
    (True, False)
    """
    from pytensor_onnx.dispatch import onnx_funcify
    from pytensor_onnx.dispatch.registry.problem_names import REFUSED

    if op_type in registered_ops():
        return True
    lowering = onnx_funcify.dispatch(op_type)
    general = {onnx_funcify.dispatch(c) for c in (object, Op, ScalarOp, RandomVariable, *REFUSED)}
    return lowering not in general
