"""Reading and writing of elements at positions, and the search for positions."""

from pytensor_onnx.operators.dims import Dims, constant_ints, dims_of, sizes_in, slice_dim
from pytensor_onnx.operators.facts import (
    ALL,
    Attributes,
    Operands,
    Operator,
    Pairs,
    Shapes,
    moving,
    same_as_first,
    same_shapes,
)


def _gathering(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Gather."""
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or indices is None:
        return None
    axis = attributes["axis"] % len(data)
    return data[:axis] + indices + data[axis + 1 :]


def _gathering_nd(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of GatherND."""
    data, indices = dims_of(inputs[0]), dims_of(inputs[1])
    if data is None or not indices or not isinstance(indices[-1], int):
        return None
    return indices[:-1] + data[attributes["batch_dims"] + indices[-1] :]


def _gathering_elements(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of GatherElements."""
    return dims_of(inputs[1])


def _slicing(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Slice."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    starts, stops = constant_ints(inputs[1]), constant_ints(inputs[2])
    n_axes = len(dims) if starts is None else len(starts)
    axes = constant_ints(inputs[3]) if len(inputs) > 3 else list(range(n_axes))
    if axes is None:
        return (None,) * len(dims)
    steps = constant_ints(inputs[4]) if len(inputs) > 4 else [1] * len(axes)
    result = list(dims)
    for i, axis in enumerate(axes):
        bounds = (starts[i], stops[i], steps[i]) if starts and stops and steps else None
        result[axis] = None if bounds is None else slice_dim(dims[axis], *bounds)
    return tuple(result)


def _top_k(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of TopK."""
    dims, k = dims_of(inputs[0]), sizes_in(inputs[1])
    if dims is None:
        return None
    axis = attributes["axis"] % len(dims)
    return (*dims[:axis], k[0] if k else None, *dims[axis + 1 :])


def _equal_batches(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the batches of the array and the indices of GatherND."""
    data, indices = inputs
    count = attributes["batch_dims"]
    yield from zip((data or ())[:count], (indices or ())[:count], strict=False)


def _equal_updates(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the sizes of the updates of ScatterND."""
    data, indices, updates = inputs
    if data and indices and updates and isinstance(indices[-1], int):
        yield from zip(indices[:-1] + data[indices[-1] :], updates, strict=False)


OPERATORS: dict[str, Operator] = {
    "Compress": moving(),
    "Gather": moving(_gathering),
    "GatherElements": moving(_gathering_elements),
    "GatherND": moving(_gathering_nd, equal=_equal_batches),
    "NonZero": Operator(positions=ALL),
    "ReverseSequence": moving(same_as_first),
    "ScatterElements": Operator(shape=same_as_first, equal=same_shapes(1, 2)),
    "ScatterND": Operator(shape=same_as_first, equal=_equal_updates),
    "Slice": moving(_slicing),
    "TopK": Operator(shape=_top_k, positions=slice(1, None)),
    "Unique": Operator(positions=slice(1, None)),
}
