"""Log the ONNX file in this folder as a model of MLflow: python log_model.py."""

import json
from pathlib import Path

import mlflow
import pandas

from pytensor_onnx_scoring import Scorer

FOLDER = Path(__file__).parent
SCORER = FOLDER / "scorer"


def log_model(name: str = "model") -> str:
    """Log the model with its signature and an example; return its address."""
    options = json.loads((SCORER / "scorer.json").read_text("utf-8"))
    scorer = Scorer(SCORER / "model.onnx", **options)
    columns = json.loads((FOLDER / "example.json").read_text("utf-8"))
    dtypes = {k: v for k, v in scorer.input_columns.items() if not v.shape}
    example = pandas.DataFrame(columns).astype(dtypes)
    logged = mlflow.pyfunc.log_model(
        name=name,
        python_model=str(FOLDER / "model.py"),
        artifacts={"scorer": str(SCORER)},
        signature=mlflow.models.infer_signature(example, scorer(example)),
        input_example=example,
        pip_requirements=["pytensor-onnx", "mlflow", "pandas"],
    )
    return logged.model_uri


if __name__ == "__main__":
    print(log_model())
