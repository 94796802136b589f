"""Generators as states."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.type import Type
from pytensor.scan.op import Scan
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.type import RandomType, random_generator_type
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Encoding, register_encoding
from pytensor_onnx.random import generator_of, small_words, state_of


@register_encoding
class Generators(Encoding):
    """Encoding with one part, ``state``: a key and a counter, three words of 64 bits."""

    name = "generator"
    # NumPy draws other numbers from the generator of a state.
    returned_as_tensors = True
    warning_if_stored = (
        "every run of the model draws the same, as the generator has no update. Give its next "
        "state in updates={rng: next_rng}"
    )

    def serves(self, type_: Type) -> bool:
        """Return whether a type is a generator of PyTensor, for named tensors or not."""
        return isinstance(type_, RandomType)

    def parts(self, type_: RandomType) -> Mapping[str, TensorType]:
        """Return the type of the state."""
        return {"state": TensorType("uint64", shape=(3,))}

    def type_of(self, parts: Mapping[str, TensorType], details: Mapping[str, str]) -> Type:
        """Return the type of generators."""
        return random_generator_type

    def encode(self, type_: RandomType, value: Any) -> Sequence[np.ndarray]:
        """Return the state of a generator or a seed."""
        return [state_of(value)]

    def decode(self, type_: RandomType, arrays: Sequence[np.ndarray]) -> np.random.Generator:
        """Return a generator with the state, which may be of numbers of 16 bits."""
        return generator_of(arrays[0])

    def succeed(
        self, type_: RandomType, arrays: Sequence[np.ndarray], former: np.random.Generator
    ) -> np.random.Generator:
        """Return a generator with the state, whose bit generator keeps the class of the former."""
        return generator_of(arrays[0], type(former.bit_generator).__name__)

    def following(self, fgraph: FunctionGraph, variable: Variable) -> Variable | None:
        """Return the generator after all draws, or None if two Ops draw from the same state."""
        generator = variable
        while True:
            nodes = {node for node, _ in fgraph.clients.get(generator, []) if node.outputs}
            if not nodes:
                return generator
            after = _after(nodes.pop(), generator) if len(nodes) == 1 else None
            if after is None:
                return None
            generator = after


def _after(node: Apply, generator: Variable) -> Variable | None:
    """Return the state of a generator after an operation, or None if the operation is unknown."""
    op = node.op
    if isinstance(op, RNGConsumerOp):
        following: Variable | None = op.update(node).get(generator)
        return following
    if isinstance(op, Scan):
        carried = zip(
            op.outer_untraced_sit_sot(node.inputs),
            op.outer_untraced_sit_sot_outs(node.outputs),
            strict=True,
        )
        return dict(carried).get(generator)
    return None


_BITS = 16
_COUNT = 4
_MASK = 2**_BITS - 1


def in_small_words(
    fgraph: FunctionGraph, read: Sequence[int], written: Sequence[int]
) -> FunctionGraph:
    """Return a graph in which some states are numbers of 16 bits.

    Parameters
    ----------
    fgraph
        Graph, which stays as it is.
    read, written
        Positions of states among the inputs and the outputs.
    """
    inputs, outputs = list(fgraph.inputs), list(fgraph.outputs)
    words = {}
    for place in read:
        rows = pt.tensor(
            inputs[place].name, shape=(*inputs[place].type.shape, _COUNT), dtype="int32"
        )
        words[inputs[place]] = joined(rows)
        inputs[place] = rows
    for place in written:
        outputs[place] = split(outputs[place])
    return FunctionGraph(inputs, clone_replace(outputs, replace=words), clone=False)


def in_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return a part of an encoded value in the dtype of a program.

    The state of a generator may be numbers of 16 bits, and the parts of complex numbers narrower.

    Examples
    --------
    >>> in_dtype(np.array([2**16 + 5], "uint64"), "int32")
    array([[5, 1, 0, 0]], dtype=int32)
    """
    is_state = array.dtype == np.uint64 and dtype == "int32"
    return small_words(array) if is_state else np.asarray(array, dtype)


def joined(rows: TensorVariable) -> TensorVariable:
    """Return the words of 64 bits of rows of numbers, as an expression."""
    words = [(rows[:, i] & np.int32(_MASK)).astype("uint64") for i in range(_COUNT)]
    result = words[0]
    for i, word in enumerate(words[1:], start=1):
        result = result ^ word * pt.constant(np.uint64(2 ** (_BITS * i)))
    return result


def split(words: TensorVariable) -> TensorVariable:
    """Return words of 64 bits as rows of numbers, as an expression."""
    shifted = [words // pt.constant(np.uint64(2 ** (_BITS * i))) for i in range(_COUNT)]
    columns = [(x & pt.constant(np.uint64(_MASK))).astype("int32") for x in shifted]
    return pt.stack(columns, axis=1)
