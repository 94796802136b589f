from collections import Counter

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, nn
from tests.conftest import compare_onnx_and_py

RNG = np.random.default_rng(5)


def images(dtype="float32"):
    return pt.tensor("x", shape=(None, 3, None, None), dtype=dtype)


def weights(*shape):
    return RNG.normal(0, 0.3, shape).astype("float32")


def conv(x, channels, size, stride, batch_norm=False):
    before = x.type.shape[1]
    y = nn.conv2d(
        x, weights(channels, before, size, size), (size // 2,) * 2, stride, filter_flip=False
    )
    if not batch_norm:
        return y
    return nn.batch_norm(y, *(weights(channels) for _ in range(3)), np.ones(channels, "float32"))


def network(x):
    y = nn.relu(conv(x, 4, 7, 2, batch_norm=True))
    y = nn.max_pool(y, 3, stride=2, padding=1)
    for channels, stride in ((4, 1), (6, 2), (8, 2)):
        z = conv(nn.relu(conv(y, channels, 3, stride)), channels, 3, 1)
        shortcut = y if stride == 1 else conv(y, channels, 1, stride, batch_norm=True)
        y = nn.relu(z + shortcut)
    return y


@pytest.mark.parametrize("size", [(33, 40), (9, 1)])
@pytest.mark.few(1)
def test_the_mean_over_images_of_any_size_reads_the_sizes_from_the_last_array(size):
    x = images()
    program = export_onnx([x], network(x).mean(axis=(2, 3)), verify=False)
    kinds = Counter(node.op_type for node in program.model.graph)
    assert kinds["Shape"] == 2
    assert not {"Sub", "Where", "BatchNormalization"} & set(kinds)
    assert len(program.model.graph) == 33
    compare_onnx_and_py([x], network(x).mean(axis=(2, 3)), [weights(2, 3, *size)], rtol=1e-4)


@pytest.mark.slow
def test_means_of_images_with_infinities_and_of_no_images_are_those_of_pytensor():
    x = images()
    mean = nn.relu(conv(x, 4, 3, 2)).mean(axis=(2, 3))
    value = weights(2, 3, 9, 9)
    value[0, 0, 0, 0], value[1, 1, 4, 4] = np.inf, np.nan
    compare_onnx_and_py([x], mean, [value], rtol=1e-4)
    compare_onnx_and_py([x], mean, [weights(0, 3, 9, 9)])


def test_two_branches_with_one_formula_are_known_to_be_of_equal_size():
    x = images()
    first, second = conv(x, 4, 3, 2), conv(x, 4, 1, 2)
    joined = pt.zeros_like(first + second)
    program = compare_onnx_and_py([x], joined, [weights(1, 3, 7, 8)])
    assert "Equal" not in {node.op_type for node in program.model.graph}


def test_an_array_of_which_only_sizes_are_read_is_not_computed():
    x = images()
    sizes = conv(x, 4, 3, 2).shape
    program = compare_onnx_and_py([x], sizes, [weights(1, 3, 7, 8)])
    assert "Conv" not in {node.op_type for node in program.model.graph}


@pytest.mark.slow
def test_upsampled_features_added_to_their_source_do_not_wait_for_themselves():
    x = images()
    small = conv(x, 3, 3, 2)
    back = pt.repeat(pt.repeat(small, 2, axis=2), 2, axis=3)
    same = x + back[:, :, : x.shape[2], : x.shape[3]]
    y = conv(same, 3, 3, 2)
    result = (small + y) / y.shape[2]
    compare_onnx_and_py([x], result, [weights(1, 3, 8, 8)], rtol=1e-4)


@pytest.mark.slow
def test_gradients_of_images_of_any_size_are_those_of_pytensor():
    x = images("float64")
    w = pt.tensor("w", shape=(4, 3, 3, 3), dtype="float64")
    y = nn.max_pool(nn.relu(nn.conv2d(x, w, (1, 1), 2, filter_flip=False)), 2)
    gradients = pt.grad(pt.sqr(y.mean(axis=(2, 3))).sum(), [x, w])
    values = [weights(*shape).astype("float64") for shape in ((2, 3, 9, 12), (4, 3, 3, 3))]
    compare_onnx_and_py([x, w], gradients, values, rtol=1e-9)
