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
    fgraph: FunctionGraph, values: Sequence[np.ndarray], places: Sequence[tuple[int, int, int]]
) -> tuple[FunctionGraph, list[np.ndarray]]:
    """Return a graph and first values in which some states are numbers of 16 bits.

    Parameters
    ----------
    fgraph
        Graph, which stays as it is.
    values
        First values of all states.
    places
        For each of some states its place among the values, the inputs and the outputs.
    """
    inputs, outputs, changed = list(fgraph.inputs), list(fgraph.outputs), list(values)
    words = {}
    for value, read, written in places:
        changed[value] = small_words(values[value])
        rows = pt.tensor(inputs[read].name, shape=changed[value].shape, dtype="int32")
        words[inputs[read]] = joined(rows)
        inputs[read] = rows
        outputs[written] = split(outputs[written])
    results = clone_replace(outputs, replace=words)
    return FunctionGraph(inputs, results, clone=False), changed


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
