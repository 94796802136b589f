"""Define Ops on the vectors of compressed sparse matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import upcast
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


class EntryRows(Op):
    """Row of each entry of a CSR matrix, or column of each entry of a CSC matrix.

    Examples
    --------
    >>> EntryRows()([0, 2, 2, 3], [1, 0, 1]).eval(mode="FAST_COMPILE")
    array([0, 0, 2], dtype=int32)
    """

    __props__ = ()

    def make_node(self, indptr: TensorVariable, indices: TensorVariable) -> Apply:
        """Return the node for the positions of the first entries, and the indices of all."""
        indptr, indices = as_tensor_variable(indptr), as_tensor_variable(indices)
        return Apply(self, [indptr, indices], [tensor(dtype="int32", shape=indices.type.shape)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Repeat the number of each row."""
        indptr, indices = inputs
        if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError("index pointers that do not cover all entries")
        rows = np.arange(len(indptr) - 1, dtype="int32")
        outputs[0][0] = np.repeat(rows, np.diff(indptr))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the number of entries."""
        return [shapes[1]]


class SegmentSum(Op):
    """Sums of the values (or rows of values) that have the same place in the result.

    Examples
    --------
    >>> SegmentSum()([1.0, 2.0, 3.0], [2, 0, 2], 4).eval(mode="FAST_COMPILE")
    array([2., 0., 4., 0.])
    """

    __props__ = ()

    def make_node(
        self, values: TensorVariable, places: TensorVariable, size: TensorVariable
    ) -> Apply:
        """Return the node for values, their places, and the size of the result."""
        values, places, size = map(as_tensor_variable, (values, places, size))
        shape = (None, *values.type.shape[1:])
        result = tensor(dtype=values.type.dtype, shape=shape)
        return Apply(self, [values, places, size], [result])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Add the values one after the other."""
        values, places, size = inputs
        result = np.zeros((int(size), *values.shape[1:]), values.dtype)
        np.add.at(result, places, values)
        outputs[0][0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the size and the other axes of the values."""
        return [(node.inputs[2], *shapes[0][1:])]


class Take(Op):
    """Elements of a vector at positions, many of them: the operator is faster than indexing.

    Examples
    --------
    >>> Take()([1.0, 2.0, 3.0], [2, 0, 2]).eval(mode="FAST_COMPILE")
    array([3., 1., 3.])
    """

    __props__ = ()

    def make_node(self, x: TensorVariable, positions: TensorVariable) -> Apply:
        """Return the node for a vector and a vector of positions."""
        x, positions = as_tensor_variable(x), as_tensor_variable(positions)
        result = tensor(dtype=x.type.dtype, shape=positions.type.shape)
        return Apply(self, [x, positions], [result])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Index by the positions."""
        x, positions = inputs
        outputs[0][0] = x[positions]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the number of positions."""
        return [shapes[1]]


class ScaledRowSums(Op):
    """Sums of rows of a matrix that are multiplied by numbers and have one place in the result.

    This is the product of a sparse matrix, whose entries are the numbers, with the dense matrix.

    Examples
    --------
    >>> x = [[1.0, 2.0], [3.0, 4.0]]
    >>> ScaledRowSums()([10.0, 1.0, 1.0], [0, 0, 2], x, [1, 0, 0], 3).eval(mode="FAST_COMPILE")
    array([[31., 42.],
           [ 0.,  0.],
           [ 1.,  2.]])
    """

    __props__ = ()

    def make_node(
        self,
        factors: TensorVariable,
        places: TensorVariable,
        x: TensorVariable,
        rows: TensorVariable,
        size: TensorVariable,
    ) -> Apply:
        """Return the node for factors, places, a matrix, its rows, and the size of the result."""
        operands = [as_tensor_variable(v) for v in (factors, places, x, rows, size)]
        x = operands[2]
        dtype = upcast(operands[0].type.dtype, x.type.dtype)
        result = tensor(dtype=dtype, shape=(None, x.type.shape[1]))
        return Apply(self, operands, [result])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Add the multiplied rows one after the other."""
        factors, places, x, rows, size = inputs
        result = np.zeros((int(size), x.shape[1]), node.outputs[0].type.dtype)
        np.add.at(result, places, factors[:, None] * x[rows])
        outputs[0][0] = result

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the size and the number of columns."""
        return [(node.inputs[4], shapes[2][1])]


class RowProducts(Op):
    """Inner products of rows of one matrix with rows of another, in float64, int64 or complex128.

    Examples
    --------
    >>> x = [[1.0, 2.0], [3.0, 4.0]]
    >>> RowProducts()(x, [0, 1, 1], x, [0, 0, 1]).eval(mode="FAST_COMPILE")
    array([ 5., 11., 25.])
    """

    __props__ = ()

    def make_node(
        self, x: TensorVariable, rows: TensorVariable, y: TensorVariable, others: TensorVariable
    ) -> Apply:
        """Return the node for two matrices of one dtype, and a list of rows of each."""
        operands = [as_tensor_variable(v) for v in (x, rows, y, others)]
        dtype = upcast(operands[0].type.dtype, operands[2].type.dtype)
        kinds = {"float": "float64", "complex": "complex128"}
        dtype = next((wide for kind, wide in kinds.items() if dtype.startswith(kind)), "int64")
        return Apply(self, operands, [tensor(dtype=dtype, shape=operands[1].type.shape)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Add the products of the elements."""
        x, rows, y, others = inputs
        outputs[0][0] = (x[rows] * y[others]).sum(axis=1, dtype=node.outputs[0].type.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the number of pairs of rows."""
        return [shapes[1]]
