"""Export objects for their pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pytensor_onnx.errors import ArgumentError

if TYPE_CHECKING:
    from pytensor_onnx import ONNXProgram

_DRAWS = 500
_PRIOR_DRAWS = 2000
_ROW = "row"


def program_of(value: Any) -> ONNXProgram:
    """Export an object for a page.

    Parameters
    ----------
    value
        A PyMC model, whose page draws; a tuple of a PyMC model and its draws, or a fitted model of
        Bambi, whose page predicts; a program; or what ``pytensor-onnx export`` takes.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.scalar("x")
    >>> program_of(([x], {"y": x * 2})).page().description["title"]
    'Y from x'
    """
    from pytensor_onnx.cli.inspection import export_object

    pymc = sys.modules.get("pymc")
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if pymc is not None and isinstance(parts[0], pymc.Model):
        from pytensor_onnx.pymc import export_sampler

        model, draws = parts
        if draws is not None:
            return _predictor(model, draws)
        return export_sampler(model, target="web", prior_draws=_PRIOR_DRAWS)
    return value if hasattr(value, "conversion") else export_object(value, target="web")


def _predictor(model: Any, draws: Any) -> ONNXProgram:
    """Export a predictor; with a key for each row if it can have one, for lines without noise."""
    from pytensor_onnx.pymc import export_predictor

    options: dict[str, Any] = {"draws": _DRAWS, "target": "web"}
    try:
        return export_predictor(model, draws, row_id=_ROW, **options)
    except ArgumentError:
        return export_predictor(model, draws, **options)
