"""Models of a few nodes, run with regions and without."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from pytensor_onnx import native
from pytensor_onnx.kernels import regions

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 1e-310, 1e300, np.inf, -np.inf, np.nan]


def values(dtype, shape, seed=0):
    """Draw an array that has the special values of its dtype."""
    rng, dtype, size = np.random.default_rng(seed), np.dtype(dtype), int(np.prod(shape))
    if dtype.kind == "f":
        drawn = rng.normal(scale=3, size=size)
        special = rng.choice(SPECIAL, size)
    elif dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    else:
        info = np.iinfo(dtype)
        drawn = rng.integers(0 if dtype.kind == "u" else -9, 9, size)
        special = rng.choice([info.min, info.max, 0, 1, info.max - 1], size)
        return np.where(rng.uniform(size=size) < 0.3, special, drawn).astype(dtype).reshape(shape)
    with np.errstate(all="ignore"):
        return np.where(rng.uniform(size=size) < 0.4, special, drawn).astype(dtype).reshape(shape)


def model_of(nodes, feed, outputs, constants=None):
    """Return a model of nodes for the types of a feed; outputs by name and type."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for k, v in feed.items()
        ],
        [helper.make_tensor_value_info(k, dtype, None) for k, dtype in outputs.items()],
        [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def open_session(source, with_library=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if with_library:
        native.register_with_regions(options)
    return onnxruntime.InferenceSession(source, options)


@pytest.fixture
def run_both(monkeypatch):
    """Run a model as it is, and as one region; both raise, or both return results."""
    monkeypatch.setattr(regions, "FEWEST_NODES", 1)

    def run(model, feed):
        source = model.SerializeToString()
        fused = regions.fuse(source).model
        assert fused is not None, "no region"
        kept = onnx.load_model_from_string(fused).graph.node
        assert [x.op_type for x in kept if x.op_type != "Constant"] == ["Region"]
        plain = open_session(source).run(None, feed)
        return plain, open_session(fused, with_library=True).run(None, feed)

    return run


def assert_same_bits(found, expected):
    """Compare bits, where all NaN are one."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        is_nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), is_nan)
        found, expected = found[~is_nan], expected[~is_nan]
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found, expected)
