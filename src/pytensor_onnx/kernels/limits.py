"""Limits of regions, each with its measurement."""

from __future__ import annotations

from math import prod

import onnx
from onnx import TensorProto

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import Scope, attributes_of
from pytensor_onnx.kernels.instructions import DTYPES, LOWERINGS, NotCoveredError

UNKNOWN = 64
"""Size that is assumed for an axis of unknown size."""
UNKNOWN_IN_PRODUCT = 1000
"""Size that is assumed for an axis of unknown size of a factor: such axes count examples or pixels.

A training step of a residual network takes 1.2 of the runtime's time with 64 in its place.
"""
PRODUCT = 150_000
"""Multiplications of the largest product of two matrices in a region.

Time of a region beside the runtime's kernel, float64: 1.06 at 8,000 multiplications, 1.2 at 27,000,
1.3 at 150,000 (4 µs more, about the cost of cutting a region in two), 1.4 at a million. A product
of a matrix and a vector takes 0.04 to 0.9 from 1,000 to 200,000 multiplications, so that it has the
limit of arrays.
"""
AXES = 8
"""Axes of an array in a region, as in the library."""
ELEMENTS = 1_000_000
"""Elements of the largest result of a model, and of the largest array of float32, in a region.

Networks in float32 have large images, for which the runtime's kernels are made. A new array of more
is memory that the system has to clear: a sum of five million numbers and one takes 3 to 9 times as
long as in a session.
"""
INNER_ELEMENTS = 10_000_000
"""Elements of the largest of the other arrays in a region.

Chains of operations and products by vectors run in the threads of the session, other steps in one.
A logistic regression of 500,000 rows (python -m benchmarks.threads) takes 0.3 of the time of the
runtime's kernels.
"""
_OF_NETWORKS = (TensorProto.FLOAT, TensorProto.FLOAT16)
FLOAT32_FUNCTIONS = {"Exp", "Tanh", "Sin", "Cos", "Atan", "Softmax", "Sigmoid_float32"}
"""Operators and functions that the runtime computes in float32, and regions in float64."""
FLOAT32_ELEMENTS = 4_000
"""Elements of the largest array of those in a region outside of loops.

An exponential takes 1.8 ns more for each element, and leaving a region costs about 4 µs; in the
body of a loop it would cost that in each step.
"""


FLOAT32_BROADCAST = 20_000
"""Elements of the largest float32 result of an operator that broadcasts an array, outside of loops.

Regions copy such an operand block by block, the runtime's kernels read it in place. A training step
of a mobile network (benchmarks/user_models.py) takes 1.04 of the runtime's time without this limit
and 1.02 with it, one of a residual network 0.97 either way.
"""
BROADCASTING = {"Add", "Sub", "Mul", "Div", "Where", "Less", "Greater", "Max", "Min"}
"""Operators with this limit."""

FASTER_OUTSIDE = {"Elu", "LeakyRelu", "Gelu", "LayerNormalization", "TopK"}
"""Operators that stay with the runtime outside of loops."""


def is_slow_in_float32(node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a node computes many float32 numbers, and is slower in a region."""
    return (
        _is_slow_function(node, scope)
        or _broadcasts_many(node, scope)
        or _is_gate_of_many(node, scope)
    )


def _is_gate_of_many(node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a node is ``x * Sigmoid(x)``, which the runtime computes by one operator."""
    if node.op_type != "Mul" or scope.dtype(node.input[0]) != TensorProto.FLOAT:
        return False
    for gate, x in (node.input, reversed(node.input)):
        found = scope.producer(gate)
        if found and found[0].op_type in ("Sigmoid", "Sigmoid_float32"):
            shape = scope.shape(x)
            is_large = shape is None or prod(_assumed(shape)) > FLOAT32_ELEMENTS
            return is_large and found[0].input[0] == x
    return False


def _broadcasts_many(node: onnx.NodeProto, scope: Scope) -> bool:
    result = scope.shape(node.output[0])
    if node.op_type not in BROADCASTING or scope.dtype(node.input[-1]) != TensorProto.FLOAT:
        return False
    if result is None or prod(_assumed(result)) <= FLOAT32_BROADCAST:
        return False
    given = [scope.shape(name) for name in node.input]
    sizes = [prod(_assumed(shape)) for shape in given if shape is not None]
    return any(1 < size < prod(_assumed(result)) for size in sizes)


def _is_slow_function(node: onnx.NodeProto, scope: Scope) -> bool:
    if node.op_type not in FLOAT32_FUNCTIONS or scope.dtype(node.input[0]) != TensorProto.FLOAT:
        return False
    shape = scope.shape(node.input[0])
    return shape is None or prod(_assumed(shape)) > FLOAT32_ELEMENTS


def has_many_axes(node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether an array of a node has more axes than the library takes."""
    return any(len(shape) > AXES for shape in _known_shapes(node, scope))


def is_large(node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a kernel of ONNX Runtime is faster for a node than a region."""
    for name in filter(None, (*node.input, *node.output)):
        shape = scope.shape(name)
        is_inner = scope.dtype(name) not in _OF_NETWORKS and name not in scope.results
        if prod(_assumed(shape or [])) > (INNER_ELEMENTS if is_inner else ELEMENTS):
            return True
    return node.op_type in ("MatMul", "Gemm") and _multiplications(node, scope) > PRODUCT


def _known_shapes(node: onnx.NodeProto, scope: Scope) -> list[list[int | None]]:
    shapes = [scope.shape(name) for name in (*node.input, *node.output) if name]
    return [shape for shape in shapes if shape is not None]


def _assumed(shape: list[int | None], unknown: int = UNKNOWN) -> list[int]:
    return [unknown if size is None else size for size in shape]


def _multiplications(node: onnx.NodeProto, scope: Scope) -> int:
    """Return the multiplications of a product of matrices, 0 for that of a vector."""
    given = [scope.shape(name) for name in node.input[:2]]
    known = [_assumed(shape, UNKNOWN_IN_PRODUCT) for shape in given if shape is not None]
    if len(known) < 2:
        return PRODUCT + 1
    left, right = known
    turns_left, turns_right = (_is_set(node, name) for name in ("transA", "transB"))
    rows = 1 if len(left) < 2 else left[-1 if turns_left else -2]
    columns = 1 if len(right) < 2 else right[-2 if turns_right else -1]
    if 1 in (rows, columns):
        return 0
    inner = left[-2 if turns_left else -1]
    batches = max(prod(left[:-2]), prod(right[:-2]))
    return batches * rows * columns * inner


def _is_set(node: onnx.NodeProto, name: str) -> bool:
    return any(x.name == name and x.i for x in node.attribute)


_ATTRIBUTES: dict[str, list[dict]] = {
    "BitShift": [{"direction": "LEFT"}],
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
    for attributes in _ATTRIBUTES.get(operator, [{}]):
        node = onnx.helper.make_node(operator, ["a", "b", "c"], ["out"], **attributes)
        try:
            LOWERINGS[operator](node, _OneType(dtype), attributes_of(node))
        except NotCoveredError:
            continue
        return True
    return False
