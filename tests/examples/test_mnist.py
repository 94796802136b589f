import gzip

import numpy as np
import onnxruntime
import pytest

from tests.conftest import op_types

pytest.importorskip("pytensor_ml")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def digits(mnist):
    return mnist.digits.small_digits()


@pytest.fixture(scope="module")
def trained(mnist, digits):
    return mnist.train.train(digits, epochs=5)


@pytest.fixture(scope="module")
def program(mnist, trained, tmp_path_factory):
    return mnist.train.export(trained, tmp_path_factory.mktemp("mnist") / "mnist.onnx")


@pytest.fixture(scope="module")
def session(program):
    return onnxruntime.InferenceSession(program.proto.SerializeToString())


@pytest.mark.slow
def test_digits_are_learned(trained, digits, session):
    assert trained.losses[-1] < trained.losses[0] / 3
    (probabilities,) = session.run(None, {"images": digits.test_images})
    assert (probabilities.argmax(axis=1) == digits.test_labels).mean() > 0.9


def test_pytensor_and_the_file_predict_alike(mnist, trained, digits, session):
    (probabilities,) = session.run(None, {"images": digits.test_images})
    expected = mnist.train.predictions_of_pytensor(trained, digits.test_images)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), expected)


def test_file_equals_one_written_by_hand(program):
    layers = ["Conv", "Relu", "MaxPool"]
    assert op_types(program) == [*layers, *layers, "Reshape", "Gemm", "Softmax"]
    assert {
        name: list(value.shape)
        for name, value in program.model.graph.initializers.items()
        if "." in name
    } == {
        "conv1.weight": [16, 1, 3, 3],
        "conv1.bias": [16],
        "conv2.weight": [32, 16, 3, 3],
        "conv2.bias": [32],
        "dense.weight": [128, 10],
        "dense.bias": [10],
    }


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_file_takes_any_batch(session, digits, batch):
    assert session.get_inputs()[0].shape == ["batch", 1, 8, 8]
    images = digits.test_images[:batch]
    (probabilities,) = session.run(None, {"images": images})
    (all_probabilities,) = session.run(None, {"images": digits.test_images})
    assert probabilities.shape == (batch, 10)
    np.testing.assert_allclose(probabilities, all_probabilities[:batch], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("packed", [False, True])
def test_files_of_mnist_are_read(mnist, tmp_path, packed):
    rng = np.random.default_rng(0)
    expected = {}
    for part, count in (("train", 5), ("t10k", 3)):
        images = rng.integers(0, 256, (count, 28, 28), dtype="uint8")
        labels = rng.integers(0, 10, count, dtype="uint8")
        expected[part] = images, labels
        for kind, magic, array in (("images-idx3", 2051, images), ("labels-idx1", 2049, labels)):
            data = np.array([magic, *array.shape], ">i4").tobytes() + array.tobytes()
            name = f"{part}-{kind}-ubyte" + (".gz" if packed else "")
            (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    digits = mnist.digits.mnist(tmp_path)
    assert digits.side == 28
    assert digits.test_images.shape == (3, 1, 28, 28)
    assert digits.train_images.dtype == "float32"
    for part, images, labels in (
        ("train", digits.train_images, digits.train_labels),
        ("t10k", digits.test_images, digits.test_labels),
    ):
        np.testing.assert_allclose(images[:, 0], expected[part][0] / 255, rtol=1e-6)
        np.testing.assert_array_equal(labels, expected[part][1])


def test_all_files_that_are_not_from_mnist_are_named(mnist, tmp_path):
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"no images")
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"not packed")
    with pytest.raises(ValueError, match="does not hold the files of MNIST") as error:
        mnist.digits.mnist(tmp_path)
    named = [line.split(":")[0] for line in str(error.value).splitlines()[1:]]
    assert named == [
        "- train-images-idx3-ubyte",
        "- train-labels-idx1-ubyte",
        "- t10k-images-idx3-ubyte",
        "- t10k-labels-idx1-ubyte",
    ]
