"""Export objects for their pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pytensor_onnx.errors import ArgumentError

if TYPE_CHECKING:
    from pytensor_onnx import ONNXProgram

_DRAWS = 500
"""Posterior draws of a page that predicts, which are most of its bytes."""
_PRIOR_DRAWS = 2000
_ROW = "row"


def program_of(value: Any) -> ONNXProgram:
    """Export an object for a page.

    Parameters
    ----------
    value
        A model of PyMC or Bambi, whose page draws; a tuple of such a model and its draws, whose
        page predicts; a program; or what ``pytensor-onnx export`` takes.

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
    model, draws = parts
    shown = None
    if _is_bambi(model):
        model, shown = _model_of_bambi(model)
    if pymc is not None and isinstance(model, pymc.Model):
        from pytensor_onnx.pymc import export_sampler

        if draws is not None:
            return _predictor(model, draws)
        options: dict[str, Any] = {"target": "web", "prior_draws": _PRIOR_DRAWS}
        return export_sampler(model, variables=shown, **options)
    return value if hasattr(value, "conversion") else export_object(value, target="web")


def _predictor(model: Any, draws: Any) -> ONNXProgram:
    """Export a predictor; with a key for each row if it can have one, for lines without noise."""
    from pytensor_onnx.pymc import export_predictor

    options: dict[str, Any] = {"draws": _DRAWS, "target": "web"}
    try:
        return export_predictor(model, draws, row_id=_ROW, **options)
    except ArgumentError:
        return export_predictor(model, draws, **options)


def _is_bambi(value: Any) -> bool:
    bambi = sys.modules.get("bambi")
    return bambi is not None and isinstance(value, bambi.Model)


def _model_of_bambi(value: Any) -> tuple[Any, list[str]]:
    """Return the PyMC model of one of Bambi, and its variables that a reader knows by the formula.

    These are neither standardised offsets of groups nor means of single observations.
    """
    if not value.built:
        value.build()
    model = value.backend.model
    dims = model.named_vars_to_dims
    names = [str(v.name) for v in (*model.free_RVs, *model.deterministics)]
    of_rows = {name for name in names if "__obs__" in (dims.get(name) or ())}
    return model, [x for x in names if not x.endswith("_offset") and x not in of_rows]
