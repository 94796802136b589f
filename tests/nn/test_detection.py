import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import InputError
from pytensor_onnx.nn.detection import non_max_suppression
from tests.conftest import PY, compare_onnx_and_py, op_types


def variables():
    return pt.ftensor3("boxes"), pt.ftensor3("scores")


def random_case(seed: int, n: int, center_point_box: bool):
    """Boxes on a coarse grid and scores in tenths: equal scores, empty boxes, exact overlaps."""
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 9, (2, n, 4)).astype("float32") / 2
    if not center_point_box:
        boxes = boxes[:, :, rng.permutation(4)]
    return boxes, (rng.integers(0, 11, (2, 3, n)) / 10).astype("float32")


def selected_by_definition(boxes, scores, max_output, iou_threshold, score_threshold, centred):
    def corners(box):
        a, b, c, d = map(float, box)
        if centred:
            return a - c / 2, b - d / 2, a + c / 2, b + d / 2
        return min(a, c), min(b, d), max(a, c), max(b, d)

    def iou(first, second):
        (a1, b1, a2, b2), (c1, d1, c2, d2) = corners(first), corners(second)
        shared = max(0, min(a2, c2) - max(a1, c1)) * max(0, min(b2, d2) - max(b1, d1))
        total = (a2 - a1) * (b2 - b1) + (c2 - c1) * (d2 - d1) - shared
        return shared / total if shared else 0

    rows = []
    for image in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            score = scores[image, label]
            kept = []
            for box in sorted(range(len(score)), key=lambda i: (-score[i], i)):
                others = (iou(boxes[image, box], boxes[image, other]) for other in kept)
                good = score[box] > np.float32(score_threshold)
                if good and len(kept) < max_output and all(o <= iou_threshold for o in others):
                    kept.append(box)
            rows += [(image, label, box) for box in kept]
    return np.array(rows, dtype="int64").reshape(-1, 3)


# 0.35 is not the ratio of two of these areas, so that rounding decides nothing.
@pytest.mark.each_value
@pytest.mark.parametrize("centred", [False, True], ids=["corners", "centres"])
@pytest.mark.parametrize("options", [(100, 0.35, 0.3), (2, 0.0, 0.5), (0, 1.0, 0.0), (9, 1.0, -1)])
def test_selection_is_that_of_the_definition(options, centred):
    boxes, scores = variables()
    selected = non_max_suppression(boxes, scores, *options, center_point_box=centred)
    program = export_onnx([boxes, scores], selected)
    in_mode = pytensor.function([boxes, scores], selected, mode="ONNX")
    in_python = pytensor.function([boxes, scores], selected, mode=PY)
    for seed, n in enumerate([0, 1, 2, 12, 12, 12, 12, 30]):
        case = random_case(seed, n, centred)
        expected = selected_by_definition(*case, *options, centred)
        for run in (program, in_mode, in_python):
            found = run(*case)
            assert found.dtype == "int64"
            np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}")


def test_boxes_and_scores_of_other_numbers_are_refused_by_name():
    boxes, scores = variables()
    program = export_onnx([boxes, scores], non_max_suppression(boxes, scores, 10, 0.5, 0.3))
    images, numbers = np.ones((2, 3, 4), "float32"), np.ones((3, 1, 3), "float32")
    with pytest.raises(InputError, match="boxes_dim0"):
        program(images, numbers)


def test_selection_is_one_operator():
    boxes, scores = variables()
    selected = non_max_suppression(boxes, scores, 10, 0.5, 0.3)
    program = compare_onnx_and_py([boxes, scores], selected, random_case(0, 12, False))
    assert op_types(program) == ["NonMaxSuppression"]


def test_thresholds_may_be_computed():
    boxes, scores = variables()
    options = [pt.lscalar("most"), pt.fscalar("overlap"), pt.fscalar("least")]
    selected = non_max_suppression(boxes, scores, *options)
    values = [np.int64(2), np.float32(0.4), np.float32(0.2)]
    compare_onnx_and_py([boxes, scores, *options], selected, [*random_case(1, 12, False), *values])


def test_gradients_flow_to_selected_elements():
    boxes, scores = variables()
    selected = non_max_suppression(boxes, scores, 2, 0.4, 0.2)
    best = scores[selected[:, 0], selected[:, 1], selected[:, 2]]
    values = random_case(1, 12, False)
    gradient = pt.grad((best**2).sum(), scores)
    compare_onnx_and_py([boxes, scores], [best, gradient], values)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"boxes": pt.dtensor3("b")}, TypeError, "boxes .* must be of float32, not float64"),
        ({"scores": pt.fmatrix("s")}, ValueError, "scores .* must have 3 dimensions, not 2"),
        ({"boxes": pt.tensor3("b", shape=(2, 9, 5), dtype="float32")}, ValueError, "coordinates"),
        ({"boxes": pt.tensor3("b", shape=(2, 8, 4), dtype="float32")}, ValueError, "boxes is 8"),
        ({"boxes": pt.tensor3("b", shape=(3, 9, 4), dtype="float32")}, ValueError, "images is 3"),
        ({"iou_threshold": 1.5}, ValueError, "iou_threshold=1.5 .* out of range"),
        ({"max_output": -1}, ValueError, "max_output=-1 .* out of range"),
        ({"score_threshold": np.nan}, ValueError, "score_threshold=nan"),
        ({"max_output": pt.fscalar()}, TypeError, "max_output .* int64 scalar"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    given = {
        "boxes": pt.tensor3("boxes", shape=(2, 9, 4), dtype="float32"),
        "scores": pt.tensor3("scores", shape=(2, 3, 9), dtype="float32"),
        "max_output": 10,
        "iou_threshold": 0.5,
        "score_threshold": 0.1,
    }
    with pytest.raises(error, match=message):
        non_max_suppression(**(given | arguments))
