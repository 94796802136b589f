"""Operations of networks and their gradients in PyTensor's compiled backends, shapes known."""

import functools
import zlib

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from tests.conftest import PY, sweep_rest

IMAGES, CHANNELS, ROWS = (2, 4, 6, 6), (4,), (3, 5)
HEADS = (2, 2, 5, 4)


def half(operation, **options):
    return functools.partial(operation, border_mode="half", **options)


def tables(x):
    return nn.rotary_embedding(x, *(table.astype("float32") for table in nn.rotary_tables(5, 4)))


def convolve_with_bias(x, w, b):
    return nn.conv2d(x, w, "half", 2, num_groups=2, bias=b)


ELEMENTWISE = [
    nn.celu,
    nn.elu,
    nn.gelu,
    nn.hard_sigmoid,
    nn.hard_swish,
    nn.hard_tanh,
    nn.leaky_relu,
    nn.log_softmax,
    nn.mish,
    nn.relu,
    nn.selu,
    nn.sigmoid,
    nn.silu,
    nn.softmax,
    nn.softplus,
    nn.softsign,
    nn.swish,
    nn.thresholded_relu,
]
FAMILIES = {
    "convolutions": [
        (nn.conv1d, (2, 4, 6), (3, 4, 2)),
        (convolve_with_bias, IMAGES, (4, 2, 3, 3), CHANNELS),
        (functools.partial(nn.conv2d, filter_dilation=2), IMAGES, (2, 4, 2, 3)),
        (nn.conv3d, (1, 2, 3, 4, 3), (3, 2, 2, 2, 2)),
        (nn.causal_conv1d, (2, 4, 6), (3, 4, 2)),
        (half(nn.depthwise_conv2d), IMAGES, (8, 1, 3, 3)),
        (half(nn.separable_conv2d), IMAGES, (8, 1, 3, 3), (5, 8, 1, 1)),
    ],
    "transposed convolutions": [
        (functools.partial(nn.conv1d_transpose, stride=2), (2, 4, 6), (4, 2, 3)),
        (functools.partial(nn.conv2d_transpose, padding=1), IMAGES, (4, 2, 3, 3)),
        (nn.conv3d_transpose, (1, 2, 3, 2, 3), (2, 3, 2, 2, 2)),
    ],
    "pools": [
        (functools.partial(nn.max_pool, window=3, stride=2, padding=1), IMAGES),
        (functools.partial(nn.max_pool, window=2), IMAGES),
        (functools.partial(nn.avg_pool, window=3, stride=2, padding=1), IMAGES),
        (functools.partial(nn.lp_pool, window=2), IMAGES),
        (nn.global_avg_pool, IMAGES),
        (nn.global_lp_pool, IMAGES),
        (nn.global_max_pool, IMAGES),
    ],
    "resizing": [
        (lambda x: nn.upsample(x, 2), IMAGES),
        (functools.partial(nn.resize, sizes=(9, 9), mode="linear"), IMAGES),
        (functools.partial(nn.resize, scales=(2.0, 1.5)), IMAGES),
        (functools.partial(nn.resize, sizes=(9, 4), mode="cubic"), IMAGES),
    ],
    "norms": [
        (nn.batch_norm, IMAGES, *[CHANNELS] * 4),
        (lambda *operands: nn.batch_norm_train(*operands)[0], IMAGES, *[CHANNELS] * 4),
        (lambda x, *more: nn.group_norm(x, 2, *more), IMAGES, CHANNELS, CHANNELS),
        (nn.instance_norm, IMAGES, CHANNELS, CHANNELS),
        (nn.layer_norm, ROWS, (5,), (5,)),
        (nn.rms_norm, ROWS, (5,)),
    ],
    "attention": [
        (nn.attention, HEADS, HEADS, HEADS),
        (functools.partial(nn.attention, is_causal=True), HEADS, HEADS, HEADS),
        (tables, HEADS),
    ],
    "activations": [
        *((operation, ROWS) for operation in ELEMENTWISE),
        (nn.prelu, IMAGES, CHANNELS),
    ],
}


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("NUMBA", marks=pytest.mark.compiled),
        pytest.param("JAX", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("family", sweep_rest(FAMILIES, ("convolutions", "pools", "resizing")))
def test_operations_and_gradients_are_those_of_the_definition(family, mode):
    if mode == "JAX":
        pytest.importorskip("jax", reason="mode JAX needs jax")
    rng = np.random.default_rng(zlib.crc32(family.encode()))
    inputs, values, outputs = [], [], []
    for operation, *shapes in FAMILIES[family]:
        own = [pt.tensor(shape=shape, dtype="float32") for shape in shapes]
        y = operation(*own)
        weight = rng.normal(size=y.type.shape).astype("float32")
        outputs += [y, *pt.grad((y * weight).sum(), own, disconnected_inputs="ignore")]
        inputs += own
        # Positive, as variances must be, and all different, so that maxima are.
        values += [rng.uniform(0.2, 2, shape).astype("float32") for shape in shapes]
    with pytensor.config.change_flags(cxx=""):
        expected = pytensor.function(inputs, outputs, mode=PY)(*values)
    found = pytensor.function(inputs, outputs, mode=mode)(*values)
    for variable, a, b in zip(outputs, found, expected, strict=True):
        # JAX adds up in float32 and in an order of its own.
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=str(variable.owner))
