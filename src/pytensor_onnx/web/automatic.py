"""Descriptions of pages that nobody described, from the metadata of exports of PyMC models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx.web.controls import sizes_of
from pytensor_onnx.web.network_pages import capital, network_page, training_page, words

_MOST_NAMES = 4
_FEW_SLIDERS, _FEW_ROWS, _FEW_CATEGORIES = 12, 30, 8
_CHAINS, _WARMUP, _DRAWS = 4, 300, 250
_STATISTICS = frozenset(
    [
        *("lp", "energy", "tree_depth", "n_steps", "acceptance_rate", "diverging", "step_size"),
        "finite_start",
    ]
)
_METHODS = {
    "advi": "Each run finds the nearest normal distribution, and draws from it",
    "laplace": "Each run finds the mode, and draws from a normal distribution around it",
    "pathfinder": "Each run follows paths to modes, and draws from normal distributions on them",
    "smc": "Each run moves particles from the prior to the posterior",
}
"""What the files of approximations do, by their method."""

_NUMBERS = {
    "pareto_k": "Pareto k: the draws are near the posterior below 0.7",
    "log_marginal_likelihood": "Log marginal likelihood",
    "elbo": "Evidence lower bound",
}
"""Labels of the results of approximations that are shown."""

_INTERNAL = re.compile(
    r"|main(_graph)?|graph|model(_\d+)?|torch[_-]jit([_-]export)?|(tf2|keras2|jax2|paddle-)onnx|"
    r"spox_graph|PaddlePaddle.*"
)
"""Names of graphs that exporters write."""


def automatic_page(model: ir.Model, stem: str) -> dict[str, Any]:
    """Return the description of a page that suits a model.

    Parameters
    ----------
    model
        The model. The metadata ``pymc`` of exports of PyMC models tell what its inputs mean.
    stem
        Name of its file, for a title.

    Returns
    -------
    dict
        ``title`` and, for exports of PyMC models, what a YAML file has. Predictors have the further
        entry ``predictor``, of which `pytensor_onnx.web.static.predictor` makes the page.
    """
    told = stored_mapping(model.metadata_props, "pymc")
    told = {"data": {}, **told}
    graph = model.graph
    if "sampler" in told:
        is_fit = "method" in told["sampler"]
        return _approximation(graph, told) if is_fit else _sampler(graph, told)
    if "draws" in told and isinstance(told.get("outputs"), dict) and told["outputs"]:
        return _predictor(graph, told)
    if "jacobian" in told and any(v.name == "point" for v in graph.inputs):
        page = _density(graph, told)
    else:
        page = training_page(model) or network_page(model)
    return {"title": title_of(graph, stem), **page}


def title_of(graph: ir.Graph, stem: str) -> str:
    """Return a title from the name of a graph, of its file, or of its inputs and outputs.

    Examples
    --------
    >>> graph = ir.Graph([ir.val("pixels")], [ir.val("digit")], nodes=[], name="main_graph")
    >>> title_of(graph, "my_digits"), title_of(graph, "model")
    ('My digits', 'Digit from pixels')
    """
    if not _INTERNAL.fullmatch(name := graph.name or ""):
        return name
    if not _INTERNAL.fullmatch(stem):
        return capital(words(stem.replace("-", " ")))
    given, computed = (
        ", ".join(str(v.name) for v in values if v.name not in graph.initializers)
        for values in (graph.inputs, graph.outputs)
    )
    return capital(words(f"{computed} from {given}" if given else computed))


def _model_name(told: Mapping[str, Any], otherwise: str) -> str:
    return str(told.get("model") or otherwise)


def _label_of_data(told: Mapping[str, Any], name: str) -> str:
    """Return the words of a name with the unit; an index has the name of its dimension."""
    indices = told.get("indices") or {}
    dim = indices.get(name)
    label = words(dim if dim and list(indices.values()).count(dim) == 1 else name)
    unit = (told.get("units") or {}).get(name)
    return f"{label} ({unit})" if unit else label


def _joined(names: Iterable[Any]) -> str:
    """Return names as text with an "and" before the last one.

    Examples
    --------
    >>> _joined("abc"), _joined("abcdef")
    ('a, b and c', 'a, b, c, d and others')
    """
    *first, last = [*names] or [""]
    if len(first) > _MOST_NAMES:
        first, last = first[:_MOST_NAMES], "others"
    return f"{', '.join(first)} and {last}" if first else last


def _labels(told: Mapping[str, Any], name: str, axis: int, size: Any) -> list[str] | None:
    """Return the labels of an axis of a variable, None without any."""
    dims = told.get("dims", {}).get(name) or []
    labels = told.get("coords", {}).get(dims[axis]) if axis < len(dims) else None
    known = labels is not None and (not isinstance(size, int) or len(labels) == size)
    return list(map(str, labels)) if labels is not None and known else None


def _labels_of_indices(told: Mapping[str, Any], name: str) -> list[str] | None:
    """Return the labels of a dimension that data are indices of, None without any."""
    labels = told.get("coords", {}).get((told.get("indices") or {}).get(name))
    return list(map(str, labels)) if labels else None


def _names_in_model(told: Mapping[str, Any]) -> dict[str, str]:
    """Return names in the model by those in the file, where they differ."""
    return {new: name for name, new in (told.get("renamed") or {}).items()}


def _stored(told: Mapping[str, Any], name: str) -> str:
    """Return the name under which the metadata have the data of an observed variable."""
    return (told.get("observed_data") or {}).get(name, name)


def _sampler(graph: ir.Graph, told: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the page of a file of `export_sampler`."""
    inputs: dict[str, dict[str, Any]] = {
        "seed": {"kind": "seed", "label": "Seed of the next chain", "size": _CHAINS, "value": 1}
        | {"advance": True, "more": True},
        "warmup": {"label": "Warm-up steps", "min": 50, "max": 2000, "step": 50, "least": 0}
        | {"value": _WARMUP, "more": True},
        "draws": {"label": "Draws of each chain", "min": 50, "max": 2000, "step": 50, "least": 4}
        | {"value": _DRAWS, "more": True},
    }
    inputs |= _data_controls(graph, told)
    known = {str(v.name) for v in graph.inputs}
    drawn = [v for v in graph.outputs if v.name not in _STATISTICS]
    names = [str(v.name) for v in drawn]
    outputs = {name: view | {"keep": "chains"} for name, view in _posteriors(drawn, told).items()}
    outputs |= {name: {"kind": "hidden", "keep": "chains"} for name in _STATISTICS}
    outputs["lp"] = {"kind": "summary", "label": "Convergence", "keep": "chains", "of": names}
    if sum(prod(n or 1 for n in sizes_of(v)[2:]) for v in drawn) > 1:
        outputs["diverging"] = {"kind": "pairs", "label": "Two variables", "keep": "chains"}
        outputs["diverging"]["of"] = names
    observed = _joined(map(words, told.get("observed") or []))
    named = _joined(map(words, names))
    text = f"The posterior of {named}{f', given {observed}' if observed else ''}. "
    return {
        "title": _model_name(told, f"Posterior of {named}"),
        "text": f"{text}Each run draws {_CHAINS} more chains by NUTS, here in the page."
        + (
            " Change the data, and it draws anew."
            if set(inputs) & known - {"seed", "warmup", "draws"}
            else ""
        ),
        "run": "change",
        "inputs": {k: v for k, v in inputs.items() if k in known},
        "outputs": {str(v.name): outputs[str(v.name)] for v in graph.outputs},
        "button": "Draw more chains",
    }


