"""Servers that load the folders of `pytensor-onnx serve-config`, asked over HTTP.

Each needs its package: `uv run --all-extras --with mlserver pytest tests/serving -m sweep`, and the
same with bentoml and mlflow.
"""

import importlib
import json
import math
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytensor_onnx.serving.folders import write_serving_folder
from tests.serving.running_servers import free_port, running

pytestmark = pytest.mark.sweep


def post(url: str, body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=30))


def refusal(url: str, body: Any) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(url, body)
    return raised.value.code, raised.value.read().decode()


def check_concurrently(served, ask) -> None:
    """Compare the answers to requests of several sizes at once with the program's results."""
    tables = [served.table(rows) for rows in (1, 2, 5, 100) * 4]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, tables))
    for table, result in zip(tables, found, strict=True):
        for name, values in served.expected(table).items():
            np.testing.assert_array_equal(np.ravel(result[name]), values)


def written(served, server: str, tmp_path: Path) -> Path:
    pytest.importorskip(server)
    folder = tmp_path / "folder"
    write_serving_folder(served.path, server, folder, {"scale": served.scale})
    return folder


def test_bentoml(served, tmp_path):
    folder, port = written(served, "bentoml", tmp_path), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        "-m",
        "bentoml",
        "serve",
        "service:Model",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    variables = {"BENTOML_HOME": tmp_path / "home", "BENTOML_DO_NOT_TRACK": "True"}
    with running(command, folder, f"{url}/readyz", **variables):
        check_concurrently(served, lambda table: post(f"{url}/predict", {"columns": table}))
        example = json.loads((folder / "example.json").read_text())
        assert len(post(f"{url}/predict", example)["volume"]) == 2
        # JSON has neither NaN nor infinities.
        odd = {"width": [1e308, math.nan], "height": [9, 1], "depth": [1, 1], "count": [1, 1]}
        assert post(f"{url}/predict", {"columns": odd})["volume"] == [None, None]
        code, text = refusal(f"{url}/predict", {"columns": {"width": [1.0]}})
        assert code == 400
        assert "height" in text
        assert "count" in text


def test_mlserver(served, tmp_path):
    folder, (http, grpc, metrics) = (
        written(served, "mlserver", tmp_path),
        (free_port() for _ in "abc"),
    )
    url = f"http://127.0.0.1:{http}/v2/models/volumes"
    ports = {"HTTP_PORT": http, "GRPC_PORT": grpc, "METRICS_PORT": metrics, "HOST": "127.0.0.1"}
    variables = {f"MLSERVER_{name}": value for name, value in ports.items()}

    def ask(table: dict[str, list]) -> dict[str, list]:
        found = post(f"{url}/infer", {"inputs": tensors(table)})
        return {tensor["name"]: tensor["data"] for tensor in found["outputs"]}

    with running(
        ["-c", "from mlserver.cli import main; main()", "start", "."],
        folder,
        f"{url}/ready",
        **variables,
    ):
        check_concurrently(served, ask)
        described = json.load(urllib.request.urlopen(url))
        assert [x["name"] for x in described["inputs"]] == [*served.table(1)]
        columns = tensors(served.table(2))
        # JSON has neither NaN nor infinities; MLServer reads null as NaN.
        odd = {"width": [1e308, None], "height": [9, 1], "depth": [1, 1], "count": [1, 1]}
        assert ask(odd)["volume"] == [None, None]
        code, text = refusal(f"{url}/infer", {"inputs": columns[1:]})
        assert code == 400
        assert columns[0]["name"] in text


def tensors(table: dict[str, list]) -> list[dict]:
    """Return columns as tensors: integers as such, others as float64."""
    return [
        {
            "name": name,
            "shape": [len(values), 1],
            "datatype": "INT64" if name == "count" else "FP64",
            "data": values,
        }
        for name, values in table.items()
    ]


def test_mlflow(served, tmp_path, monkeypatch):
    folder, port = written(served, "mlflow", tmp_path), free_port()
    mlflow, pandas = importlib.import_module("mlflow"), pytest.importorskip("pandas")
    variables = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/runs.db"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    logged = subprocess.run(
        [sys.executable, "log_model.py"], cwd=folder, check=True, capture_output=True, text=True
    )
    address = logged.stdout.split()[-1]

    model = mlflow.pyfunc.load_model(address)
    table = served.table(7)
    frame = model.predict(pandas.DataFrame(table))
    for name, values in served.expected(table).items():
        np.testing.assert_array_equal(frame[name], values)
    assert model.metadata.get_input_schema().input_names() == [*table]
    assert mlflow.models.Model.load(address).load_input_example(address).shape == (2, len(table))

    url = f"http://127.0.0.1:{port}"
    command = ["-m", "mlflow", "models", "serve", "-m", address, "--env-manager", "local"]

    def ask(table: dict[str, list]) -> dict[str, list]:
        records = post(f"{url}/invocations", {"dataframe_split": split(table)})["predictions"]
        return {name: [record[name] for record in records] for name in records[0]}

    with running([*command, "-p", str(port)], folder, f"{url}/ping", **variables):
        check_concurrently(served, ask)
        code, text = refusal(f"{url}/invocations", {"dataframe_split": split({"width": [1.0]})})
        assert code == 400
        assert "height" in text


def split(table: dict[str, list]) -> dict[str, list]:
    rows = [list(row) for row in zip(*table.values(), strict=True)]
    return {"columns": [*table], "data": rows}
