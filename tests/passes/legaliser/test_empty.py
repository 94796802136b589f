import numpy as np
import pytest

from tests.passes.conftest import bare


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((1,), (0,)),
        ((2, 1), (2, 0)),
        ((2, 1), (0,)),
        ((1, 3), (0, 3)),
        ((1, 3), (0, 1)),
        ((), (0,)),
    ],
)
@pytest.mark.parametrize("static", [True, False])
def test_a_size_of_one_is_broadcast_to_nothing(shape, target, static):
    x = np.ones(shape)

    def emit(build, value):
        return build.Neg(build.Expand(build.Abs(value), build.ints(target)))

    model = bare(emit, x, shapes=[shape] if static else ())
    model.legalise()
    [found] = model.run()
    assert found.shape == np.broadcast_shapes(shape, target)
