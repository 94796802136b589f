"""ONNX's node tests on imported graphs."""

from collections import Counter

import pytest

from tests.importing.node_tests import PYTHON, judged, node_tests, node_tests_of, verdicts


@pytest.mark.parametrize(
    "operator",
    [
        "celu",
        "clip",
        "conv",
        "cumsum",
        "gathernd",
        "gru",
        "loop",
        "pad",
        "resize",
        "scan",
        "slice",
        "topk",
    ],
)
def test_no_node_test_of_an_operator_is_wrong(operator):
    counts = Counter(judged(case).verdict for case in node_tests_of(operator))
    assert counts["wrong"] == 0
    assert counts["right"] > counts["refused"]


@pytest.mark.sweep
@pytest.mark.parametrize(("symbolic", "least"), [(False, 1541), (True, 1300)])
def test_no_node_test_is_wrong(symbolic, least):
    found = list(verdicts(node_tests(), PYTHON, symbolic=symbolic))
    assert not [v for v in found if v.verdict == "wrong"]
    assert Counter(v.verdict for v in found)["right"] >= least
