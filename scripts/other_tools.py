"""Networks of the web demos exported by this package and by torch, for scripts/measure_web.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt

from pytensor_onnx import export_onnx
from pytensor_onnx.pymc.posterior import highest_density_interval, mean

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "export_by_torch.py"
DRAWS, SIZE, POINTS = 500, 256, 60

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A network in a file of this package, and what torch needs to make the same.

    Attributes
    ----------
    file
        The file.
    feeds
        Inputs of the file.
    numbers
        Layers of the network of `export_by_torch.py`.
    given
        Inputs of the file of torch, in order.
    is_equal
        Whether the first results are equal; otherwise the weights are others.
    """

    file: Path
    feeds: Arrays
    numbers: Arrays
    given: list[np.ndarray]
    is_equal: bool = True


def pairs(
    python: str, site: Path, folder: Path, load: Callable[[str], ModuleType]
) -> dict[str, tuple[Path, Arrays]]:
    """Return files and feeds by name, those of torch after ours.

    Parameters
    ----------
    python
        A Python with torch, onnx and onnxscript.
    site, load
        The demos, and a function that returns the module of one.
    folder
        Folder for the files.
    """
    rows = {}
    for name, make in CASES.items():
        case = make(site, folder, load)
        theirs = exported_by_torch(python, name, case.numbers, folder)
        names = [x.name for x in onnxruntime.InferenceSession(theirs).get_inputs()]
        feeds = dict(zip(names, case.given, strict=True))
        if case.is_equal:
            runs = ((case.file, case.feeds), (theirs, feeds))
            found, expected = (onnxruntime.InferenceSession(f).run(None, x)[0] for f, x in runs)
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
        rows[LABELS[name]] = (case.file, case.feeds)
        rows[f"{LABELS[name]}, by torch"] = (theirs, feeds)
    return rows


def exported_by_torch(python: str, name: str, numbers: Arrays, folder: Path) -> Path:
    """Return the file that torch writes."""
    np.savez(folder / f"{name}.npz", **numbers)
    command = [python, str(SCRIPT), name, str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / f"{name}.onnx"


def digits(site: Path, folder: Path, load: Callable[[str], ModuleType]) -> Case:
    """Return the network of the demo, with its weights."""
    file = site / "digits" / "model.onnx"
    stored = {x.name: onnx.numpy_helper.to_array(x) for x in onnx.load(file).graph.initializer}
    names = {"first": "hidden_W", "first_bias": "hidden_b", "last": "logits_W"}
    numbers = {key: stored[name] for key, name in (names | {"last_bias": "logits_b"}).items()}
    pixels = np.random.default_rng(0).random((1, 64), dtype="float32")
    return Case(file, {"pixels": pixels}, numbers, [pixels])


def regression(site: Path, folder: Path, load: Callable[[str], ModuleType]) -> Case:
    """Return the mean yields for all draws of a posterior, without the draws of new fields."""
    rng = np.random.default_rng(0)
    centres = {"level": 6, "gain": 1, "start": 0.4, "scale": 80}
    numbers = {n: rng.normal(x, x / 20, DRAWS).astype("float32") for n, x in centres.items()}
    nitrogen = pt.vector("nitrogen", dtype="float32")
    rain = pt.scalar("rain", dtype="float32")
    level, gain, start, scale = (x[:, None] for x in numbers.values())
    share = 1 - (1 - start) * pt.exp(-nitrogen / scale)
    means = (level + gain * (rain - 500) / 100) * share
    summaries = {"mean": mean(means), "interval": highest_density_interval(means)}
    file = folder / "regression_ours.onnx"
    export_onnx([nitrogen, rain], summaries, file, target="web")
    feeds = {"nitrogen": np.linspace(0, 200, 50, dtype="float32"), "rain": np.float32(400)}
    feeds = {name: np.asarray(x) for name, x in feeds.items()}
    return Case(file, feeds, numbers, list(feeds.values()))


def training(site: Path, folder: Path, load: Callable[[str], ModuleType]) -> Case:
    """Return the step of training for a known number of points, as torch traces it."""
    demo = load("training")
    file, state_path = folder / "training_ours.onnx", folder / "state.npz"
    program = demo.export_step(file, state_path, n_points=POINTS)
    # The loss is compared, which torch returns first.
    assert program.model.graph.outputs[0].name == "loss"
    state = dict(np.load(state_path))
    data, rate = demo.points(POINTS).astype("float32"), np.array(0.005, "float32")
    weights = {f"{x}{i}": state[f"{x}{i}"] for i in (1, 2, 3) for x in ("weights", "bias")}
    moments = [np.zeros_like(w) for w in weights.values()] * 2
    given = [data, rate, np.array(0, "float32"), *weights.values(), *moments]
    return Case(
        file, {"data": data, "learning_rate": rate, **state}, {"data": data, **weights}, given
    )


def yolo11n(site: Path, folder: Path, load: Callable[[str], ModuleType]) -> Case:
    """Return the network with decoded boxes, without their selection."""
    load("yolo11n")
    from export import export

    file = folder / "yolo11n_ours.onnx"
    export(file, size=(SIZE, SIZE), verify=False)
    images = np.random.default_rng(0).random((1, 3, SIZE, SIZE), dtype="float32")
    return Case(file, {"images": images}, {"size": np.array(SIZE)}, [images], is_equal=False)


CASES = {"digits": digits, "regression": regression, "training": training, "yolo11n": yolo11n}
LABELS = {
    "digits": "digits",
    "regression": "regression without draws",
    "training": "training of 60 points",
    "yolo11n": "yolo11n without selection",
}
