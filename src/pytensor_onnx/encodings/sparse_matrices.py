"""Encode sparse matrices by their compressed rows or columns (``docs/how-to/sparse.md``)."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.tensor.type import TensorType

from pytensor_onnx.encodings.registry import (
    Boundary,
    Encoding,
    encoding_named,
    register_encoding,
    tensor_types,
)
from pytensor_onnx.site_pages import page


@register_encoding
class SparseMatrices(Encoding):
    """Encoding with the three vectors of a CSR or CSC matrix and its shape.

    The vectors are SciPy's: ``data`` and ``indices`` of the entries, and ``indptr`` with the
    position of the first entry of each row (CSR) or column (CSC) and the number of entries.
    Complex ``data`` are pairs of real numbers, as a complex vector is.

    Examples
    --------
    >>> import pytensor.sparse as sparse, scipy.sparse
    >>> encoding, type_ = SparseMatrices(), sparse.csr_matrix().type
    >>> parts = encoding.encode(type_, scipy.sparse.csr_matrix([[0.0, 5.0], [7.0, 0.0]]))
    >>> [part.tolist() for part in parts]
    [[5.0, 7.0], [1, 0], [0, 1, 2], [2, 2]]
    >>> encoding.decode(type_, parts).toarray()
    array([[0., 5.],
           [7., 0.]])
    """

    name = "sparse"
    advice = (
        f"write it with the operations of sparse matrices ({page('how-to/sparse')}), such as a "
        "loop of products, or with the dense matrix: x.toarray()"
    )

    def serves(self, type_: Type) -> bool:
        """Return whether a type is one of sparse matrices of rows or columns."""
        # Such a graph has imported the module already; importing it here would load SciPy's.
        module = sys.modules.get("pytensor.sparse.type")
        if module is None or not isinstance(type_, module.SparseTensorType):
            return False
        return type_.format in ("csr", "csc")

    def owns(self, op: Op) -> bool:
        """Return whether an Op is one of PyTensor's for sparse matrices."""
        return type(op).__module__.startswith("pytensor.sparse.")

    def parts(self, type_: Any) -> Mapping[str, TensorType]:
        """Return the types of the vectors and of the shape, whatever shape the type has."""
        (data,) = tensor_types(_type_of_data(type_))
        return {
            "data": data,
            "indices": TensorType("int32", shape=(None,)),
            "indptr": TensorType("int32", shape=(None,)),
            "shape": TensorType("int64", shape=(2,)),
        }

    def details(self, type_: Any) -> Mapping[str, str]:
        """Return the format of the matrices."""
        return {"format": type_.format}

    def type_of(self, parts: Mapping[str, TensorType], details: Mapping[str, str]) -> Type:
        """Return the type of matrices of a format."""
        from pytensor.sparse.type import SparseTensorType

        data = parts["data"]
        if data.ndim == 2:
            data = encoding_named("complex").type_of({"pairs": data}, {})
        return SparseTensorType(details.get("format", "csr"), data.dtype)

    def encode(self, type_: Any, value: Any) -> Sequence[np.ndarray]:
        """Return the vectors of a matrix, which are copied only where their dtype is another.

        Raises
        ------
        ValueError
            If the vectors have lengths that do not fit, or the index pointers decrease.
        IndexError
            If an index is out of range; a runtime counts negative ones from the end.
        """
        _check_lengths(value)
        count = int(value.indptr[-1])
        indices = value.indices[:count].astype("int32", copy=False)
        size = value.shape[1 if value.format == "csr" else 0]
        if count and (indices.min() < 0 or indices.max() >= size):
            wrong = indices[(indices < 0) | (indices >= size)][0]
            raise IndexError(f"index {wrong} is out of range for an axis of size {size}")
        data = value.data[:count].astype(type_.dtype, copy=False)
        return [
            *Boundary((_type_of_data(type_),)).encode([data]),
            indices,
            value.indptr.astype("int32", copy=False),
            np.array(value.shape, "int64"),
        ]

    def decode(self, type_: Any, arrays: Sequence[np.ndarray]) -> Any:
        """Return the SciPy matrix of the vectors."""
        pairs, indices, indptr, shape = arrays
        (data,) = Boundary((_type_of_data(type_),)).decode([pairs])
        sizes = tuple(map(int, shape))
        return type_.format_cls[type_.format]((data, indices, indptr), shape=sizes, copy=False)

    def sampled(self, type_: Any, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return a square matrix with an entry in each row and column but the first."""
        data = arrays[0]
        count = len(data)
        sizes = [count if size is None else size for size in type_.shape]
        major, minor = sizes if type_.format == "csr" else sizes[::-1]
        indptr = np.minimum(np.arange(major + 1), count) if minor else np.zeros(major + 1)
        kept = int(indptr[-1])
        indices = (2 * np.arange(kept) + 1) % max(minor, 1)
        return [
            data[:kept],
            indices.astype("int32"),
            indptr.astype("int32"),
            np.array(sizes, "int64"),
        ]


def _type_of_data(type_: Any) -> TensorType:
    """Return the type of the values of the entries."""
    return TensorType(type_.dtype, shape=(None,))


def _check_lengths(value: Any) -> None:
    """Raise for vectors that SciPy refuses when it makes a matrix of them."""
    pointers, size = value.indptr, value.shape[0 if value.format == "csr" else 1]
    if len(pointers) != size + 1 or pointers[0] != 0:
        raise ValueError(
            f"index pointer has size {len(pointers)} and starts with {pointers[:1]}; it should "
            f"have size {size + 1} and start with 0"
        )
    if (pointers[1:] < pointers[:-1]).any():
        raise ValueError("index pointer values must form a non-decreasing sequence")
    if len(value.indices) != len(value.data) or pointers[-1] > len(value.data):
        raise ValueError(
            f"indices ({len(value.indices)}) and data ({len(value.data)}) should have the same "
            f"size, and at least {pointers[-1]} elements, the last value of the index pointer"
        )
