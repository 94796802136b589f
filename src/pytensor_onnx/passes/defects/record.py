"""Records of the table of defects."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import onnx_ir as ir

from pytensor_onnx.passes.node_walk import Form

if TYPE_CHECKING:
    from pytensor_onnx.passes.forms.guard_forms import Inlined

OLDER = ("onnxruntime 1.18", "onnxruntime 1.22")
"""Earlier versions of ONNX Runtime."""

ORT = ("onnxruntime", "web", "webgpu", "node", *OLDER)
"""Targets that run ONNX Runtime's kernels and its optimizer."""

EVERY = (*ORT, "portable", "openvino", "tract")

DOUBLE = frozenset({ir.DataType.DOUBLE})
SINGLE_AND_DOUBLE = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
FLOATS = frozenset({ir.DataType.FLOAT16, *SINGLE_AND_DOUBLE})
INT64 = frozenset({ir.DataType.INT64})
INTEGERS = frozenset(ir.DataType[f"{s}INT{b}"] for s in ("", "U") for b in (8, 16, 32, 64))


def always(node: ir.Node) -> bool:
    """Return true."""
    return True


class Decomposition(NamedTuple):
    """Decomposition that replaces a node with a defect.

    Attributes
    ----------
    form
        Function that emits the decomposition.
    change
        Line of the report, with the fields ``{op}`` and ``{dtype}``.
    condition
        Whether the defect concerns a node.
    of_non_finite
        Whether only NaN and infinities are concerned, so that ``assume_finite`` leaves it out.
    of_kernel
        Whether the decomposition contains the node, and needs a kernel of it.
    """

    form: Form
    change: str
    condition: Callable[[ir.Node], bool] = always
    of_non_finite: bool = False
    of_kernel: bool = False


class ByDefinition:
    """Treatment by the definition of an operator, or by the fallback of the node.

    Elementwise definitions themselves keep the operator: they only use it where it is accurate.
    """


class Guard(NamedTuple):
    """Guard that keeps the runtime's optimizer from a wrong rewrite.

    Attributes
    ----------
    rule
        Function that returns a guarded form, None for nodes without the defect.
    change
        Line of the report, with the field ``{op}``.
    """

    rule: Callable[[ir.Node, "Inlined"], Form | None]
    change: str


class Defect(NamedTuple):
    """Defect of a kernel or of the optimizer of a runtime, and its treatment.

    Attributes
    ----------
    name
        Name, unique in the table.
    operators
        Operators with the defect.
    dtypes
        Dtypes of their main type variable with the defect; None for every dtype. Guards check
        dtypes themselves, as dtypes in functions are unknown.
    targets
        Names of the targets with the defect.
    reason
        The wrong behaviour, in one sentence.
    tests
        Tests that show the defect in the installed runtime, or in the standard.
    treatment
        Replacement of a node; a sentence if no pass is needed.
    switched_off
        Optimizer of ONNX Runtime that sessions of this package disable as well. Models do not
        depend on it, since other programs may load a file.
    repaired
        The first version of ONNX Runtime without the defect. Models keep the treatment, for older
        ones.
    """

    name: str
    operators: tuple[str, ...]
    reason: str
    tests: tuple[str, ...]
    treatment: Decomposition | ByDefinition | Guard | str
    dtypes: frozenset[ir.DataType] | None = None
    targets: tuple[str, ...] = ORT
    switched_off: str | None = None
    repaired: str | None = None

    def concerns(self, dtype: ir.DataType) -> bool:
        """Return whether the defect concerns a dtype."""
        return self.dtypes is None or dtype in self.dtypes
