"""Small transformers of pytensor-ml with the weights of a formula."""

from typing import NamedTuple

import numpy as np
import pytensor
import pytest
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from tests.ml.transformers_cases import CLIP, GPT2, weight

registry = pytest.importorskip("pytensor_ml.models")


class Built(NamedTuple):
    """A model: its input, its outputs and its weights under their public names."""

    tokens: TensorVariable
    outputs: list[Variable]
    weights: dict[str, np.ndarray]


def gpt2(dtype="float64", **changes) -> Built:
    config = {"architectures": ["GPT2LMHeadModel"], **GPT2, **changes}
    return _build(config, dtype, prefix="transformer.")


def clip(dtype="float64", **changes) -> Built:
    config = {"architectures": ["CLIPTextModelWithProjection"], **CLIP, **changes}
    return _build(config, dtype, transposed=("proj", "fc"))


def _build(config, dtype, prefix="", transposed=()) -> Built:
    with pytensor.config.change_flags(floatX=dtype):
        (tokens,), outputs, keys = registry.build_from_config(config)
    weights = {}
    for key in sorted(keys.keys()):
        parameter = keys.parameter_for(key)
        shape = parameter.get_value(borrow=True).shape
        swapped = key.endswith("weight") and any(part in key for part in transposed)
        array = weight(prefix + key, shape[::-1] if swapped else shape)
        weights[key] = array
        parameter.set_value((array.T if swapped else array).astype(dtype))
    return Built(tokens, outputs, weights)
