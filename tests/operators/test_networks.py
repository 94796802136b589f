"""Numbers of windows along axes of unknown size agree with those along known ones."""

import onnx_ir as ir
import pytest

from pytensor_onnx.operators.dims import ComputedSize, replace_parts
from pytensor_onnx.operators.entries import output_dims

FILTERS = ir.val("w", shape=(4, 4, 3))
SCALES = [ir.val("scales", const_value=ir.tensor([1.0, 1.0, scale])) for scale in (2.0, 1.5)]


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "is_known"),
    [
        ("Conv", [FILTERS], {"pads": [1, 1]}, True),
        ("Conv", [FILTERS], {"pads": [3, 1]}, True),
        ("Conv", [FILTERS], {}, False),
        ("Conv", [FILTERS], {"pads": [1, 1], "strides": [2]}, True),
        ("MaxPool", [], {"kernel_shape": [2], "pads": [1, 1]}, True),
        ("ConvTranspose", [FILTERS], {}, True),
        ("ConvTranspose", [FILTERS], {"strides": [2]}, True),
        ("ConvTranspose", [FILTERS], {"pads": [1, 1], "strides": [3]}, False),
        ("Resize", [None, SCALES[0]], {}, True),
        ("Resize", [None, SCALES[1]], {}, False),
    ],
)
def test_sizes_of_windows_along_an_axis_of_any_size(op_type, operands, attributes, is_known):
    *_, found = output_dims(op_type, [ir.val("x", shape=("n", 4, "w")), *operands], attributes)
    assert (found is not None) == is_known
    for size in (3, 5, 8) if is_known else ():
        *_, expected = output_dims(
            op_type, [ir.val("x", shape=("n", 4, size)), *operands], attributes
        )
        computed = isinstance(found, ComputedSize)
        assert (replace_parts(found, {"w": size}.get) if computed else size) == expected
