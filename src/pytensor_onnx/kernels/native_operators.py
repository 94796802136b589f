"""The operators that the native library has, by its own table."""

from __future__ import annotations

from functools import cache

from pytensor_onnx import native


@cache
def operator_numbers() -> dict[str, int]:
    """Return the number of each operator of a tape, by name."""
    name_of = native.handle().pytensor_onnx_operator
    names: dict[str, int] = {}
    while name := name_of(len(names)):
        names[name.decode()] = len(names)
    return names


@cache
def covers(operator: str, dtype: int) -> bool:
    """Return whether an operator of a tape has a kernel for a type, as ONNX numbers it."""
    return bool(native.handle().pytensor_onnx_covers(operator_numbers()[operator], dtype))
