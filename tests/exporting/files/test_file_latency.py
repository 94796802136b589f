import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import InputError, PyTensorONNXError, export_onnx, measure_latency


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """A file of ``x * scale + y`` with a default for the scale."""
    path = tmp_path_factory.mktemp("models") / "scaled.onnx"
    x, y, scale = pt.vector("x"), pt.vector("y"), pytensor.shared(2.0, name="scale")
    export_onnx([x, y], x * scale + y, path, updates={scale: scale + 1.0})
    return path


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_times_are_of_runs_on_sampled_inputs(scaled):
    (latency,) = measure_latency(scaled, seconds=0.01)
    assert latency.inputs == "sampled inputs (x [3], y [3])"
    assert latency.runs > 1
    assert 0 < latency.least_seconds <= latency.median_seconds
    assert latency.median_seconds <= latency.p90_seconds <= latency.p99_seconds
    assert latency.least_seconds * (latency.runs - 1) <= 0.01
    assert latency.load_seconds > 0


def test_inputs_may_be_given_with_those_that_have_a_default(scaled, tmp_path):
    arrays = {"x": np.ones(1000), "y": np.ones(1000)}
    (latency,) = measure_latency(scaled, saved(tmp_path / "a.npz", **arrays), seconds=0)
    assert (latency.inputs, latency.runs) == ("given inputs (x [1000], y [1000])", 1)
    file = saved(tmp_path / "b.npz", **arrays, scale=np.array(3.0))
    assert measure_latency(scaled, file, seconds=0)[0].inputs.endswith("scale [])")


def test_files_are_compared_on_one_sample(tmp_path):
    for name, size in (("fixed", 40), ("open", None)):
        x = pt.vector("x", shape=(size,))
        export_onnx([x], pt.exp(x), tmp_path / f"{name}.onnx", verify=False)
    files = [tmp_path / "fixed.onnx", tmp_path / "open.onnx"]
    assert {each.inputs for each in measure_latency(files, seconds=0)} == {
        "sampled inputs (x [40])"
    }


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones(3)}, "y is missing"),
        ({"x": np.ones(3), "y": np.ones(3), "z": np.ones(3)}, "there is no input 'z'"),
        (
            {"x": np.ones(3), "y": np.ones(3, "float32")},
            r"input y: float64\[.*\] was given float32\[3\]",
        ),
        (
            {"x": np.ones(3), "y": np.ones((3, 1))},
            r"input y: float64\[.*\] was given float64\[3, 1\]",
        ),
        ({"x": np.ones(3), "y": np.ones(2)}, "is 3 in x and 2 in y"),
    ],
)
def test_inputs_that_do_not_fit_are_named(scaled, tmp_path, arrays, message):
    with pytest.raises(InputError, match=message) as raised:
        measure_latency(scaled, saved(tmp_path / "given.npz", **arrays))
    assert "\n" not in str(raised.value)


def test_a_file_without_arrays_is_an_error(scaled, tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "empty.npz").touch()
    np.save(tmp_path / "one.npy", np.ones(3))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    for name in ("text.npz", "empty.npz", "one.npy", "objects.npz"):
        with pytest.raises(InputError, match=r"is no \.npz file of arrays"):
            measure_latency(scaled, tmp_path / name)


def test_sessions_of_files_threads_and_providers_run_in_turns(scaled):
    shares = []
    found = measure_latency([scaled, scaled], threads=[1, 2], seconds=0.02, progress=shares.append)
    assert [x.threads for x in found] == [1, 2, 1, 2]
    assert {x.provider for x in found} == {"cpu"}
    assert len(shares) == 4 * 10
    assert shares == sorted(shares)
    assert shares[-1] == 1
    with pytest.raises(PyTensorONNXError, match="has no TensorrtExecutionProvider"):
        measure_latency(scaled, providers=["cpu", "tensorrt"])
