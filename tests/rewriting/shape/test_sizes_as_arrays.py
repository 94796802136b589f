import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.rewriting.shape import SizesAsArrays
from tests.conftest import called, compare_onnx_and_py


def test_sizes_of_functions_are_computed_with_arrays():
    x, y = pt.tensor("x", shape=(1,)), pt.tensor("y", shape=(4,))
    chosen = pt.choose(pytensor.shared(np.array([0])), pt.stack([x, x * 2]))
    joined = called(lambda a, b: pt.join(0, a, b), y, called(pt.exp, chosen))
    compare_onnx_and_py([x, y], pt.mean(joined, axis=0), [np.ones(1), np.arange(4.0)])


def with_unknown_sizes(x):
    """Return the result of the same operation with a static shape that knows no size."""
    unknown = x.type.clone(shape=(None,) * x.type.ndim)
    return Apply(x.owner.op, x.owner.inputs, [unknown()]).outputs[0]


def test_a_size_that_one_operand_knows_as_a_number_is_that_number():
    x, y = pt.matrix("x", shape=(4, None)), pt.matrix("y")
    total = with_unknown_sizes(x + y)
    graph = FunctionGraph([x, y], [total], clone=False)
    graph.attach_feature(SizesAsArrays())
    rows, columns = graph.shape_feature.shape_tuple(total)
    assert isinstance(rows, Constant)
    assert rows.data == 4
    assert not isinstance(columns, Constant)


def test_a_size_that_a_cast_changes_is_not_the_number_before():
    x = pt.vector("x")
    size = pt.cast(pt.constant(2.7), "int64")
    repeated = with_unknown_sizes(pt.full((size,), x[0]))
    graph = FunctionGraph([x], [repeated], clone=False)
    graph.attach_feature(SizesAsArrays())
    assert graph.shape_feature.get_shape(repeated, 0).eval() == 2


def test_operands_of_other_sizes_than_the_inferred_number_are_refused():
    x, y = pt.matrix("x", shape=(4, None)), pt.matrix("y")
    mean = with_unknown_sizes(x + y).mean(axis=0)
    f = pytensor.function([x, y], mean, mode="ONNX")
    values = np.linspace(-1, 1, 24).reshape(4, 6), np.arange(24.0).reshape(4, 6) ** 2
    np.testing.assert_allclose(f(*values), (values[0] + values[1]).mean(axis=0))
    with pytest.raises(ValueError, match="axis 0 of input y has the size 3, but 4 is expected"):
        f(values[0], values[1][:3])
