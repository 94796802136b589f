import re

import numpy as np
import pytest

from pytensor_onnx.exporting.verification.divergence import disagreement


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        (np.ones(2, "float32"), np.ones(2), "dtype float32 instead of float64"),
        (np.ones(2), np.ones(3), r"shape \(2,\) instead of \(3,\)"),
        (np.array([1, 2]), np.array([1, 3]), "found 2, expected 3 at \\[1\\]"),
        (np.array([np.nan]), np.array([1.0]), r"^found nan, expected 1.0 at \[0\]$"),
        (np.array([1.0, 2.0]), np.array([3.0, np.nan]), r"^found 2.0, expected nan at \[1\]$"),
        (np.array([1.0]), np.array([np.inf]), r"^largest difference inf \(found 1.0, expected inf"),
        (np.array([1.0, 1.0 + 1e-8]), np.array([1.0, 1.0]), "largest difference 1e-08"),
    ],
)
def test_disagreement_describes_the_difference(found, expected, reason):
    assert re.search(reason, disagreement(found, expected))


@pytest.mark.parametrize(
    "values", [np.array([np.nan, np.inf, -np.inf, -0.0]), np.zeros((0, 3)), np.array(True)]
)
def test_equal_arrays_agree(values):
    assert disagreement(values, values.copy()) == ""
