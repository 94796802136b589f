"""Serve the ONNX file in this folder with MLServer: each column is a tensor."""

import asyncio
import json
from pathlib import Path

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse, RequestInput, ResponseOutput

from pytensor_onnx_scoring import Scorer

FOLDER = Path(__file__).parent


class Model(MLModel):
    """The file as a model of MLServer."""

    async def load(self) -> bool:
        """Open the file."""
        options = json.loads((FOLDER / "scorer.json").read_text("utf-8"))
        self.scorer = Scorer(FOLDER / "model.onnx", **options)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Return the columns of the result; a request that does not fit the file is an error 400.

        Raises
        ------
        InferenceError
            With all that does not fit.
        """
        try:
            columns = {x.name: self.column(x) for x in payload.inputs}
            # Requests run side by side, as the runtime leaves Python while it computes.
            result = await asyncio.to_thread(self.scorer, columns)
        except ValueError as error:
            raise InferenceError(str(error)) from error
        outputs = [encoded(name, values) for name, values in result.items()]
        return InferenceResponse(model_name=self.name, outputs=outputs)

    def column(self, tensor: RequestInput) -> np.ndarray:
        """Return a tensor as a column; MLServer's clients send columns with a second axis of 1."""
        if tensor.datatype == "BYTES":
            return np.array(StringCodec.decode_input(tensor), object).reshape(-1)
        values = NumpyCodec.decode_input(tensor)
        dtype = self.scorer.input_columns.get(tensor.name)
        single = dtype is not None and not dtype.shape and values.shape[1:] == (1,)
        return values[:, 0] if single else values


def encoded(name: str, values: np.ndarray) -> ResponseOutput:
    """Return a column as a tensor."""
    if values.dtype.kind == "O":
        return StringCodec.encode_output(name, values.tolist())
    return NumpyCodec.encode_output(name, values)
