"""Table of defects of runtimes, and of their treatment.

`scripts/make_defects.py` makes `docs/reference/defects.md` from it.
"""

from collections import defaultdict
from functools import cache

from pytensor_onnx.passes.defects.avoided import AVOIDED_DEFECTS
from pytensor_onnx.passes.defects.numeric_defects import NON_FINITE_DEFECTS, ROUNDING_DEFECTS
from pytensor_onnx.passes.defects.optimizer_defects import (
    OPTIMIZER_DEFECTS,
    RECURRENT_DEFECTS,
    SIZE_DEFECTS,
)
from pytensor_onnx.passes.defects.record import ByDefinition, Decomposition, Defect, Guard

__all__ = [
    "DEFECTS",
    "ByDefinition",
    "Decomposition",
    "Defect",
    "Guard",
    "defects_by_operator",
    "switched_off_optimizers",
]

DEFECTS: tuple[Defect, ...] = (
    *SIZE_DEFECTS,
    *ROUNDING_DEFECTS,
    *NON_FINITE_DEFECTS,
    *RECURRENT_DEFECTS,
    *OPTIMIZER_DEFECTS,
    *AVOIDED_DEFECTS,
)
"""The first record that concerns a node decides; the legaliser looks up the new nodes again."""


@cache
def defects_by_operator(target: str) -> dict[str, list[Defect]]:
    """Return the defects of a target by operator, in the order of their treatment.

    Examples
    --------
    >>> [defect.name for defect in defects_by_operator("onnxruntime")["Expand"]]
    ['expansion to nothing']
    """
    found: dict[str, list[Defect]] = defaultdict(list)
    for defect in DEFECTS:
        if target in defect.targets:
            for operator in defect.operators:
                found[operator].append(defect)
    return dict(found)


def switched_off_optimizers(target: str) -> list[str]:
    """Return the optimizers of a runtime that sessions disable.

    Examples
    --------
    >>> switched_off_optimizers("onnxruntime")
    ['ExpandElimination', 'GatherToSliceFusion', 'ConstantSharing']
    """
    names = (d.switched_off for d in DEFECTS if target in d.targets)
    return [name for name in names if name is not None]
