"""Samplers of PyMC models as tapes in Node, beside the native library.

``python -m benchmarks.tapes [MODEL ...]`` takes all models without names. It needs Node, and the
module of WebAssembly, which a clone builds by ziglang.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pymc as pm

from benchmarks.sampled_models import SAMPLED
from benchmarks.timing import Table

CHAINS, WARMUP, DRAWS = 2, 500, 500
ROUNDS = 3
FILES = ("tape.js", "tape.wasm.gz", "model.tape")
SECONDS = 10
"""Seconds after which no further round starts."""

SCRIPT = """
import { writeFileSync } from "node:fs";
const [folder, chains, warmup, draws, rounds, seconds] = process.argv.slice(1);
const { load } = await import(`file://${folder}/tape.js`);
const began = performance.now();
const model = await load(`${folder}/model.tape`);
const loaded = performance.now() - began;
const number = (n) => ({ data: BigInt64Array.of(BigInt(n)), dims: [] });
const seed = { data: BigInt64Array.from({ length: chains }, (_, i) => BigInt(i)), dims: [+chains] };
const [times, processor] = [[], []];
const used = () => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;
let results;
const all = performance.now();
while (times.length < rounds && performance.now() - all < 1000 * seconds) {
  const [started, before] = [performance.now(), used()];
  results = await model.run({ seed, warmup: number(warmup), draws: number(draws) });
  times.push(performance.now() - started);
  processor.push(used() - before);
}
for (const [name, { data }] of Object.entries(results)) {
  writeFileSync(`${folder}/${name}.bin`, data);
}
const found = [loaded, times[0], Math.min(...times), Math.min(...processor)];
console.log(JSON.stringify(found.map((x) => x / 1000)));
"""


def in_node(folder: Path, chains: int, warmup: int, draws: int) -> list[float]:
    """Return the seconds of loading, of a first run, the least of several, and that of a processor.

    The folder then has the bytes of each output.
    """
    given = [str(folder), *map(str, (chains, warmup, draws, ROUNDS, SECONDS))]
    command = ["node", "--input-type=module", "-e", SCRIPT, *given]
    return json.loads(subprocess.check_output(command, text=True))


def natively(model: Path, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the least seconds of several runs of the same tape in the native library."""
    from pytensor_onnx import native
    from pytensor_onnx.kernels.regions import fuse

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    native.register_with_regions(options)
    source = fuse(model.read_bytes(), every_size=True).model
    session = onnxruntime.InferenceSession(source, options)
    feed = {"seed": np.arange(CHAINS), "warmup": np.array(WARMUP), "draws": np.array(DRAWS)}
    return least(lambda: session.run(None, feed), clock)


def least(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the least seconds of several calls, or of fewer if they are long."""
    times: list[float] = []
    while len(times) < ROUNDS and sum(times) < SECONDS:
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def write_sampler(model: pm.Model, folder: Path) -> float:
    """Write a model's sampler as ``model.onnx`` and as a tape, and return the tape's kB."""
    from pytensor_onnx.pymc import export_sampler
    from pytensor_onnx.web.tape_file import write_tape

    variables = [str(v.name) for v in model.free_RVs]
    export_sampler(model, folder / "model.onnx", variables=variables, verify=False)
    write_tape(folder / "model.onnx", folder)
    return sum((folder / file).stat().st_size for file in FILES) / 1000


def measure(names: list[str] | None = None) -> Table:
    """Export each model's sampler, and run it in Node and natively."""
    table = Table(
        "Samplers of PyMC models as tapes",
        ["model", "files, kB", "load, s", "first run, s", "run, s", "native, s"],
        note=f"NUTS with {CHAINS} chains of {WARMUP} warm-up steps and {DRAWS} draws, "
        "in Node on one core: the files that a page loads for it, and the least of "
        f"{ROUNDS} runs beside the first one. Native is the same tape in the native library.",
    )
    for name in names or SAMPLED:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            size = write_sampler(SAMPLED[name](), folder)
            loaded, first, best, _ = in_node(folder, CHAINS, WARMUP, DRAWS)
            own = natively(folder / "model.onnx")
            numbers = [f"{size:.0f}", *(f"{x:.2f}" for x in (loaded, first, best, own))]
            table.rows.append([name, *numbers])
            if name == "eight_schools":
                _, chain, *_ = in_node(folder, 1, 300, 200)
                table.claim("eight_schools, a first chain of 300 and 200 steps, s", chain, 0.1)
            if name == "radon":
                table.claim("radon, s", best, 1.5)
    return table


if __name__ == "__main__":
    measure(sys.argv[1:]).show()
