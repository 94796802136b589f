"""List the operators that the native library runs in regions."""

from __future__ import annotations

import onnx

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import Scope
from pytensor_onnx.kernels.instructions import DTYPES, LOWERINGS, NotCoveredError

_ATTRIBUTES: dict[str, list[dict]] = {
    "BitShift": [{"direction": b"LEFT"}],
    "Cast": [{"to": onnx.TensorProto.DOUBLE}],
    "Concat": [{"axis": 0}],
    "Mod": [{}, {"fmod": 1}],
    "Transpose": [{"perm": [0]}],
}
"""Attributes of operators that have none by default, or whose dtypes they decide."""
_WITH_BODIES = ("If", "Loop", "Scan")


class _OneType(Scope):
    """A scope in which all values have one dtype."""

    def __init__(self, dtype: int) -> None:
        super().__init__(onnx.GraphProto())
        self._dtype = dtype

    def dtype(self, name: str) -> int:
        return self._dtype


def covered_operators() -> dict[str, list[str]]:
    """Return the dtypes of each operator of ONNX in regions, empty without a library.

    A dtype is that of the operands of most operators. Loops and branches have the dtypes of their
    bodies.

    Examples
    --------
    >>> from pytensor_onnx import native
    >>> not native.library() or covered_operators()["Exp"]
    ['float64', 'float32']
    """
    if native.library() is None:
        return {}
    return {name: _dtypes(name) for name in sorted(LOWERINGS)}


def _dtypes(operator: str) -> list[str]:
    if operator in _WITH_BODIES:
        return []
    found = [dtype for dtype in DTYPES if _is_covered(operator, dtype)]
    return [str(onnx.helper.tensor_dtype_to_np_dtype(dtype)) for dtype in found]


def _is_covered(operator: str, dtype: int) -> bool:
    node = onnx.helper.make_node(operator, ["a", "b", "c"], ["out"])
    for attributes in _ATTRIBUTES.get(operator, [{}]):
        try:
            LOWERINGS[operator](node, _OneType(dtype), attributes)
        except NotCoveredError:
            continue
        return True
    return False
