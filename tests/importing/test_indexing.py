"""Reading of elements: ranges, and the order of different elements."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import by_runtime, evaluated, model_of

RANGES = [
    (-3, -9, -1),
    (-100, -120, -2),
    (100, -100, -1),
    (-2, -(2**62), -1),
    (-1, -(2**62), -2),
    (-(2**62), -(2**63) + 1, -1),
    (-3, 2**62, 1),
    (1, -1, 2),
]


@pytest.mark.parametrize("length", [None, 0, 1, 2, 4])
def test_ranges_start_and_end_as_in_onnx(length):
    """A start before the first element is the first one, also on the way to the front."""
    sizes = range(4) if length is None else [length]
    for is_computed in (False, True):
        bounds = [f"b{i}" for i in range(3)]
        node = helper.make_node("Slice", ["x", bounds[0], bounds[1], "axes", bounds[2]], ["y"])
        for start, end, step in RANGES:
            values = {k: np.int64([v]) for k, v in zip(bounds, (start, end, step), strict=True)}
            given = values if is_computed else {}
            fixed = {"axes": np.int64([0]), **({} if is_computed else values)}
            model = model_of(
                [node],
                inputs={"x": (length,), **dict.fromkeys(given, (1,))},
                outputs={"y": (None,)},
                constants=fixed,
                dtypes=dict.fromkeys(bounds, TensorProto.INT64),
            )
            graph = from_onnx(model)
            for size in sizes:
                arrays = [np.arange(size, dtype="float32"), *given.values()]
                expected = by_runtime(model, *arrays)[0]
                np.testing.assert_array_equal(evaluated(graph, *arrays)[0], expected)


@pytest.mark.parametrize("is_computed", [False, True])
def test_ranges_are_exported_with_their_bounds(is_computed):
    """NumPy's range from -3 backwards has no element of two, that of ONNX has one."""
    node = helper.make_node("Slice", ["x", "start", "end", "axes", "step"], ["y"])
    start = {"start": np.int64([-3])}
    model = model_of(
        [node],
        inputs={"x": ("n",), **({"start": (1,)} if is_computed else {})},
        outputs={"y": (None,)},
        constants={
            "end": np.int64([-9]),
            "axes": np.int64([0]),
            "step": np.int64([-1]),
            **({} if is_computed else start),
        },
        dtypes={"start": TensorProto.INT64},
    )
    graph = from_onnx(model)
    arrays = [np.float32([5, 6]), *(start.values() if is_computed else [])]
    assert export_onnx(graph.inputs, graph.outputs)(*arrays)[0].tolist() == [5]


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_unsorted_elements_keep_the_order_of_appearance(dtype, axis):
    attributes = {} if axis is None else {"axis": axis}
    names = ["y", "first", "inverse", "counts"]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of(
        [helper.make_node("Unique", ["x"], names, sorted=0, **attributes)],
        inputs={"x": ("a", "b")},
        outputs={"y": (None,) * (1 if axis is None else 2)} | dict.fromkeys(names[1:], (None,)),
        dtypes={"x": number, "y": number} | dict.fromkeys(names[1:], TensorProto.INT64),
    )
    x = np.array([[3, 1, 3], [1, 2, 1]], dtype)
    graph = from_onnx(model)
    exported = export_onnx(graph.inputs, graph.outputs)(x)
    for found in (evaluated(graph, x), exported):
        for a, b in zip(found, by_runtime(model, x), strict=True):
            np.testing.assert_array_equal(a, b)
