"""How long the first value of a PyMC model takes, compilation included, with no model cached."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import Table

ROUNDS = 8


def make_model(parametrisation: str):
    """Return the model of the eight schools."""
    import numpy as np
    import pymc as pm

    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        if parametrisation == "centred":
            theta = pm.Normal("theta", mu, tau, shape=8)
        else:
            theta = mu + tau * pm.Normal("theta_tilde", 0.0, 1.0, shape=8)
        pm.Normal("effect", theta, errors, observed=effects)
    return model


def child(mode: str, parametrisation: str) -> None:
    """Print the seconds from a model to its first log density and gradient, and the values."""
    import numpy as np

    if mode == "ONNX":
        import pytensor_onnx  # noqa: F401

    model = make_model(parametrisation)
    wall, processor = time.perf_counter(), time.process_time()
    function = model.logp_dlogp_function(mode=mode, ravel_inputs=True)
    function.set_extra_values({})
    logp, gradient = function(np.full(10, 0.3))
    print(time.perf_counter() - wall, time.process_time() - processor, logp, *gradient)


def run_child(mode: str, parametrisation: str, installed: Path) -> list[float]:
    """Run `child` in a new process, which finds the caches of a first import and no others."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = shutil.copytree(installed / "compiled", Path(folder) / "compiled")
        environment = {
            **os.environ,
            "PYTENSOR_FLAGS": f"base_compiledir={compiled}",
            "NUMBA_CACHE_DIR": folder,
            "PYTHONPYCACHEPREFIX": str(installed / "bytecode"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.first_result", mode, parametrisation],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    return [float(number) for number in output.splitlines()[-1].split()]


def keep_c_module(installed: Path) -> None:
    """Compile the C module of PyTensor's virtual machine, which no model changes."""
    environment = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={installed / 'compiled'}"}
    code = "import pytensor.link.c.lazylinker_c"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def measure() -> Table:
    """Time first results in both modes by turns; the least of several rounds counts."""
    table = Table(
        "First result of a PyMC model",
        ["eight schools", "ONNX, s", "NUMBA, s", "ratio", "ratio of processor time"],
        note="Log density and gradient by `model.logp_dlogp_function`: compilation and the first "
        "call, each in a fresh process with empty caches of compiled models. Two caches of any "
        "first import are in place: Python's bytecode, and the C module of PyTensor's own virtual "
        "machine, with which PyMC finds the initial point in both modes. Loading Numba or ONNX "
        "Runtime counts.",
    )
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder)
        (installed / "compiled").mkdir()
        keep_c_module(installed)
        for parametrisation in ("centred", "non-centred"):
            runs = {mode: [] for mode in ("ONNX", "NUMBA")}
            for mode in runs:
                run_child(mode, parametrisation, installed)
            for _ in range(ROUNDS):
                for mode, results in runs.items():
                    results.append(run_child(mode, parametrisation, installed))
            # PyTensor keeps some constants of NUMBA's graph in float32.
            for found, expected in zip(runs["ONNX"][0][2:], runs["NUMBA"][0][2:], strict=True):
                assert abs(found - expected) <= 1e-8 * max(1.0, abs(expected)), parametrisation
            wall = {mode: min(r[0] for r in results) for mode, results in runs.items()}
            processor = {mode: min(r[1] for r in results) for mode, results in runs.items()}
            ratio = wall["ONNX"] / wall["NUMBA"]
            table.rows.append(
                [
                    parametrisation,
                    f"{wall['ONNX']:.2f}",
                    f"{wall['NUMBA']:.2f}",
                    f"{ratio:.2f}",
                    f"{processor['ONNX'] / processor['NUMBA']:.2f}",
                ]
            )
            table.claim(f"{parametrisation}, mode ONNX against mode NUMBA", ratio, 0.25)
    return table


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*sys.argv[1:])
    else:
        measure().show()
