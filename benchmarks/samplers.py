"""An exported sampler beside PyMC's and nutpie's: the first draw, and effective draws a second.

Where nutpie lives in a folder of its own: ``PYTHONPATH=FOLDER python -m benchmarks.samplers``.
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np

from benchmarks.timing import Table

CHAINS, WARMUP, DRAWS = 4, 1000, 1000
SAMPLERS = ("ONNX", "PyMC", "nutpie")


def onnx_sampler(model):
    """Return a function of numbers of chains, warm-up steps and draws, made from a model."""
    import onnxruntime

    from pytensor_onnx.pymc import export_sampler

    names = [str(v.name) for v in model.free_RVs]
    program = export_sampler(model, variables=names, verify=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(program.proto.SerializeToString(), options)
    outputs = [*names, "n_steps"]

    def sample(chains, warmup, draws):
        inputs = {"seed": np.arange(chains), "warmup": np.array(warmup), "draws": np.array(draws)}
        inputs |= {str(v.name): v.get_value() for v in model.data_vars}
        results = dict(zip(outputs, session.run(outputs, inputs), strict=True))
        return results, results.pop("n_steps")

    return sample


def pymc_sampler(model):
    """Return the same of PyMC."""
    import pymc as pm

    def sample(chains, warmup, draws):
        with model:
            trace = pm.sample(
                draws=draws,
                tune=warmup,
                chains=chains,
                cores=1,
                nuts_sampler="pymc",
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
        return _values(trace, model), trace.sample_stats["n_steps"].values

    return sample


def nutpie_sampler(model):
    """Return the same of nutpie."""
    import nutpie

    compiled = nutpie.compile_pymc_model(model)

    def sample(chains, warmup, draws):
        trace = nutpie.sample(
            compiled,
            draws=draws,
            tune=warmup,
            chains=chains,
            cores=1,
            seed=1,
            progress_bar=False,
        )
        return _values(trace, model), trace.sample_stats["n_steps"].values

    return sample


def _values(trace, model):
    return {v.name: trace.posterior[v.name].values for v in model.free_RVs}


def child(sampler: str, name: str) -> None:
    """Print the seconds to the first draw, those of sampling, the effective draws and the steps."""
    from arviz_stats.base import array_stats

    from tests.pymc.posteriors import POSTERIORS

    model = POSTERIORS[name]()
    make = {"ONNX": onnx_sampler, "PyMC": pymc_sampler, "nutpie": nutpie_sampler}[sampler]
    start = processor_time()
    sample = make(model)
    sample(1, 1, 1)
    first = processor_time()
    draws, n_steps = sample(CHAINS, WARMUP, DRAWS)
    last = processor_time()
    effective = min(
        array_stats.ess(row)
        for values in draws.values()
        for row in np.moveaxis(values.reshape(CHAINS, DRAWS, -1), -1, 0)
    )
    print(first - start, last - first, effective, n_steps.mean())


def processor_time() -> float:
    """Return the seconds that this process and its compilers took."""
    return sum(os.times()[:4])


def run_child(sampler: str, name: str) -> list[float]:
    """Run `child` in a process of its own, with empty caches of compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTENSOR_FLAGS": f"base_compiledir={folder}",
            "NUMBA_CACHE_DIR": folder,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "benchmarks.samplers", sampler, name]
        output = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    return [float(number) for number in output.splitlines()[-1].split()]


def measure() -> Table:
    """Run each sampler on each model once."""
    from tests.pymc.posteriors import POSTERIORS

    samplers = [name for name in SAMPLERS if name != "nutpie" or find_spec("nutpie")]
    table = Table(
        "Samplers of PyMC models",
        ["model", "sampler", "first draw, s", "sampling, s", "effective draws a second", "steps"],
        note=f"NUTS with {CHAINS} chains of {WARMUP} warm-up steps and {DRAWS} draws on one core, "
        "those of the file in lockstep, in processor time. The first draw counts from the model in "
        "a fresh process with empty caches of compiled code, and includes loading libraries. The "
        "effective draws are those of the worst variable, for the time of sampling with its "
        "warm-up; steps are leapfrog steps of a draw.",
    )
    for name in POSTERIORS:
        firsts = {}
        for sampler in samplers:
            first, sampling, effective, steps = run_child(sampler, name)
            firsts[sampler] = first
            numbers = [f"{first:.1f}", f"{sampling:.1f}", f"{effective / sampling:.0f}"]
            table.rows.append([name.replace("_", " "), sampler, *numbers, f"{steps:.1f}"])
        others = min(seconds for sampler, seconds in firsts.items() if sampler != "ONNX")
        table.claim(f"{name}, first draw against the faster other", firsts["ONNX"] / others, 1.0)
    return table


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*sys.argv[1:])
    else:
        measure().show()
