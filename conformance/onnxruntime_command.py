"""A command for ``run.py``: ONNX Runtime in Python.

python run.py python onnxruntime_command.py
"""

import sys
from pathlib import Path

import onnx
import onnxruntime


def main(model: str, inputs: str, outputs: str) -> None:
    """Run a model on the inputs of a folder, and write the outputs to another."""
    session = onnxruntime.InferenceSession(model)
    feed = {
        x.name: onnx.numpy_helper.to_array(onnx.load_tensor(str(Path(inputs, f"input_{i}.pb"))))
        for i, x in enumerate(session.get_inputs())
    }
    for i, array in enumerate(session.run(None, feed)):
        tensor = onnx.numpy_helper.from_array(array)
        Path(outputs, f"output_{i}.pb").write_bytes(tensor.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
