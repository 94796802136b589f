"""Export objects for their pages."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
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
    shown, columns = None, None
    if _is_bambi(model):
        formula = model
        model, shown = _model_of_bambi(formula)
        columns = _columns_of_bambi(formula) if draws is not None else None
    if pymc is not None and isinstance(model, pymc.Model):
        from pytensor_onnx.pymc import export_sampler

        if columns is not None:
            return _predictor_of_columns(columns, draws)
        if draws is not None:
            return _predictor(model, draws)
        options: dict[str, Any] = {"target": "web", "prior_draws": _PRIOR_DRAWS}
        return export_sampler(model, variables=shown, **options)
    return value if hasattr(value, "conversion") else export_object(value, target="web")


def _predictor(model: Any, draws: Any) -> ONNXProgram:
    """Export a predictor; with a key for each row if it can have one, for lines without noise.

    A posterior of fewer draws is stored as a whole.
    """
    from pytensor_onnx.pymc import export_predictor

    for options in ({"row_id": _ROW, "draws": _DRAWS}, {"draws": _DRAWS}, {"row_id": _ROW}):
        with suppress(ArgumentError):
            return export_predictor(model, draws, target="web", **options)
    return export_predictor(model, draws, target="web")


def _predictor_of_columns(
    columns: tuple[Any, dict[str, str], dict[str, list[str]]], draws: Any
) -> ONNXProgram:
    """Export a predictor of a formula, whose inputs have the names of the table's columns."""
    from pytensor_onnx.pymc.table_columns import told_columns

    model, used, labels = columns
    program = _predictor(model, draws)
    told = json.loads(program.model.metadata_props["pymc"])
    program.model.metadata_props["pymc"] = json.dumps(told_columns(told, used, labels))
    return program


def _columns_of_bambi(value: Any) -> Any:
    """Return the model of a formula with data containers for the columns of its table.

    None if the formula has more than columns, indicators and their products.
    """
    from pytensor_onnx.pymc.table_columns import with_columns

    names = {x for part in _designs(value) for x in part.model.var_names} & set(value.data)
    # Older releases have the term of the response within a component.
    term = getattr(value, "response_term", None) or value.response_component.term
    response = term.name
    table = value.data[[x for x in value.data if x in names and x != response]]
    return with_columns(value.backend.model, table, "__obs__") if len(table.columns) else None


def _designs(value: Any) -> list[Any]:
    """Return the designs of the parameters of a model of Bambi."""
    name = "conditional_parameters"
    parts = getattr(value, name if hasattr(value, name) else "distributional_components")
    return [part.design for part in parts.values() if getattr(part, "design", None) is not None]


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
