"""Arrays in another layout have equal elements, and so has the code for them."""

import numpy as np
import pytest

from tests.fuzz.layouts import LAYOUTS, laid_out, literal_of


@pytest.mark.parametrize("layout", ["", *LAYOUTS])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (2, 1, 3)])
def test_a_layout_keeps_the_elements(layout, shape):
    value = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    for other in (laid_out(value, layout), eval(literal_of(value, layout))):
        np.testing.assert_array_equal(other, value, strict=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_code_lies_in_memory_as_the_array_does(layout):
    value = np.ones((3, 2))
    view = laid_out(value, layout)
    assert view.strides != value.strides
    assert eval(literal_of(value, layout)).strides == view.strides
