"""The ONNX file as a model of MLflow, which takes and returns DataFrames."""

import json
from pathlib import Path

import mlflow
import pandas
from mlflow.exceptions import MlflowException

from pytensor_onnx_scoring import Scorer


class Model(mlflow.pyfunc.PythonModel):
    """A scorer of the file."""

    def load_context(self, context: mlflow.pyfunc.PythonModelContext) -> None:
        """Open the file."""
        folder = Path(context.artifacts["scorer"])
        options = json.loads((folder / "scorer.json").read_text("utf-8"))
        self.scorer = Scorer(folder / "model.onnx", **options)

    def predict(
        self, context: mlflow.pyfunc.PythonModelContext, model_input: pandas.DataFrame
    ) -> pandas.DataFrame:
        """Return the columns of the result; a table that does not fit the file is an error 400.

        Raises
        ------
        MlflowException
            With all that does not fit.
        """
        try:
            return self.scorer(model_input)
        except ValueError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error


mlflow.models.set_model(Model())
