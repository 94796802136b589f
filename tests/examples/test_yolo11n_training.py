import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import log_softmax

HEIGHT, WIDTH = 64, 96
CELLS = [(s, x, y) for s in (8, 16, 32) for y in range(HEIGHT // s) for x in range(WIDTH // s)]


@pytest.fixture(scope="module")
def objects(yolo11n):
    make = yolo11n.loss.Objects
    return [
        make(np.array([[3.0, 5.0, 43.0, 20.0], [0.0, 0.0, 96.0, 64.0]]), np.array([7, 79])),
        make(np.zeros((0, 4)), np.zeros(0, int)),
    ]


@pytest.fixture(scope="module")
def targets(yolo11n, objects):
    return yolo11n.loss.assign(objects, HEIGHT, WIDTH)


def test_objects_belong_to_the_cell_of_their_centre(targets):
    # Centres are (23, 12.5) at stride 8 and (48, 32) at stride 16: 96 pixels are too much for 8.
    small, large = CELLS.index((8, 2, 1)), CELLS.index((16, 2, 1))
    np.testing.assert_array_equal(np.argwhere(targets.assigned), [[0, small], [0, large]])
    np.testing.assert_array_equal(targets.corners[0, :, small], [3, 5, 43, 20])
    np.testing.assert_array_equal(np.argwhere(targets.classes), [[0, 7, small], [0, 79, large]])


def test_bins_of_a_side_have_its_distance_as_their_mean(targets):
    bins = np.arange(16)
    cell = CELLS.index((8, 2, 1))
    # The cell's centre is (20, 12).
    distances = np.array([20 - 3, 12 - 5, 43 - 20, 20 - 12]) / 8
    np.testing.assert_allclose(bins @ targets.bins[0, :, :, cell].T, distances, rtol=1e-6)
    assert ((targets.bins > 0).sum(axis=2) <= 2).all()
    np.testing.assert_allclose(
        targets.bins.sum(axis=2), np.repeat(targets.assigned[:, None], 4, axis=1), rtol=1e-6
    )


def loss_by_definition(boxes, classes, targets):
    """Cell by cell, in float64; boxes are (B, 4, 16, A)."""
    total = 0.0
    for image in range(len(boxes)):
        for cell, (stride, x, y) in enumerate(CELLS):
            for label in range(80):
                p = 1 / (1 + np.exp(-classes[image, label, cell]))
                target = targets.classes[image, label, cell]
                total -= 0.5 * (target * np.log(p) + (1 - target) * np.log(1 - p))
            if not targets.assigned[image, cell]:
                continue
            log_bins = log_softmax(boxes[image, :, :, cell], axis=1)
            total -= 1.5 * (targets.bins[image, :, :, cell] * log_bins).sum() / 4
            left, top, right, bottom = np.exp(log_bins) @ np.arange(16) * stride
            centre_x, centre_y = (x + 0.5) * stride, (y + 0.5) * stride
            a1, b1, a2, b2 = targets.corners[image, :, cell]
            width = min(centre_x + right, a2) - max(centre_x - left, a1)
            height = min(centre_y + bottom, b2) - max(centre_y - top, b1)
            shared = max(width, 0) * max(height, 0)
            union = (left + right) * (top + bottom) + (a2 - a1) * (b2 - b1) - shared
            total += 7.5 * (1 - shared / union)
    return total / targets.assigned.sum()


@pytest.mark.slow
def test_loss_is_that_of_its_definition(yolo11n, targets):
    rng = np.random.default_rng(0)
    sizes = [(HEIGHT // s, WIDTH // s) for s in (8, 16, 32)]
    values = [rng.normal(size=(2, c, *size)).astype("float32") for c in (64, 80) for size in sizes]
    maps = [pt.tensor(dtype="float32", shape=(None, *v.shape[1:])) for v in values]
    model = yolo11n.model.Yolo11n()
    model.state.set_values(yolo11n.weights.initial_weights(model.state.shapes))
    heads = yolo11n.head.RawHeads(maps[:3], maps[3:])
    variables = yolo11n.loss.target_variables()
    loss = yolo11n.loss.detection_loss(model.detect, heads, variables, HEIGHT, WIDTH)
    order = ("assigned", "corners", "bins", "classes")
    inputs = [getattr(variables, name) for name in order]
    arrays = [getattr(targets, name) for name in order]
    found = pytensor.function([*maps, *inputs], loss, mode="ONNX")(*values, *arrays)

    flat = [v.astype("float64").reshape(*v.shape[:2], -1) for v in values]
    boxes = np.concatenate(flat[:3], axis=2).reshape(2, 4, 16, -1)
    expected = loss_by_definition(boxes, np.concatenate(flat[3:], axis=2), targets)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_training_lowers_the_loss(yolo11n):
    size = 32
    model = yolo11n.model.Yolo11n(training=True)
    weights = yolo11n.weights.initial_weights(model.state.shapes)
    model.state.set_values(weights)
    images, objects = yolo11n.train.synthetic_images(3, size)
    targets = yolo11n.loss.assign(objects, size, size)
    step = yolo11n.train.make_step(model, size, learning_rate=1e-2, mode="ONNX")
    losses = [step(images, targets) for _ in range(8)]
    assert losses[-1] < 0.9 * losses[0]
    trained = model.state.values()
    changed = {name for name in weights if (trained[name] != weights[name]).any()}
    statistics = ("running_mean", "running_var")
    # No object is large enough for the boxes of the coarser scales.
    fixed = {
        name
        for name in weights
        if name.endswith(("num_batches_tracked", "dfl.conv.weight"))
        or (name.startswith(("model.23.cv2.1", "model.23.cv2.2")) and not name.endswith(statistics))
    }
    assert changed == set(weights) - fixed


def one_block(blocks, state):
    """Return a convolution with batch norm and activation."""
    return blocks.Conv(state, "model.0", 3, 4, 3, stride=2)


def every_block(blocks, state):
    """Return a network of each kind of block."""
    layers = [
        blocks.Conv(state, "model.0", 3, 16, 3, stride=2),
        blocks.C3k2(state, "model.1", 16, 16, 4),
        blocks.C3k2(state, "model.2", 16, 16, 8, deep=True),
        blocks.SPPF(state, "model.3", 16),
        blocks.C2PSA(state, "model.4", 16),
        blocks.PlainConv(state, "model.5", 16, 4),
    ]

    def network(x):
        for layer in layers:
            x = layer(x)
        return x

    return network


def trained(yolo11n, make, mode):
    """Train a network in a mode, and return the losses and the parameters."""
    state = yolo11n.weights.State(training=True)
    network = make(yolo11n.blocks, state)
    state.set_values(yolo11n.weights.initial_weights(state.shapes))
    images = pt.tensor("images", shape=(2, 3, 8, 8), dtype="float32")
    targets = pt.tensor("targets", shape=(2, 4, 4, 4), dtype="float32")
    loss = ((network(images) - targets) ** 2).mean()
    updates = state.updates | yolo11n.train.descent(loss, state.trainable, 0.1)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=v.type.shape).astype("float32") for v in (images, targets)]
    with yolo11n.numba_calls.unoptimized_calls():
        step = pytensor.function([images, targets], loss, updates=updates, mode=mode)
        return [float(step(*values)) for _ in range(6)], state.values()


@pytest.mark.compiled
@pytest.mark.parametrize("make", [one_block, every_block])
def test_blocks_learn_alike_in_mode_onnx_and_in_numba(yolo11n, make):
    losses, weights = trained(yolo11n, make, "ONNX")
    expected_losses, expected_weights = trained(yolo11n, make, "NUMBA")
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    # Each of the six steps rounds to float32 and starts from the rounded weights before it.
    for name, expected in expected_weights.items():
        np.testing.assert_allclose(weights[name], expected, rtol=3e-4, atol=1e-4, err_msg=name)
