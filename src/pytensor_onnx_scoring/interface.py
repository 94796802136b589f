"""The columns that a file takes and returns, as its session and its metadata tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx_scoring.problems import ScoringError, raise_problems, similar
from pytensor_onnx_scoring.zip_maps import Labels, labels_of, value_type

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

BATCH_AXIS = "batch_axis"
"""Entry of a file's metadata: the name of the dimension of the rows."""

FEATURE_NAMES = "feature_names"
"""Entry of a file's metadata: JSON of the names of columns, by inputs and outputs."""

ROW_BYTES = "row_bytes"
"""Entry of a file's metadata: bytes of one row in the largest array of a run."""

_DTYPES = {
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "string": "object",
    **{name: name for name in ("float16", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64")},
}

Dim = int | str | None


@dataclass(frozen=True)
class Tensor:
    """An input or output of a file.

    Attributes
    ----------
    name, dtype, shape
        Its name, its dtype, and the sizes or names of its axes.
    axis
        The axis of the rows, None if it has none.
    features
        Names of the columns along its other axis, or of the one column of rows.
    labels
        Classes of an output that has a map of probabilities for each row, instead of a tensor.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Dim, ...]
    axis: int | None
    features: tuple[str, ...] = ()
    labels: Labels = ()

    @property
    def of_row(self) -> tuple[Dim, ...]:
        """The axes without that of the rows."""
        return tuple(dim for i, dim in enumerate(self.shape) if i != self.axis)

    @property
    def is_single(self) -> bool:
        """Whether a row has one element, so that its column is of numbers or strings."""
        return self.of_row in ((), (1,))

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if dim is None else str(dim) for dim in self.shape)}]"

    def columns(self) -> dict[str, np.dtype]:
        """Return the dtypes of its columns, of which one of an array may be in a cell."""
        if self.features or self.is_single:
            return dict.fromkeys(self.features or (self.name,), self.dtype)
        if any(not isinstance(dim, int) for dim in self.of_row):
            return {self.name: np.dtype(object)}
        return {self.name: np.dtype((self.dtype, self.of_row))}


@dataclass(frozen=True)
class Interface:
    """The inputs of rows, other inputs, and the outputs of rows of a file.

    Attributes
    ----------
    inputs, others, outputs
        The tensors.
    bytes_of_row
        Bytes of one row in the largest array of a run, zero if the file does not tell.
    """

    inputs: tuple[Tensor, ...]
    others: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    bytes_of_row: int


def interface_of(
    session: InferenceSession,
    model: str | bytes,
    constants: Collection[str],
    feature_names: Mapping[str, Sequence[str]],
) -> Interface:
    """Read the interface of a file.

    Parameters
    ----------
    session
        The session of the file.
    model
        Path of the file, or its bytes.
    constants
        Names of inputs that have no axis of rows, although their first axis may have any size.
    feature_names
        Names of columns, by inputs and outputs, instead of those in the metadata.

    Raises
    ------
    ScoringError
        If an input has a type that no column has, or names do not fit; outputs of such types are
        left out.
    """
    metadata = session.get_modelmeta().custom_metadata_map
    features = {**_features(metadata.get(FEATURE_NAMES, "{}")), **feature_names}
    given = session.get_inputs()
    first = {x.name: x.shape[0] for x in given if x.name not in constants and x.shape}
    rows = {dim for dim in first.values() if not isinstance(dim, int)}
    if (named := metadata.get(BATCH_AXIS, "")) in rows:
        rows = {named}
    inputs = [_tensor(x, 0 if first.get(x.name, 0) in rows else None, features) for x in given]
    outputs = _outputs(session, model, rows, features)
    _check_names(feature_names, (*inputs, *outputs))
    return Interface(
        tuple(x for x in inputs if x.axis is not None),
        tuple(x for x in inputs if x.axis is None),
        tuple(x for x in outputs if x.axis is not None),
        int(metadata[ROW_BYTES]) if metadata.get(ROW_BYTES, "").isdecimal() else 0,
    )


def _features(text: str) -> Mapping[str, Sequence[str]]:
    """Return the names of columns, none if another tool wrote the entry."""
    try:
        features = json.loads(text)
    except ValueError:
        return {}
    are_lists = isinstance(features, dict) and all(isinstance(v, list) for v in features.values())
    return features if are_lists else {}


def _check_names(given: Mapping[str, Sequence[str]], tensors: Sequence[Tensor]) -> None:
    """Raise if names of columns are not as many as a row of their input or output has elements."""
    problems = []
    by_name = {x.name: x for x in tensors}
    for name, features in given.items():
        if name not in by_name:
            problems.append(f"there is no {name}: choose of {similar(name, by_name)}")
            continue
        tensor, n = by_name[name], len(features)
        size = tensor.of_row[0] if tensor.of_row else 1
        if tensor.axis is None or len(tensor.of_row) > 1:
            problems.append(f"{name}, {tensor}, has no columns: it is no matrix of rows")
        elif isinstance(features, str) or n != len(set(features)):
            problems.append(f"{name}: give a list of different names, not {features!r}")
        elif n != size and (isinstance(size, int) or n == 0):
            problems.append(f"{name}, {tensor}, has {size} columns, and {n} names were given")
    raise_problems(problems, "feature_names do not fit the file")


def _kind(value: Any) -> str:
    return str(value.type).removeprefix("tensor(").removesuffix(")")


def _tensor(value: Any, axis: int | None, features: Mapping[str, Sequence[str]]) -> Tensor:
    kind = _kind(value)
    if kind not in _DTYPES:
        raise ScoringError(f"{value.name} is of type {value.type}, which no column of a table has")
    names = tuple(features.get(value.name, ()))
    return Tensor(value.name, np.dtype(_DTYPES[kind]), tuple(value.shape), axis, names)


def _outputs(
    session: InferenceSession,
    model: str | bytes,
    rows: Collection[Dim],
    features: Mapping[str, Sequence[str]],
) -> list[Tensor]:
    """Return the outputs that are columns: tensors, and maps of probabilities by classes."""
    given = session.get_outputs()
    producer = session.get_modelmeta().producer_name
    labels = labels_of(model) if any(value_type(x.type) for x in given) else {}
    found = []
    for output in given:
        name, known = output.name, labels.get(output.name)
        if _kind(output) in _DTYPES:
            tensor = _tensor(output, _row_axis(output.shape, rows), features)
            # This converter declares the labels of LightGBM for one row, and makes one for each.
            if tensor.shape == (1,) and producer == "OnnxMLTools":
                tensor = replace(tensor, shape=(None,), axis=0)
            found.append(tensor)
        elif known:
            dtype = np.dtype(_DTYPES[str(value_type(output.type))])
            names = features.get(name) or [f"{name}_{label}" for label in known]
            found.append(Tensor(name, dtype, (None, len(known)), 0, tuple(names), known))
    return found


def _row_axis(shape: Sequence[Dim], rows: Collection[Dim]) -> int | None:
    """Return the axis of the rows: one of their name, or a first axis of unknown size."""
    named = [axis for axis, dim in enumerate(shape) if dim in rows]
    if named:
        return named[0]
    return 0 if None in rows and shape and not isinstance(shape[0], int) else None


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result: an output, or a place along its other axis."""

    name: str
    tensor: Tensor
    place: int | None = None

    @property
    def dtype(self) -> np.dtype:
        """The dtype, of an array if one is in a cell."""
        return self.tensor.dtype if self.place is not None else self.tensor.columns()[self.name]


def output_columns(
    outputs: Sequence[Tensor], wanted: Collection[str] | None
) -> tuple[OutputColumn, ...]:
    """Return the columns of the result, all or those that are wanted.

    Parameters
    ----------
    outputs
        Outputs of rows.
    wanted
        Names of columns, or of outputs for all of their columns.

    Raises
    ------
    ScoringError
        If a name is unknown, or none is given.
    """
    of_outputs = {x.name: _columns(x) for x in outputs}
    every = [column for columns in of_outputs.values() for column in columns]
    twice = [name for name, n in Counter(column.name for column in every).items() if n > 1]
    raise_problems(
        [f"{name}: give other names by feature_names" for name in twice],
        "outputs have columns of one name",
    )
    if wanted is None:
        return tuple(every)
    by_name = {**{c.name: [c] for c in every}, **of_outputs}
    if not wanted:
        raise ScoringError(f"outputs={wanted}: choose of {similar('', by_name)}")
    raise_problems(
        [
            f"there is no output {name}: choose of {similar(name, by_name)}"
            for name in wanted
            if name not in by_name
        ],
        "outputs are not those of the file",
    )
    return tuple(dict.fromkeys(column for name in wanted for column in by_name[name]))


def _columns(tensor: Tensor) -> list[OutputColumn]:
    names = tensor.features or ((tensor.name,) if tensor.is_single else ())
    if not names:
        return [OutputColumn(tensor.name, tensor)]
    if not tensor.of_row:
        return [OutputColumn(names[0], tensor)]
    return [OutputColumn(name, tensor, i) for i, name in enumerate(names)]
