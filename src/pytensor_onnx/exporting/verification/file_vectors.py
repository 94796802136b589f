"""Test vectors in the metadata of a file: inputs, and PyTensor's results for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.exporting.verification.array_differences import disagreement

METADATA = "test_vectors"
"""Entry of the metadata: JSON whose arrays are messages `TensorProto` in base64."""


@dataclass(frozen=True)
class Vectors:
    """Inputs of a model, and PyTensor's results for them.

    Attributes
    ----------
    inputs, outputs
        Arrays by name, of inputs with a default too.
    slack
        For outputs that are ill-conditioned there, the difference that is allowed beyond the
        tolerance of the dtype.
    """

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    slack: Mapping[str, float] = field(default_factory=dict)

    def to_text(self) -> str:
        """Return the text for the metadata.

        Examples
        --------
        >>> vectors = Vectors({"x": np.arange(2.0)}, {"y": np.arange(2.0)})
        >>> Vectors.of_text(vectors.to_text()).inputs["x"]
        array([0., 1.])
        """
        stored = {"inputs": _encoded(self.inputs), "outputs": _encoded(self.outputs)}
        return json.dumps({**stored, "slack": dict(self.slack)})

    @classmethod
    def of_text(cls, text: str) -> Vectors:
        """Read the text of `to_text`.

        Raises
        ------
        PyTensorONNXError
            If it is another text.
        """
        try:
            stored = json.loads(text)
            slack = {str(name): float(value) for name, value in stored["slack"].items()}
            return cls(_decoded(stored["inputs"]), _decoded(stored["outputs"]), slack)
        # Each library that reads a part raises errors of its own.
        except Exception as error:
            raise PyTensorONNXError(f"its test vectors cannot be read: {error!r}") from error

    def problems(self, results: Mapping[str, np.ndarray]) -> list[str]:
        """Describe the results that differ from the stored results beyond rounding.

        Examples
        --------
        >>> Vectors({}, {"y": np.array([1.0])}).problems({"y": np.array([1.5])})
        ["output 'y' differs from PyTensor: largest difference 0.5 (found 1.5, expected ...)"]
        """
        found = []
        for name, expected in self.outputs.items():
            if name not in results:
                found.append(f"there is no output {name!r}")
            elif text := disagreement(results[name], expected, self.slack.get(name, 0.0)):
                found.append(f"output {name!r} differs from PyTensor: {text}")
        return found


def _encoded(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    from onnx import numpy_helper

    messages = {name: numpy_helper.from_array(array) for name, array in arrays.items()}
    return {k: base64.b64encode(v.SerializeToString()).decode() for k, v in messages.items()}


def _decoded(texts: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from onnx import TensorProto, numpy_helper

    return {
        str(name): numpy_helper.to_array(
            TensorProto.FromString(base64.b64decode(text, validate=True))
        )
        for name, text in texts.items()
    }
