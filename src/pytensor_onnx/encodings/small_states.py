"""States of generators as numbers of 16 bits, for runtimes without integers of 64 bits."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.random import small_words

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