def _approximation(graph: ir.Graph, told: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the page of a file of draws from an approximation, whose results are in `fit`."""
    method, fit = told["sampler"]["method"], told["sampler"]["fit"]
    hidden = {*fit, *_STATISTICS, "log_weight"}
    inputs: dict[str, dict[str, Any]] = {
        "seed": {"kind": "seed", "label": "Seed of the next run", "size": _CHAINS, "value": 1}
        | {"advance": True, "more": True},
        "draws": {"label": "Draws", "min": 50, "max": 2000, "step": 50, "least": 25}
        | {"value": 4 * _DRAWS, "more": True},
        **_data_controls(graph, told),
    }
    drawn = [v for v in graph.outputs if v.name not in hidden]
    outputs: dict[str, dict[str, Any]] = {str(v.name): {"kind": "hidden"} for v in graph.outputs}
    outputs |= _posteriors(drawn, told)
    numbers = [name for name, dims in fit.items() if name in _NUMBERS and not dims]
    outputs |= {name: {"kind": "number", "label": _NUMBERS[name]} for name in numbers}
    names = [str(v.name) for v in drawn]
    observed, named = (_joined(map(words, x)) for x in (told.get("observed") or [], names))
    given = f", given {observed}" if observed else ""
    return {
        "title": _model_name(told, f"Approximate posterior of {named}"),
        "text": f"The posterior of {named}{given}. {_METHODS[method]}, here in the page.",
        "run": "change",
        "inputs": inputs,
        "outputs": outputs,
        "button": "Draw",
    }


def _data_controls(graph: ir.Graph, told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Describe the controls of the data containers of a sampler."""
    of_model, data = _names_in_model(told), told["data"]
    return {
        file_name: _data_control(value, name, data[name], told)
        for value in graph.inputs
        if (name := of_model.get(file_name := str(value.name), file_name)) in data
    }


def _posteriors(drawn: Iterable[ir.Value], told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Describe the views of drawn variables."""
    of_model, views = _names_in_model(told), {}
    for value in drawn:
        name = of_model.get(str(value.name), str(value.name))
        options: dict[str, Any] = {"kind": "posterior", "label": _label_of_data(told, name)}
        prior = told.get("prior") or {}
        if name in prior.get("values", {}):
            options["prior"] = {"levels": prior["levels"], "values": prior["values"][name]}
        sizes = sizes_of(value)[2:]
        if len(sizes) == 1 and (labels := _labels(told, name, 0, sizes[0])):
            options["labels"] = labels
        elif sizes:
            options["labels"] = _elements(told, name, sizes)
        views[str(value.name)] = options
    return views


def _elements(told: Mapping[str, Any], name: str, sizes: list[int | None]) -> list[str] | None:
    """Return the names of the elements of an array, by its labels or by indices."""
    if None in sizes:
        return None
    found = [""]
    for axis, size in enumerate(sizes):
        labels = _labels(told, name, axis, size) or list(map(str, range(size or 0)))
        found = [f"{before}, {label}" if before else label for before in found for label in labels]
    return found


def _data_control(
    value: ir.Value, name: str, about: Mapping[str, Any], told: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe the control of a data container of a sampler."""
    sizes, sample = sizes_of(value), about.get("sample")
    options: dict[str, Any] = {"label": _label_of_data(told, name)}
    if not sizes:
        if sample is not None:
            options |= _range_of(about["min"], about["max"]) | {"value": sample}
        return options
    is_whole = value.dtype is not None and value.dtype.is_integer()
    size = sizes[0]
    if len(sizes) == 1 and size is not None and size <= _FEW_SLIDERS and sample and not is_whole:
        options |= {"kind": "sliders", "value": sample, **_range_of(about["min"], about["max"])}
        return options | {"labels": _labels(told, name, 0, size) or list(map(str, range(size)))}
    if len(sizes) == 1:
        labels = _labels_of_indices(told, name)
        # Vectors of one length are the columns of one table.
        options |= {"kind": "columns", "column": name, "value": sample or []}
        options["group"] = f"{about['shape'][0]} rows"
        return options | ({"labels": labels} if labels else {})
    columns = _labels(told, name, 1, sizes[1]) if len(sizes) == 2 else None
    options |= {"kind": "table"} | ({"value": sample} if sample else {})
    return options | ({"columns": columns} if columns else {})


def _range_of(low: Any, high: Any) -> dict[str, Any]:
    """Return the range of a slider around values, in round numbers, with a step.

    Examples
    --------
    >>> _range_of(-3.0, 28.0)
    {'min': -10, 'max': 40, 'step': 0.1}
    """
    low, high = (min(low), max(high)) if isinstance(low, list) else (low, high)
    span = (high - low) or abs(high) or 1.0
    unit = _power(span)
    room = span / 5
    ends = {"min": unit * ((low - room) // unit), "max": -unit * ((-high - room) // unit)}
    if low >= 0:
        ends["min"] = max(0.0, ends["min"])
    return {k: _plain(v) for k, v in {**ends, "step": unit / 100}.items()}


def _power(x: float) -> float:
    """Return the largest power of ten that is not larger than a positive number."""
    return float(f"1e{int(f'{x:e}'.partition('e')[2])}")


def _plain(x: float) -> float:
    """Return a number without the last digits, whole where it can be."""
    rounded = float(f"{x:.10g}")
    return int(rounded) if rounded.is_integer() else rounded


def _density(graph: ir.Graph, told: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the page of a file of `export_logp`."""
    start = [x for value in told.get("values") or [] for x in value["start"]]
    names = (told.get("names") or {}).get(str(told.get("space")), [])
    if not start or len(start) != len(names):
        return {}
    transforms = {value["name"]: value for value in told["values"]}
    labels = [_coordinate(name, transforms.get(name, {})) for name in names]
    # The value is the field's own, and need not be within the slider.
    reach = max(3.0, *map(abs, start))
    point: dict[str, Any] = {"value": start, "label": "Point", "min": -reach, "max": reach}
    if len(start) <= _FEW_SLIDERS:
        point |= {"kind": "sliders", "labels": labels, "size": len(start)}
    else:
        point = {"kind": "table", "value": start, "label": "Point"}
    observed = _joined(map(words, told.get("observed") or []))
    named = _joined(words(v["variable"]) for v in told["values"])
    given = f", given {observed}" if observed else ""
    views: dict[str, dict[str, Any]] = {
        "logp": {"label": "Log-density"},
        "dlogp": {"label": "Gradient", "labels": labels},
    }
    if len(names) <= _FEW_ROWS:
        views["dlogp"]["kind"] = "bars"
    computed = {str(v.name) for v in graph.outputs}
    inputs = {"point": point, **_data_controls(graph, told)}
    # Without a sample, random numbers in the place of data would mislead.
    for name, control in inputs.items():
        if control.get("kind") == "table" and name != "point":
            control.setdefault("example", None)
    return {
        "title": _model_name(told, f"Log-density of {named}"),
        "text": f"The log-density of {named}{given}, at a point, "
        "and its gradient, which points to where it grows. Move the point to make it larger.",
        "inputs": inputs,
        "outputs": {name: view for name, view in views.items() if name in computed},
    }


def _coordinate(name: str, value: Mapping[str, Any]) -> str:
    """Return the name of a coordinate of a point, with what was done to the variable."""
    transform, variable = value.get("transform"), words(str(value.get("variable") or name))
    if not transform:
        return words(name)
    known = {"log": "log of {}", "logodds": "logit of {}"}
    return known.get(transform, "{} (transformed)").format(variable)


def _predictor(graph: ir.Graph, told: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the page of a file of `export_predictor`."""
    of_model, data = _names_in_model(told), told["data"]
    stored = [data.get(_stored(told, name), {}) for name in told.get("observed") or []]
    lengths = {about["shape"][0] for about in stored if about.get("shape")}
    inputs: dict[str, dict[str, Any]] = {}
    covariates: list[dict[str, Any]] = []
    for value in graph.inputs:
        file_name = str(value.name)
        name, sizes = of_model.get(file_name, file_name), sizes_of(value)
        about = data.get(name, {})
        # Data of the groups, say, have another length than the observations.
        shape = about.get("shape") or [0]
        has_rows = bool(sizes) and shape[0] in (lengths or shape)
        if name == told.get("row_id"):
            inputs[file_name] = {"kind": "covariate", "label": name}
        elif name not in data:
            kind = {"kind": "seed"} if file_name == "seed" else {}
            inputs[file_name] = {"label": file_name.capitalize(), "more": True, **kind}
        elif not sizes or (has_rows and len(sizes) <= 2):
            inputs[file_name] = {"kind": "covariate", "label": _label_of_data(told, name)}
            covariates += _covariates(file_name, name, sizes, about, told)
        else:
            inputs[file_name] = _data_control(value, name, about, told) | {"more": True}
    wanted = told["outputs"]
    predicted = [_predicted(graph, name, kinds, told) for name, kinds in wanted.items()]
    names = _joined(map(words, wanted))
    given = _joined(dict.fromkeys(inputs[x["input"]]["label"] for x in covariates))
    by = f" by {given}" if given else ""
    return {
        "title": _model_name(told, f"{capital(names)}{by}"),
        "text": f"Predictions of {names}, computed in this page from {told['draws']:,} draws of "
        "the posterior of a PyMC model."
        + (
            " Choose what lies along the axis, and set the others."
            if covariates
            else " The rows are those of the fit: the model has no data containers to change."
        ),
        "run": "change",
        "inputs": inputs,
        "outputs": {str(v.name): {"kind": "hidden"} for v in graph.outputs},
        "predictor": {
            "covariates": covariates,
            "outputs": predicted,
            "row_id": (told.get("renamed") or {}).get(told.get("row_id"), told.get("row_id")),
        },
    }


def _covariates(
    file_name: str,
    name: str,
    sizes: list[int | None],
    about: Mapping[str, Any],
    told: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Describe a data container as covariates: one, or one for each column of a matrix."""
    entry: dict[str, Any] = {"input": file_name, "name": name, "whole": "int" in about["dtype"]}
    entry["label"] = _label_of_data(told, name)
    entry["rows"] = bool(sizes)
    if len(sizes) < 2:
        labels = _labels_of_indices(told, name)
        values = about.get("values")
        if labels:
            entry["choices"] = [[i, label] for i, label in enumerate(labels)]
        elif values and all(float(x).is_integer() for x in values):
            entry["choices"] = [[x, f"{x:g}"] for x in values]
        numbers = _numbers(about, None) if "min" in about else {}
        return [entry | numbers]
    width = sizes[1] if isinstance(sizes[1], int) else about["shape"][1]
    labels = _labels(told, name, 1, width) or [f"{name}[{j}]" for j in range(width)]
    return [
        entry
        | {"column": j, "name": label, "label": words(label), "of": width}
        | (_numbers(about, j) if "min" in about else {})
        for j, label in enumerate(labels)
    ]


def _numbers(about: Mapping[str, Any], j: int | None) -> dict[str, Any]:
    """Return the range, the typical value and the sample of a covariate."""
    taken = {key: about[key] if j is None else about[key][j] for key in ("min", "max", "median")}
    sample = about["sample"] if j is None else [row[j] for row in about["sample"]]
    return {**taken, "sample": sample, **{"steps": _range_of(taken["min"], taken["max"])["step"]}}


def _predicted(
    graph: ir.Graph, name: str, kinds: list[str], told: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe the outputs of a predicted variable."""
    renamed = told.get("renamed") or {}
    names = {kind: name if kind == "draws" else f"{name}_{kind}" for kind in kinds}
    about = told["data"].get(_stored(told, name), {})
    entry: dict[str, Any] = {
        "name": name,
        "label": _label_of_data(told, name),
        "names": {kind: renamed.get(output, output) for kind, output in names.items()},
        "levels": told.get("quantiles") or [],
        "mass": told.get("hdi_prob"),
        "categories": (told.get("categories") or {}).get(name, []),
    }
    if isinstance(sample := about.get("sample"), list) and len(about["shape"]) == 1:
        entry["observed"] = sample
        distinct = sorted(set(sample))
        is_whole = "int" in about["dtype"] or "bool" in about["dtype"]
        if not entry["categories"] and is_whole and len(distinct) <= _FEW_CATEGORIES:
            entry["categories"] = distinct
    return entry
