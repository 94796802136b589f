"""Write the density of a model to a file for other languages."""

import sys
from pathlib import Path

import numpy as np
import pymc as pm

from pytensor_onnx import ONNXProgram
from pytensor_onnx.pymc import export_logp

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools() -> pm.Model:
    """Return the model of eight schools, not centred."""
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        effects = pm.Data("effects", EFFECTS, dims="school")
        errors = pm.Data("errors", ERRORS, dims="school")
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta = pm.Deterministic("theta", mu + tau * pm.Normal("z", dims="school"), dims="school")
        pm.Normal("effect", theta, errors, observed=effects, dims="school")
    return model


def export(path: str | Path, target: str) -> ONNXProgram:
    """Write log-density, gradient and the variables of the model for a target."""
    outputs = ["logp", "dlogp", "mu", "tau"]
    return export_logp(eight_schools(), path, outputs=outputs, target=target)


if __name__ == "__main__":
    print(export("eight_schools.onnx", target=sys.argv[1]).report())
