import numpy as np
import onnxruntime as ort
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import export_onnx
from pytensor_onnx.passes.keep_apart import keep_apart
from pytensor_onnx.targets import get_profile
from tests.conftest import compare_onnx_and_py, op_types
from tests.passes.conftest import bare


def take_range(dtype):
    def emit(build, x, limit):
        one = np.array(1, dtype)
        return build.Gather(x, build.Range(np.array(-2, dtype), limit, one), axis=0)

    return emit


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_of_a_range_are_counted_one_by_one(dtype):
    model = bare(take_range(dtype), np.arange(3.0), np.array(1, dtype))
    assert len(model.apply(keep_apart.given(profile=get_profile("onnxruntime")))) == 1
    np.testing.assert_array_equal(model.run()[0], [1, 2, 0])
    model.feeds["x1"] = np.array(5, dtype)
    with pytest.raises(Exception, match="out of data bounds"):
        model.run()


def test_a_range_of_other_uses_is_left_alone():
    model = bare(lambda build, n: build.Neg(build.Range(np.int64(0), n, np.int64(1))), np.array(3))
    assert model.apply(keep_apart.given(profile=get_profile("onnxruntime"))) == []
    assert model.operators() == ["Range", "Neg"]


@pytest.mark.parametrize(
    ("start", "step", "stops"), [(0, 1, (0, 2, 3)), (-2, 1, (-1, 1, 3)), (2, -1, (-1, -3, 1))]
)
def test_an_arange_may_be_an_index(start, step, stops):
    x, stop = pt.matrix("x"), pt.lscalar("stop")
    taken = [x[pt.arange(start, stop, step)], x[:, pt.arange(start, stop, step)]]
    for value in stops:
        compare_onnx_and_py([x, stop], taken, [np.arange(9.0).reshape(3, 3), value])


def test_an_arange_beyond_the_size_is_an_error():
    x, n = pt.vector("x"), pt.lscalar("n")
    program = compare_onnx_and_py([x, n], x[pt.arange(n)], [np.arange(3.0), 3])
    assert op_types(program) == ["Range", "Max", "Gather"]
    with pytest.raises(Exception, match="out of data bounds"):
        program(np.arange(3.0), np.array(4))


def test_an_arange_may_come_from_a_function_or_go_to_one(tmp_path):
    x, indices, n = pt.vector("x"), pt.lvector("indices"), pt.lscalar("n")
    counted = OpFromGraph([n], [pt.arange(-2, n)], name="counted")
    taken = OpFromGraph([x, indices], [x[indices]], name="taken")
    for result in (x[counted(n)], taken(x, pt.arange(-2, n)), taken(x, counted(n))):
        export_onnx([x, n], result, tmp_path / "model.onnx")
        session = ort.InferenceSession(str(tmp_path / "model.onnx"))
        found = session.run(None, {"x": np.arange(5.0), "n": np.array(2)})[0]
        np.testing.assert_array_equal(found, [3, 4, 0, 1])
