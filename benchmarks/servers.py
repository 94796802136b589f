"""Measure requests of one row to MLServer and BentoML, from four clients on the same machine.

uv run --all-extras --with mlserver python -m benchmarks.servers mlserver FOLDER

The folder is one of `python examples/scale/make_rows.py FOLDER`.
"""

import argparse
import http.client
import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from pytensor_onnx.serving.folders import write_serving_folder
from tests.serving.running_servers import free_port, running

ROW = {f"x{i}": [0.1] for i in range(32)}
TENSORS = [{"name": k, "shape": [1, 1], "datatype": "FP64", "data": v} for k, v in ROW.items()]
PORTS = ("HTTP_PORT", "GRPC_PORT", "METRICS_PORT")


def measure(server: str, model: Path, seconds: float = 5.0) -> np.ndarray:
    """Return the seconds of all requests that were answered."""
    ports = [free_port() for _ in PORTS]
    address = f"127.0.0.1:{ports[0]}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "folder"
        write_serving_folder(model, server, folder)
        if server == "mlserver":
            command = ["-c", "from mlserver.cli import main; main()", "start", "."]
            ready, path, body = (
                "v2/models/model/ready",
                "v2/models/model/infer",
                {"inputs": TENSORS},
            )
        else:
            command = ["-m", "bentoml", "serve", "service:Model", "--port", str(ports[0])]
            ready, path, body = "readyz", "predict", {"columns": ROW}
        variables = {f"MLSERVER_{k}": port for k, port in zip(PORTS, ports, strict=True)}
        variables |= {"MLSERVER_HOST": "127.0.0.1", "BENTOML_HOME": temporary}
        with running(command, folder, f"http://{address}/{ready}", **variables):
            _ask(address, f"/{path}", json.dumps(body), time.monotonic() + 1, [])
            times: list[float] = []
            end = time.monotonic() + seconds
            arguments = (address, f"/{path}", json.dumps(body), end, times)
            clients = [threading.Thread(target=_ask, args=arguments) for _ in range(4)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
    return np.array(times)


def _ask(address: str, path: str, body: str, end: float, times: list[float]) -> None:
    connection = http.client.HTTPConnection(address)
    while time.monotonic() < end:
        started = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"status {answer.status}")
        times.append(time.perf_counter() - started)


def main() -> None:
    """Print requests a second, and the median and the percentile 99 of their times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", choices=["mlserver", "bentoml"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    times = measure(arguments.server, arguments.folder / "model.onnx")
    median, p99 = 1e3 * np.percentile(times, [50, 99])
    print(f"{len(times) / 5:.0f} requests a second, {median:.1f} ms, 99 %: {p99:.1f} ms")


if __name__ == "__main__":
    main()
