"""How near approximations of posteriordb's posteriors are to reference draws.

``python -m benchmarks.approximations [--checkout FOLDER] [POSTERIOR ...]`` takes one of each kind
of model without names.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wasserstein_distance

from benchmarks.methods import METHODS
from benchmarks.posteriors import Posterior, cloned, numbers_of, posteriors
from benchmarks.timing import Table

COMPARED = (
    *("pathfinder_file", "pathfinder_extras", "laplace_file", "laplace_extras"),
    *("advi_file", "full_rank_file", "full_rank_pymc"),
)
CHOSEN = (
    *("eight_schools-eight_schools_noncentered", "arK-arK", "kilpisjarvi_mod-kilpisjarvi"),
    *("mesquite-logmesquite", "garch-garch11", "eight_schools-eight_schools_centered"),
    *("earnings-logearn_interaction", "sblrc-blr", "gp_pois_regr-gp_pois_regr"),
    *("low_dim_gauss_mix-low_dim_gauss_mix", "nes1972-nes", "hmm_example-hmm_example"),
)
"""One posterior of each kind of model that has reference draws, few coordinates and few data."""
SECONDS = 60
"""Processor time of a method, after which it ends."""
DRAWS_OF_REFERENCE = 2000


def distances(
    draws: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]
) -> tuple[float, float]:
    """Return the mean 1-Wasserstein distance, and the Kullback-Leibler divergence of normal fits.

    The former is of each number, in standard deviations of the reference. The latter is that of
    the normal distribution with the moments of the reference from the one with those of the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> reference = {"x": rng.normal(size=(2, 5000))}
    >>> wasserstein, divergence = distances({"x": 1 + rng.normal(size=(1, 5000))}, reference)
    >>> round(wasserstein, 1), round(divergence, 1)
    (1.0, 0.5)
    """
    known = [name for name in reference if name in draws]
    ours, theirs = (np.stack([np.ravel(x[name]) for name in known]) for x in (draws, reference))
    if not np.isfinite(ours).all():
        return np.inf, np.inf
    scale = theirs.std(axis=1)
    rows = zip(ours, theirs, scale, strict=True)
    wasserstein = np.mean([wasserstein_distance(x, y) / sd for x, y, sd in rows])
    shift = (ours.mean(axis=1) - theirs.mean(axis=1)) / scale
    first, second = (np.atleast_2d(np.cov(x / scale[:, None])) for x in (theirs, ours))
    if np.linalg.matrix_rank(second) < len(known):
        return float(wasserstein), np.inf
    ratio = np.linalg.solve(second, first)
    log_volume = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    squares = np.trace(ratio) + shift @ np.linalg.solve(second, shift) - len(known)
    return float(wasserstein), float(0.5 * (squares + log_volume))


def results_of(posterior: Posterior) -> Iterator[dict[str, Any]]:
    """Yield the distances of each method."""
    names = {str(v.name) for v in posterior.build().free_RVs}
    whole = {k: x for k, x in posterior.reference.items() if k.split("[")[0] in names}
    reference = {k: np.ravel(x)[:: max(1, x.size // DRAWS_OF_REFERENCE)] for k, x in whole.items()}
    signal.signal(signal.SIGPROF, _stop)
    for method in COMPARED:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            draws, _ = METHODS[method](posterior.build())()
        except Exception as error:  # a method that fails is a result
            yield {"method": method, "error": f"{type(error).__name__}: {error}"[:200]}
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        wasserstein, divergence = distances(numbers_of(draws), reference)
        yield {"method": method, "wasserstein": wasserstein, "divergence": divergence}


def _stop(number: int, frame: object) -> None:
    raise TimeoutError(f"{SECONDS} s of the processor")


def run_child(name: str, checkout: Path) -> list[dict[str, Any]]:
    """Return the results of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.approximations", "--child"]
    arguments = [*command, "--checkout", str(checkout), name]
    # A method that ends the process leaves the results of those before it.
    told = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False).stdout
    return [json.loads(line) for line in told.splitlines() if line.startswith('{"method"')]


def measure(names: list[str] | None = None, checkout: Path | None = None) -> Table:
    """Compare all methods on each posterior."""
    checkout = checkout or cloned()
    table = Table(
        "Approximations beside reference draws",
        ["posterior", *COMPARED],
        note="1-Wasserstein distance of each number from reference draws of posteriordb, in "
        "standard deviations of these, mean over the numbers; in parentheses the "
        "Kullback-Leibler divergence of normal distributions with the moments of both. 1,000 "
        "draws of each method, of 4 paths in Pathfinder, 10,000 steps of full_rank_pymc, the "
        "default. Draws of the posterior itself have distances of about 0.03, and one number with "
        "a heavy tail, such as a scale of groups, may have nearly all of a distance. A method with "
        "inf returned draws that are not finite, and an empty place is that of a method that "
        "failed, or did not end within a minute of the processor. The last row has the medians.",
    )
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names or CHOSEN:
        found[name] = {result["method"]: result for result in run_child(name, checkout)}
        table.rows.append([name, *(_shown(found[name].get(method, {})) for method in COMPARED)])
        print(*table.rows[-1], sep=" | ", flush=True)
    medians = {
        (method, key): np.median(
            [x[method][key] for x in found.values() if key in x.get(method, {})]
        )
        for method in COMPARED
        for key in ("wasserstein", "divergence")
    }
    pairs = [_pair(medians[m, "wasserstein"], medians[m, "divergence"]) for m in COMPARED]
    table.rows.append(["median", *pairs])
    for method in ("pathfinder", "laplace"):
        ours, other = (medians[f"{method}_{kind}", "wasserstein"] for kind in ("file", "extras"))
        table.claim(f"{method}, median distance beside that of pymc-extras", ours / other, 1.05)
    return table


def _shown(result: Mapping[str, Any]) -> str:
    return _pair(result["wasserstein"], result["divergence"]) if "wasserstein" in result else ""


def _pair(wasserstein: float, divergence: float) -> str:
    of_moments = f"{divergence:.2f}" if divergence < 100 else f"{divergence:.0e}"
    return f"{wasserstein:.2f} ({of_moments})"


def main() -> None:
    """Measure the posteriors of the arguments, or print the results of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--checkout", type=Path, help="folder; cloned unless given")
    parser.add_argument("--child", action="store_true", help="print the results of one as JSON")
    given = parser.parse_args()
    if not given.child:
        measure(given.names, given.checkout).show()
        return
    for result in results_of(posteriors(given.checkout)[given.names[0]]):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
