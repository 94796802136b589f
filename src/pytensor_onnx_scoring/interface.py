"""The columns that a file takes and returns, as its session and its metadata tell."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx_scoring.problems import ScoringError, raise_problems, similar

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
        Names of the columns along its other axis.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Dim, ...]
    axis: int | None
    features: tuple[str, ...] = ()

    @property
    def of_row(self) -> tuple[Dim, ...]:
        """The axes without that of the rows."""
        return tuple(dim for i, dim in enumerate(self.shape) if i != self.axis)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if dim is None else str(dim) for dim in self.shape)}]"

    def columns(self) -> dict[str, np.dtype]:
        """Return the dtypes of its columns, of which one of an array may be in a cell."""
        if self.features:
            return dict.fromkeys(self.features, self.dtype)
        if any(not isinstance(dim, int) for dim in self.of_row):
            return {self.name: np.dtype(object)}
        return {self.name: np.dtype((self.dtype, self.of_row)) if self.of_row else self.dtype}


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


def interface_of(session: InferenceSession, constants: Collection[str]) -> Interface:
    """Read the interface of a file.

    Parameters
    ----------
    session
        The session of the file.
    constants
        Names of inputs that have no axis of rows, although their first axis may have any size.

    Raises
    ------
    ScoringError
        If an input has a type that no column has; outputs of such types are left out.
    """
    metadata = session.get_modelmeta().custom_metadata_map
    features = _features(metadata.get(FEATURE_NAMES, "{}"))
    given = session.get_inputs()
    first = {x.name: x.shape[0] for x in given if x.name not in constants and x.shape}
    rows = {dim for dim in first.values() if not isinstance(dim, int)}
    if (named := metadata.get(BATCH_AXIS, "")) in rows:
        rows = {named}
    inputs = [_tensor(x, 0 if first.get(x.name, 0) in rows else None, features) for x in given]
    # Maps and sequences, such as the probabilities of scikit-learn's classifiers, are no columns.
    tensors = [x for x in session.get_outputs() if _kind(x) in _DTYPES]
    outputs = [_tensor(x, _row_axis(x.shape, rows), features) for x in tensors]
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


def _kind(value: Any) -> str:
    return str(value.type).removeprefix("tensor(").removesuffix(")")


def _tensor(value: Any, axis: int | None, features: Mapping[str, Sequence[str]]) -> Tensor:
    kind = _kind(value)
    if kind not in _DTYPES:
        raise ScoringError(f"{value.name} is of type {value.type}, which no column of a table has")
    names = tuple(features.get(value.name, ()))
    return Tensor(value.name, np.dtype(_DTYPES[kind]), tuple(value.shape), axis, names)


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
    if not tensor.features:
        return [OutputColumn(tensor.name, tensor)]
    return [OutputColumn(name, tensor, i) for i, name in enumerate(tensor.features)]
