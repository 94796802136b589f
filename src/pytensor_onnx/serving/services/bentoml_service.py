"""Serve the ONNX file in this folder with BentoML: columns as lists, from JSON to JSON."""

import json
from pathlib import Path
from typing import Any

import bentoml

from pytensor_onnx_scoring import Scorer

FOLDER = Path(__file__).parent


@bentoml.service
class Model:
    """The file as a service of BentoML."""

    def __init__(self) -> None:
        options = json.loads((FOLDER / "scorer.json").read_text("utf-8"))
        self.scorer = Scorer(FOLDER / "model.onnx", **options)

    @bentoml.api
    def predict(self, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return the columns of the result; columns that do not fit the file are an error 400.

        Raises
        ------
        InvalidArgument
            With all that does not fit.
        """
        try:
            result = self.scorer(columns)
        except ValueError as error:
            raise bentoml.exceptions.InvalidArgument(str(error)) from error
        return {name: values.tolist() for name, values in result.items()}
