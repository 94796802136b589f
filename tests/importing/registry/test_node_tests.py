"""ONNX's node tests on imported graphs."""

from collections import Counter

import pytest

from tests.importing.node_tests import PYTHON, judged, node_tests, node_tests_of, verdicts


@pytest.mark.parametrize(
    "operator",
    [
        "adagrad",
        "adam",
        "bitcast",
        "cast",
        "castlike",
        "celu",
        "clip",
        "conv",
        "cumsum",
        "gathernd",
        "gru",
        "loop",
        "momentum",
        "pad",
        "resize",
        "optionalgetelement",
        "scan",
        "sequence_map",
        "slice",
        "tfidfvectorizer",
        "topk",
    ],
)
def test_no_node_test_of_an_operator_is_wrong(operator):
    counts = Counter(judged(case).verdict for case in node_tests_of(operator))
    assert counts["wrong"] == 0
    assert counts["right"] > counts["refused"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("kind", "symbolic", "least"),
    [
        ("node", False, 1848),
        ("node", True, 1450),
        ("simple", False, 15),
        ("pytorch-converted", False, 82),
        ("pytorch-operator", False, 35),
    ],
)
def test_no_test_of_onnx_is_wrong(kind, symbolic, least):
    found = list(verdicts(node_tests(kind), PYTHON, symbolic=symbolic))
    assert not [v for v in found if v.verdict == "wrong"]
    assert Counter(v.verdict for v in found)["right"] >= least
