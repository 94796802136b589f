"""The blocks of pytensor-ml's diffusion autoencoder, and the whole of it, with random weights."""

import numpy as np
import pytensor
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types, sweep_rest

layers = pytest.importorskip("pytensor_ml.layers")
models = pytest.importorskip("pytensor_ml.models")
from pytensor_ml.model import Model  # noqa: E402

RNG = np.random.default_rng(0)
# Group norms divide by deviations of some dozen float32 numbers.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def float32():
    with pytensor.config.change_flags(floatX="float32"):
        yield


def images(*shape):
    return RNG.normal(size=shape).astype("float32")


def shake(y):
    """Draw biases and shifts too, which start at zero."""
    for weight in Model(y).initialize(seed=0).weights:
        if weight.type.ndim == 1:
            value = weight.get_value()
            weight.set_value(value + 0.1 * RNG.normal(size=value.shape).astype("float32"))


@pytest.mark.slow
def test_residual_blocks_have_a_transpose_at_each_end():
    x = layers.Input("x", shape=(None, 4, 6, 4))
    network = layers.Sequential(
        models.ResnetBlock2D("wide", in_channels=4, out_channels=6, n_groups=2),
        models.ResnetBlock2D("same", in_channels=6, n_groups=2),
    )
    y = network(x)
    shake(y)
    program = compare_onnx_and_py([x], y, [images(2, 4, 6, 4)], **TOLERANCE)
    operators = op_types(program)
    assert operators.count("Transpose") == 2
    assert operators.count("Conv") == 5
    assert operators.count("InstanceNormalization") == 4
    assert operators.count("Add") == 2 + 4
    standard = export_onnx([x], y, target="standard", verify=False)
    assert op_types(standard).count("GroupNormalization") == 4


def test_upsampling_and_downsampling_stay_channels_first():
    x = layers.Input("x", shape=(None, 4, 6, 2))
    conv = {"in_channels": 2, "out_channels": 2, "kernel_size": 3}
    network = layers.Sequential(
        layers.ZeroPad2D(padding=((0, 1), (0, 1))),
        layers.Conv2D("down", stride=2, **conv),
        layers.Upsample2D(scale_factor=2),
        layers.Conv2D("up", padding="same", **conv),
    )
    y = network(x)
    shake(y)
    program = compare_onnx_and_py([x], y, [images(2, 4, 6, 2)], **TOLERANCE)
    assert op_types(program) == ["Transpose", "Conv", "Resize", "Conv", "Transpose"]


@pytest.mark.slow
@pytest.mark.parametrize("direction", sweep_rest(["encoder", "decoder"], ["decoder"]))
def test_autoencoder(direction):
    from pytensor_ml.models.architectures.vae import build_autoencoder_kl
    from pytensor_ml.models.loading.keys import KeyMap

    config = {
        "block_out_channels": [8, 16],
        "norm_num_groups": 4,
        "latent_channels": 2,
        "layers_per_block": 1,
    }
    (image, latent), (mean, log_variance, sample) = build_autoencoder_kl(config, KeyMap())
    inputs, outputs = ([image], [mean, log_variance])
    if direction == "decoder":
        inputs, outputs = ([latent], [sample])
    for output in outputs:
        shake(output)
    shape = (2, 8, 8, inputs[0].type.shape[-1])
    program = compare_onnx_and_py(inputs, outputs, [images(*shape)], **TOLERANCE)
    operators = op_types(program)
    counts = {"Conv": 13, "InstanceNormalization": 10, "Resize": 0}
    if direction == "decoder":
        counts = {"Conv": 17, "InstanceNormalization": 14, "Resize": 1}
    assert {name: operators.count(name) for name in counts} == counts
    # One at the start, one for each output, three of the attention in the middle.
    assert operators.count("Transpose") == 1 + len(outputs) + 3
    assert operators.count("Softmax") == 1
    assert not {"Gather", "ScatterND", "Pad"} & set(operators)
