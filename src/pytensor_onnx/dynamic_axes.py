"""Name axes of inputs and outputs as users do: by ``dynamic_axes``, and by named dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir
from pytensor.graph.basic import Variable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.graph.dimensions import Dimensions
from pytensor_onnx.named_dims import dim_names
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.user_code import NOT_OF_USERS

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]
NamedAxes = Mapping[str, Mapping[int, str | None]]


def named_axes(dynamic_axes: DynamicAxes | None) -> NamedAxes:
    """Return the axes as a dict of names; axes given as a list have the name None.

    Raises
    ------
    ArgumentError
        If the argument has another form.

    Examples
    --------
    >>> named_axes({"x": {0: "batch"}, "y": [0]})
    {'x': {0: 'batch'}, 'y': {0: None}}
    """
    form = "give the axes of each input by name: dynamic_axes={'x': {0: 'batch'}}"
    if dynamic_axes is None:
        return {}
    if not isinstance(dynamic_axes, Mapping):
        raise ArgumentError(f"dynamic_axes is a {type(dynamic_axes).__name__}: {form}")
    named: dict[str, dict[int, str | None]] = {}
    for name, axes in dynamic_axes.items():
        if not isinstance(name, str):
            raise ArgumentError(f"dynamic_axes has the key {name!r}: {form}")
        if not isinstance(axes, Mapping | list | tuple | set | range):
            raise ArgumentError(f"dynamic_axes gives {name!r} the value {axes!r}: {form}")
        if not all(isinstance(axis, int) for axis in axes):
            raise ArgumentError(f"dynamic_axes gives {name!r} the axes {list(axes)!r}: {form}")
        if not isinstance(axes, Mapping):
            named[name] = dict.fromkeys(axes)
        elif None in axes.values():
            raise ArgumentError(f"dynamic_axes gives an axis of {name!r} the name None: {form}")
        else:
            named[name] = dict(axes)
    return named


def check_names(axes: NamedAxes, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise for names of neither inputs nor outputs."""
    unknown = set(axes) - set(inputs) - set(outputs)
    if unknown:
        raise ArgumentError(
            f"dynamic_axes names {sorted(unknown)}, but the inputs are {list(inputs)} and the "
            f"outputs {list(outputs)}"
        )


def reserve_names(
    inputs: Sequence[Variable],
    names: Sequence[str],
    axes: NamedAxes,
    keeps_names: bool,
    dims: Dimensions,
) -> Iterator[dict[int, str]]:
    """Record the users' names for the axes of inputs, and yield those of each by nonnegative axis.

    Parameters
    ----------
    inputs, names
        Inputs, and their names in ``axes``.
    axes
        Names of axes; they win over those of dimensions.
    keeps_names
        Whether dimensions of `pytensor.xtensor` keep their names; equal names mean equal sizes.
    dims
        Dimensions of the model.

    Raises
    ------
    ArgumentError
        If an input has no axis of a number; when the names of the input are asked for.
    """
    for name in names:
        for dim in axes.get(name, {}).values():
            if dim is not None:
                dims.name(dim)
    own = [dict(enumerate(dim_names(v))) if keeps_names else {} for v in inputs]
    sizes: dict[str, set[int]] = {}
    for variable, named in zip(inputs, own, strict=True):
        for axis, dim in named.items():
            dims.name(dim, rank=1)
            sizes.setdefault(dim, set()).update({variable.type.shape[axis]} - {None})
    for dim, known in sizes.items():
        if len(known) == 1:
            dims.equate(dim, *known)
    for variable, name, named in zip(inputs, names, own, strict=True):
        rank = len(getattr(variable.type, "shape", ()))
        renamed = _by_position(f"input {name!r}", rank, axes.get(name, {}))
        yield named | {axis: dim for axis, dim in renamed.items() if dim is not None}


def name_output_dims(
    outputs: Sequence[tuple[str, ir.Value]], axes: NamedAxes, dims: Dimensions
) -> None:
    """Give dimensions of outputs the user's names, unless the graph has better ones."""
    for name, value in outputs:
        if name not in axes:
            continue
        sizes = list(dims_of(value) or ())
        for axis, dim in _by_position(f"output {name!r}", len(sizes), axes[name]).items():
            own = sizes[axis]
            if dim is None or dim in dims.names:
                continue
            if own is None:
                sizes[axis] = dim
            elif dims.is_named_well(own):
                continue
            dims.name(dim)
            dims.equate(dim, own)
        value.shape = ir.Shape(sizes)


def keep_names_of_outputs(
    variables: Sequence[Variable], outputs: Sequence[ir.Value], dims: Dimensions
) -> None:
    """Name the dimensions of outputs as PyTensor does, unless inputs name them."""
    for variable, value in zip(variables, outputs, strict=True):
        for wanted, dim in zip(dim_names(variable), dims_of(value) or (), strict=False):
            if not dims.is_named_well(dim):
                name = dims.names.unique(wanted) if wanted in dims.names else wanted
                dims.name(name, rank=1)
                dims.equate(name, dim)


def warn_of_lost_names(graph: ir.Graph, dynamic_axes: DynamicAxes | None) -> None:
    """Warn of the user's names that dimensions of inputs and outputs do not have."""
    axes = named_axes(dynamic_axes)
    lost = [
        f"axis {axis} of {value.name} the name {dim!r}, but the graph makes its size {dims[axis]}"
        for value in (*graph.inputs, *graph.outputs)
        if (dims := dims_of(value)) is not None
        for axis, dim in axes.get(str(value.name), {}).items()
        if dim is not None and dims[axis] != dim
    ]
    if lost:
        text = f"dynamic_axes gives {'; '.join(lost)}"
        warnings.warn(text, UserWarning, skip_file_prefixes=NOT_OF_USERS)


def _by_position(subject: str, rank: int, axes: Mapping[int, str | None]) -> dict[int, str | None]:
    """Return names by nonnegative axis."""
    names: dict[int, str | None] = {}
    for axis, dim in axes.items():
        if not -rank <= axis < rank:
            raise ArgumentError(
                f"dynamic_axes names axis {axis} of {subject}, which has {rank} axes"
            )
        if dim is not None and not (isinstance(dim, str) and dim):
            raise ArgumentError(
                f"dynamic_axes gives axis {axis} of {subject} the name {dim!r}: it must be a "
                "text that is not empty"
            )
        if axis % rank in names:
            raise ArgumentError(f"dynamic_axes names axis {axis % rank} of {subject} twice")
        names[axis % rank] = dim
    return names
