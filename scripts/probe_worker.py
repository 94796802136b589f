"""Run probe requests from a file in the installed onnxruntime and print one answer a line."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort


def main(requests: str, start: int) -> None:
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    print(ort.__version__)
    for line in Path(requests).read_text().splitlines()[start:]:
        print(json.dumps(failure(json.loads(line), options)), flush=True)


def failure(request: dict, options: ort.SessionOptions) -> str:
    """Run one request and say why it failed, or nothing."""
    inputs = {
        name: np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
        for name, (dtype, shape, data) in request["inputs"].items()
    }
    try:
        model = base64.b64decode(request["model"])
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        results = session.run(None, inputs)
    except Exception as error:
        return str(error).strip().splitlines()[0] or "failed"
    for output, result in zip(session.get_outputs(), results, strict=True):
        if isinstance(result, np.ndarray) and output.type != _type(result):
            return f"{output.name} is {_type(result)} where {output.type} is declared"
    return ""


def _type(array: np.ndarray) -> str:
    name = {"float32": "float", "float64": "double"}.get(array.dtype.name, array.dtype.name)
    return f"tensor({name})"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
