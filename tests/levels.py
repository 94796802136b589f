"""Sessions of one model at every optimization level of the runtime."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort

LEVELS = {
    name: getattr(ort.GraphOptimizationLevel, f"ORT_{name}")
    for name in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_LAYOUT", "ENABLE_ALL")
}


def run_at(
    level: str,
    model: onnx.ModelProto,
    feeds: Mapping[str, np.ndarray],
    *,
    tell_sizes: bool = False,
) -> Sequence[np.ndarray]:
    """Run a model at a level of optimization.

    Parameters
    ----------
    level
        Name in `LEVELS`.
    model
        Model.
    feeds
        Value for each input.
    tell_sizes
        Whether to tell the session the size of each dimension, so that it folds sizes.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if tell_sizes:
        for value in model.graph.input:
            for dim, size in zip(
                value.type.tensor_type.shape.dim, feeds[value.name].shape, strict=True
            ):
                options.add_free_dimension_override_by_name(dim.dim_param, size)
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))


def assert_same_at_every_level(
    model: onnx.ModelProto,
    feeds: Mapping[str, np.ndarray],
    expected: Sequence[np.ndarray],
    rtol: float = 0.0,
) -> None:
    """Assert the expected results of a model at every level, with and without known sizes."""
    for level in LEVELS:
        for tell_sizes in (False, True):
            found = run_at(level, model, feeds, tell_sizes=tell_sizes)
            for one, other in zip(found, expected, strict=True):
                assert one.shape == other.shape
                np.testing.assert_allclose(one, other, rtol=rtol, atol=0, err_msg=level)
