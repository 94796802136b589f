"""Encodings: the tensors of values that are not tensors.

Each encoding has one module; `registry` defines their interface. All other modules use the registry
and know no single encoding.
"""

from pytensor_onnx.encodings import (
    complex_numbers as complex_numbers,  # registers its encoding
    generators as generators,  # registers its encoding
    sparse_matrices as sparse_matrices,  # registers its encoding
)
from pytensor_onnx.encodings.registry import (
    Boundary,
    Encoding,
    constant_of,
    encoding_for,
    encoding_of,
    has_tensors,
    is_encoded,
    owner_of,
    register_encoding,
    tensor_types,
)

__all__ = [
    "Boundary",
    "Encoding",
    "constant_of",
    "encoding_for",
    "encoding_of",
    "has_tensors",
    "is_encoded",
    "owner_of",
    "register_encoding",
    "tensor_types",
]
