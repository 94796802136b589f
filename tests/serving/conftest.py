"""A model of tables, with its program."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ONNXProgram, export_onnx

FEATURES = {"size": ["width", "height", "depth"], "range": ["low", "high"]}


@dataclass(frozen=True)
class Served:
    """A file that scores tables, its program, and a table with the right result."""

    path: Path
    program: ONNXProgram
    scale = 2.0

    def table(self, rows: int) -> dict[str, list]:
        rng = np.random.default_rng(rows)
        sizes = {name: rng.normal(size=rows).tolist() for name in FEATURES["size"]}
        return {**sizes, "count": rng.integers(1, 9, rows).tolist()}

    def expected(self, table: dict[str, list]) -> dict[str, np.ndarray]:
        size = np.stack([table[name] for name in FEATURES["size"]], axis=1)
        volume, low_high = self.program(size, table["count"], self.scale)
        return {"volume": volume, "low": low_high[:, 0], "high": low_high[:, 1]}


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Served:
    size, count, scale = pt.matrix("size", shape=(None, 3)), pt.lvector("count"), pt.scalar("scale")
    volume = size.prod(axis=1) * count * scale
    outputs = {"volume": volume, "range": pt.stack([size.min(axis=1), size.max(axis=1)], axis=1)}
    axes = {"size": {0: "row"}, "count": {0: "row"}}
    path = tmp_path_factory.mktemp("served") / "volumes.onnx"
    inputs = [size, count, scale]
    program = export_onnx(inputs, outputs, path, dynamic_axes=axes, feature_names=FEATURES)
    return Served(path, program)
