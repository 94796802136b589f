"""Print the SHA-256 of the results of nine models on several kinds of machines.

``uv run --all-extras python -m scripts.reproducible`` writes the table of
``docs/understanding/reproducible.md``. Kinds whose compiler or emulator this machine lacks keep no
column: arm64 and Windows take ziglang and Debian's packages ``qemu-user`` and ``wine``, WebAssembly
takes ziglang, Node and Chromium.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from playwright.sync_api import sync_playwright

from benchmarks.densities import counts, eight_schools, gaussian_process, radon
from benchmarks.sampled_models import kidscore
from pytensor_onnx import ONNXProgram
from pytensor_onnx.kernels.regions import region_of_all
from pytensor_onnx.pymc import export_logp, export_predictor, export_sampler
from tests.native.damaged_tapes import seed_of
from tests.native.machines import MACHINES, build, digest, run
from tests.page_parts import write_part
from tests.runtimes.portable_models import MODELS
from tests.web.pages import CHROMIUM
from tests.web.tapes import run_in_browser, run_in_node

PAGE = Path(__file__).parents[1] / "docs" / "understanding" / "reproducible.md"
Feed = dict[str, Any]
Made = tuple[ONNXProgram, Feed]


def density(build: Callable) -> Made:
    """Return the log-density and its gradient at a point."""
    program = export_logp(build(), verify=False, precision="float64")
    size = program.proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    return program, {"point": 0.3 * np.random.default_rng(0).normal(size=size)}


def sampler(build: Callable, chains: int, warmup: int, draws: int) -> Made:
    """Return a sampler with its warm-up."""
    program = export_sampler(build(), verify=False)
    numbers = {"warmup": np.array(warmup), "draws": np.array(draws)}
    return program, {"seed": np.arange(chains), **numbers}


def predictor() -> Made:
    """Return the predictions of a regression, with drawn noise, from 200 posterior draws."""
    rng = np.random.default_rng(1)
    posterior = {
        "b": rng.normal([26, 6, 0.5, 0], [1, 1, 0.01, 0.01], size=(1, 200, 4)),
        "sigma": rng.uniform(17, 19, size=(1, 200)),
    }
    program = export_predictor(kidscore(), posterior, verify=False, precision="float64", seed=0)
    return program, {state.name: state.value for state in program.conversion.states}


def portable(name: str) -> Made:
    """Return a small model of the tests of runtimes."""
    model = MODELS[name]()
    program = model.export("web")
    names = [str(value.name) for value in program.inputs]
    feed = dict(zip(names, program.conversion.arrays(list(model.values)), strict=True))
    return program, feed | {state.name: state.value for state in program.conversion.states}


NINE: dict[str, Callable[[], Made]] = {
    "density and gradient: eight schools": lambda: density(eight_schools),
    "density and gradient: radon, 919 rows": lambda: density(radon),
    "density and gradient: Gaussian process": lambda: density(gaussian_process),
    "density and gradient: negative binomial": lambda: density(counts),
    "predictor of a regression, with noise": predictor,
    "transformer, float32": lambda: portable("transformer"),
    "training step": lambda: portable("training step"),
    "sampler: eight schools, 500 + 500 draws": lambda: sampler(eight_schools, 2, 500, 500),
    "sampler: regression of 434 rows, 300 + 300": lambda: sampler(kidscore, 2, 300, 300),
}


def of_tape(run: Callable, program: ONNXProgram, feed: Feed) -> dict[str, np.ndarray]:
    """Return the outputs of a model's tape in WebAssembly."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(program.proto, file)
        [found] = run(file, Path(folder), feed)
    assert not isinstance(found, str), found
    return found


@contextmanager
def chromium() -> Iterator[Callable]:
    """Yield a function that runs tapes in Chromium."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield partial(run_in_browser, browser)
        browser.close()


def table_of(digests: Mapping[str, list[str]]) -> str:
    """Return the table of the page: a row for each model, with a column for each kind."""
    lines = [f"| model | {' | '.join(digests)} |", "|---|" + "---|" * len(digests)]
    for i, name in enumerate(NINE):
        lines.append(f"| {name} | {' | '.join(f'`{x[i][:12]}`' for x in digests.values())} |")
    equal = sum(len({x[i] for x in digests.values()}) == 1 for i in range(len(NINE)))
    count = f"The first 12 digits of the SHA-256 of all outputs: {equal} of {len(NINE)} models have"
    return "\n".join(
        [*lines, "", f"{count} the same bits on all {len(digests)} kinds of machines.", ""]
    )


def main() -> None:
    """Run all models on the kinds of machines that are here, and write the page."""
    made = {name: make() for name, make in NINE.items()}
    found = [seed_of(name, program.proto, feed) for name, (program, feed) in made.items()]
    seeds = [seed for seed in found if seed is not None]
    assert len(seeds) == len(made), "no tape is the whole of a model"
    order = [region_of_all(program.proto)[1].output for program, _ in made.values()]
    digests = {}
    for machine in MACHINES:
        if not machine.is_here:
            print(f"{machine.name}: {machine.compiler[0]} or {machine.emulator} is missing")
            continue
        with tempfile.TemporaryDirectory() as folder:
            results = run(machine, build(machine, Path(folder)), seeds)
        digests[machine.name] = [digest(x) for x in results]
        print(machine.name, *digests[machine.name], sep="\n", flush=True)
    engines: dict[str, AbstractContextManager[Callable]] = {}
    engines["WebAssembly, Node"] = nullcontext(run_in_node)
    if CHROMIUM:
        engines["WebAssembly, Chromium"] = chromium()
    for name, engine in engines.items():
        with engine as run_tapes:
            results = [of_tape(run_tapes, program, feed) for program, feed in made.values()]
        digests[name] = [digest([x[y] for y in z]) for x, z in zip(results, order, strict=True)]
        print(name, *digests[name], sep="\n", flush=True)
    write_part(PAGE, "digests", table_of(digests))


if __name__ == "__main__":
    main()
