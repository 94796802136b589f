"""Draws of all distributions from one seed, which are equal in every bit in all runtimes.

``python -m tests.functions.random.known_draws`` records them anew.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytensor.tensor as pt

from pytensor_onnx import export_onnx
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.random import state_of

RECORDED = Path(__file__).with_suffix(".json")
COUNT = 2_001
FLOATS = ("float64", "float32")
PARAMETERS: dict[str, tuple] = {
    "uniform": (-2.0, 3.1),
    "normal": (0.1, 2.3),
    "halfnormal": (0.1, 2.3),
    "lognormal": (0.5, 3.7),
    "exponential": (2.3,),
    "weibull": (0.3,),
    "pareto": (0.7, 3.1),
    "gumbel": (0.1, 2.3),
    "logistic": (0.1, 2.3),
    "laplace": (0.1, 2.3),
    "cauchy": (0.1, 2.3),
    "halfcauchy": (0.1, 2.3),
    "triangular": (-1.1, 0.5, 4.3),
    "wald": (1.5, 2.3),
    "truncexpon": (1.5, 2.1, 3.3),
    "bernoulli": (0.3,),
    "geometric": (0.003,),
    "categorical": ([0.1, 0.2, 0.3, 0.4],),
    "integers": (-3, 2**40),
    "permutation": (COUNT,),
    "gamma": (0.7, 2.3),
    "invgamma": (1.7, 2.3),
    "gengamma": (1.7, 0.8, 2.3),
    "beta": (0.3, 2.1),
    "t": (2.7, 0.1, 2.3),
    "poisson": (3.1,),
    "binomial": (70, 0.3),
    "negative_binomial": (2.3, 0.1),
    "betabinom": (1_000, 0.7, 2.1),
    "hypergeometric": (70, 90, 60),
    "vonmises": (0.3, 2.1),
    "dirichlet": ([0.3, 0.7, 2.1],),
    "multinomial": (20, [0.1, 0.2, 0.3, 0.4]),
}
SIZELESS = {"permutation"}
WHOLE = {"integers", "permutation"}
COUNTS = {"bernoulli", "geometric", "categorical"}
COUNTS |= {"poisson", "binomial", "negative_binomial", "betabinom"}
COUNTS |= {"hypergeometric", "multinomial"}
WITH_DTYPE = PARAMETERS.keys() - COUNTS - WHOLE


@cache
def drawing(dtype: str) -> tuple[ONNXProgram, dict[str, np.ndarray]]:
    """Export the draws of all distributions; return the program and its inputs.

    Parameters are inputs, so that nothing is computed before the run.
    """
    first = rng = pt.random.rng("rng")
    symbols, draws = [], []
    inputs = {"rng": state_of(1)}
    for name, parameters in PARAMETERS.items():
        values = [np.asarray(x, "int64" if name in WHOLE else dtype) for x in parameters]
        given = [
            pt.tensor(f"{name}_{i}", dtype=x.dtype, shape=x.shape) for i, x in enumerate(values)
        ]
        symbols += given
        inputs |= {x.name: value for x, value in zip(given, values, strict=True)}
        settings = {} if name in SIZELESS else {"size": COUNT}
        settings |= {"dtype": dtype} if name in WITH_DTYPE else {}
        if name == "gamma":
            given, settings["scale"] = given[:1], given[1]
        rng, x = getattr(rng, name)(*given, **settings)
        x.name = name
        draws.append(x)
    return export_onnx([first, *symbols], draws, verify=False), inputs


def digests(draws: dict[str, np.ndarray]) -> dict[str, list[str]]:
    """Return the first three draws of each distribution, and a hash of the bits of all."""
    return {
        name: [*map(str, x[:3].tolist()), hashlib.sha256(x.tobytes()).hexdigest()[:16]]
        for name, x in draws.items()
    }


def draw_natively(dtype: str) -> dict[str, np.ndarray]:
    """Draw in the installed ONNX Runtime."""
    program, inputs = drawing(dtype)
    return dict(zip(PARAMETERS, program(*inputs.values()), strict=True))


def known() -> dict[str, dict[str, list[str]]]:
    """Return the recorded draws by dtype and distribution."""
    return json.loads(RECORDED.read_text())


if __name__ == "__main__":
    found = {dtype: digests(draw_natively(dtype)) for dtype in FLOATS}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
