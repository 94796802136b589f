import numpy as np
import pytest

from pytensor_onnx.passes.fold_constants import fold_constants
from tests.passes.conftest import bare


def folded(emit, *operands, shapes=()):
    """Return the operators after folding; the results do not change."""
    model = bare(emit, *operands, shapes=shapes)
    before = model.run()
    model.apply(fold_constants)
    for a, b in zip(model.run(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return model.operators()


def from_low_bits(count, mask=1):
    def emit(build, x, k):
        start = build.BitwiseAnd(k, np.int64(mask))
        bounds = [build.Unsqueeze(b, [0]) for b in (start, build.Add(start, np.int64(count)))]
        return build.Slice(x, *bounds, build.ints([0]), build.ints([1]))

    return emit


@pytest.mark.parametrize("k", [6, 7])
def test_a_known_number_of_elements_is_gathered(k):
    operators = folded(from_low_bits(3), np.arange(4.0), np.int64(k), shapes=[[4]])
    assert operators == ["BitwiseAnd", "Unsqueeze", "Add", "Gather"]


@pytest.mark.parametrize(
    ("count", "mask", "size"), [(4, 1, 4), (2, 3, 4), (0, 1, 4), (2, -1, 4), (2, 1, "n")]
)
def test_slices_that_may_be_clipped_stay(count, mask, size):
    x = np.arange(4.0)
    assert "Slice" in folded(from_low_bits(count, mask), x, np.int64(7), shapes=[[size]])


def test_starts_that_a_narrow_dtype_makes_negative_stay():
    def emit(build, x, k):
        narrow = build.cast(build.BitwiseAnd(k, np.int64(255)), np.dtype("int8"))
        start = build.cast(narrow, np.dtype("int64"))
        bounds = [build.Unsqueeze(b, [0]) for b in (start, build.Add(start, np.int64(3)))]
        return build.Slice(x, *bounds, build.ints([0]), build.ints([1]))

    assert "Slice" in folded(emit, np.arange(400.0), np.int64(255), shapes=[[400]])


def test_dropped_elements_are_drawn_anew():
    def dropped(build, x):
        ones = build.constant(np.ones(3, "float32"))
        return build.Add(x, build.Dropout(ones, np.float32(0), np.array(True)))

    assert folded(dropped, np.zeros(3, "float32")) == ["Dropout", "Add"]


def test_sizes_are_cast_before_their_axis_is_dropped():
    def halves(build, x):
        size = build.cast(build.Squeeze(build.Shape(x), [0]), np.dtype("float64"))
        return build.Mul(build.Unsqueeze(size, [0]), x)

    assert folded(halves, np.arange(4.0)) == ["Shape", "Cast", "Mul"]


def test_integer_sizes_that_are_used_themselves_stay():
    def both(build, x):
        size = build.Squeeze(build.Shape(x), [0])
        return [size, build.cast(size, np.dtype("float64"))]

    assert folded(both, np.arange(4.0)) == ["Shape", "Squeeze", "Cast"]
