"""Read the shapes and sizes of values, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import Dims, dims_of
from pytensor_onnx.graph.emitter import Emitter
from pytensor_onnx.graph.sizes import SIZE


class ShapeReader(Emitter):
    """Reads dimensions of values, and their sizes as values."""

    def dims(self, value: ir.Value) -> Dims:
        """Return the dimensions of a value of known rank."""
        dims = dims_of(value)
        if dims is None:
            raise TypeError(f"the rank of {value} is not known")
        return dims

    def shape(self, value: ir.Value) -> ir.Value:
        """Return the shape as a 1-d int64 value, a constant if it is static.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> build.shape(x) is build.shape(build.Exp(x)), build.sizes(x, 1, 2).const_value.numpy()
        (True, array([3]))
        """
        dims = dims_of(value)
        return self.Shape(value) if dims is None else self.sizes(value, 0, len(dims))

    def sizes(self, value: ir.Value, start: int, end: int) -> ir.Value:
        """Return the sizes of consecutive axes as a 1-d int64 value, which is read only once."""
        self.scope.name_dims(value)
        dims = self.dims(value)[start:end]
        if all(isinstance(d, int) for d in dims):
            return self.ints([d for d in dims if isinstance(d, int)])
        whole = start == 0 and end == len(self.dims(value))
        limits = {} if whole else {"start": start, "end": end}
        return self._read_once(dims, lambda: self.Shape(value, **limits))

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """Return the size of one axis as a 0-d int64 value, a constant if it is static."""
        self.scope.name_dims(value)
        dim = self.dims(value)[axis]
        if isinstance(dim, int):
            return self.constant(np.int64(dim))
        sizes = self.sizes(value, axis, axis + 1)
        return self._read_once(dim, lambda: self.Squeeze(sizes, self.ints([0])))

    def name_size(self, number: ir.Value, wanted: str) -> None:
        """Declare a nonnegative number as the size of a new dimension.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> n = ir.val("n", dtype=ir.DataType.INT64, shape=())
        >>> build.name_size(n, "steps")
        >>> dims_of(build.Range(0, n, 1))
        ('steps',)
        """
        dim = self.scope.computed_dim(wanted)
        number.meta[SIZE] = dim
        self._sizes_read[dim] = number
        self._sizes_read[(dim,)] = self.Unsqueeze(number, self.ints([0]))

    def _read_once(self, key: Hashable, read: Callable[[], ir.Value]) -> ir.Value:
        reader: Emitter | None = self
        while reader is not None:
            if key in reader._sizes_read:
                return reader._sizes_read[key]
            reader = reader._parent
        self._sizes_read[key] = read()
        return self._sizes_read[key]
