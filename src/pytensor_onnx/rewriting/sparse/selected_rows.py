"""Select rows of a matrix of compressed rows, in any order and more than once."""

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.sparse import EntryRows, Take
from pytensor_onnx.rewriting.sparse.sparse_parts import Compressed


@dataclass(frozen=True)
class TakenRows:
    """Entries of selected rows, one row after the other.

    Attributes
    ----------
    entries
        Positions of the entries in the matrix.
    row_of
        Position of the selected row of each entry.
    indptr
        Position of the first entry of each selected row, and the number of entries.
    """

    entries: TensorVariable
    row_of: TensorVariable
    indptr: TensorVariable


def take_rows(x: Compressed, rows: TensorVariable) -> TakenRows:
    """Return the entries of rows; the row after the last one, or row -1, has none."""
    counts = pt.concatenate([x.indptr[1:] - x.indptr[:-1], np.zeros(1, x.indptr.type.dtype)])
    starts = Take()(x.indptr, rows)
    taken = pt.cast(Take()(counts, rows), "int64")
    indptr = pt.concatenate([np.zeros(1, "int64"), taken.cumsum()])
    # Not up to the last pointer, which other modes take for the zero before the first.
    places = pt.arange(taken.sum())
    row_of = EntryRows()(indptr, places)
    entries = places + Take()(starts - indptr[:-1], row_of)
    return TakenRows(entries, row_of, indptr)
