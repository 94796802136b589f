"""Two encodings for tests: pairs of vectors, a type of their own, and complex numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType

from pytensor_onnx.encodings import Encoding


class Pair(NamedTuple):
    """A value of `PairType`: two vectors, which may have different lengths."""

    first: np.ndarray
    second: np.ndarray


class PairType(Type):
    """The type of pairs of a float64 and an int64 vector."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Pair:
        if not isinstance(data, Pair):
            raise TypeError(f"{data!r} is no pair")
        return Pair(np.asarray(data.first, "float64"), np.asarray(data.second, "int64"))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class Swapped(Op):
    """A pair of `second * scale` and the first vector in whole numbers."""

    __props__ = ()

    def make_node(self, pair: Variable, scale: Variable) -> Apply:
        return Apply(self, [pair, pt.as_tensor(scale)], [PairType()()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        pair, scale = inputs
        outputs[0][0] = Pair(pair.second * scale, np.trunc(pair.first).astype("int64"))


class Parts(Op):
    """The two vectors of a pair."""

    __props__ = ()

    def make_node(self, pair: Variable) -> Apply:
        return Apply(self, [pair], [pt.dvector(), pt.lvector()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        outputs[0][0], outputs[1][0] = inputs[0]


class Unknown(Op):
    """Takes a pair; no lowering says how tensors stand for its result."""

    __props__ = ()

    def make_node(self, pair: Variable) -> Apply:
        return Apply(self, [pair], [PairType()(), pt.dscalar()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        outputs[0][0], outputs[1][0] = inputs[0], np.asarray(inputs[0].first.sum())


class Pairs(Encoding):
    """Two parts, ``first`` and ``second``."""

    name = "pair"

    def __init__(self) -> None:
        super().__init__()
        self.rewrites(Swapped)(_swapped)
        self.rewrites(Parts)(lambda op, node, inputs: [[x] for x in inputs[0]])

    def serves(self, type_: Type) -> bool:
        return isinstance(type_, PairType)

    def parts(self, type_: PairType) -> Mapping[str, TensorType]:
        return {
            "first": TensorType("float64", shape=(None,)),
            "second": TensorType("int64", shape=(None,)),
        }

    def encode(self, type_: PairType, value: Pair) -> Sequence[np.ndarray]:
        return list(value)

    def decode(self, type_: PairType, arrays: Sequence[np.ndarray]) -> Pair:
        return Pair(*arrays)


def _swapped(op: Op, node: Apply, inputs: Sequence[Sequence[Variable]]) -> list[list[Variable]]:
    (first, second), (scale,) = inputs
    return [[second * scale, pt.trunc(first).astype("int64")]]


class Complex(Encoding):
    """Two parts, ``real`` and ``imag``, for graphs that only carry and index complex numbers."""

    name = "complex"

    def __init__(self) -> None:
        super().__init__()
        self.rewrites(Subtensor, DimShuffle)(_indexed)
        self.rewrites(IncSubtensor)(_assigned)
        self.rewrites(AllocEmpty)(_allocated)
        self.rewrites(Shape, Shape_i)(lambda op, node, inputs: [[op(inputs[0][0])]])

    def serves(self, type_: Type) -> bool:
        return isinstance(type_, TensorType) and type_.dtype == "complex128"

    def parts(self, type_: TensorType) -> Mapping[str, TensorType]:
        return {part: TensorType("float64", shape=type_.shape) for part in ("real", "imag")}

    def encode(self, type_: TensorType, value: np.ndarray) -> Sequence[np.ndarray]:
        return [value.real.copy(), value.imag.copy()]

    def decode(self, type_: TensorType, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(arrays[0] + 1j * arrays[1])


def _indexed(op: Op, node: Apply, inputs: Sequence[Sequence[Variable]]) -> list[list[Variable]]:
    indices = [x for (x,) in inputs[1:]]
    return [[op(part, *indices) for part in inputs[0]]]


def _assigned(op: Op, node: Apply, inputs: Sequence[Sequence[Variable]]) -> list[list[Variable]]:
    buffers, values, *indices = inputs
    flat = [x for (x,) in indices]
    return [[op(x, y, *flat) for x, y in zip(buffers, values, strict=True)]]


def _allocated(op: Op, node: Apply, inputs: Sequence[Sequence[Variable]]) -> list[list[Variable]]:
    sizes = [x for (x,) in inputs]
    return [[AllocEmpty("float64")(*sizes) for _ in range(2)]]


def pair(name: str | None = None) -> Variable:
    """Return a variable that holds a pair."""
    return PairType()(name)


def shared_pair(value: Pair, name: str) -> SharedVariable:
    """Return a shared variable that holds a pair."""
    return SharedVariable(PairType(), value, strict=False, name=name)


swapped, parts, unknown = Swapped(), Parts(), Unknown()
