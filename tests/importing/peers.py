"""Run ONNX's node tests in other importers and runtimes, with the checks of node_tests.py.

uv run --all-extras --group runtimes --with torch,onnx2torch,jaxonnxruntime \\
    python -m tests.importing.peers [PEER ...] [--every 3] [--page]

A peer that ends its process fails at the test. Tests that fail are run again with the inputs of
integers and the scales as constants of the model, which importers of static graphs need.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from pytensor_onnx.importing.registry.narrow_types import NARROW
from tests.importing.node_tests import _array, _difference, node_tests
from tests.page_parts import write_part
from tests.runtimes.runtime_calls import RUNTIMES

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"
_SECONDS = 900

type Arrays = Mapping[str, np.ndarray]


def _onnx2torch(model: onnx.ModelProto, feed: Arrays) -> list[np.ndarray]:
    import onnx2torch
    import torch

    with torch.no_grad():
        results = onnx2torch.convert(model)(*map(torch.from_numpy, feed.values()))
    return [x.numpy() for x in (results if isinstance(results, list | tuple) else [results])]


def _jaxonnxruntime(model: onnx.ModelProto, feed: Arrays) -> list[np.ndarray]:
    import jax
    from jaxonnxruntime import config
    from jaxonnxruntime.backend import Backend

    jax.config.update("jax_enable_x64", True)
    config.update("jaxort_only_allow_initializers_as_static_args", False)
    return [np.asarray(x) for x in Backend.prepare(model).run(dict(feed))]


def _by_file(name: str) -> Callable[[onnx.ModelProto, Arrays], list[np.ndarray]]:
    def run(model: onnx.ModelProto, feed: Arrays) -> list[np.ndarray]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model, path)
            return RUNTIMES[name](str(path), feed, [v.name for v in model.graph.output])

    return run


PEERS: dict[str, tuple[str, str, Callable[[onnx.ModelProto, Arrays], list[np.ndarray]]]] = {
    "onnx": ("ONNX's evaluator", "runs operators in NumPy", _by_file("onnx")),
    "onnxruntime": ("ONNX Runtime", "runtime", _by_file("onnxruntime")),
    "openvino": ("OpenVINO", "runtime", _by_file("openvino")),
    "tract": ("tract", "runtime", _by_file("tract")),
    "onnx2torch": ("onnx2torch", "imports to PyTorch", _onnx2torch),
    "jaxonnxruntime": ("jaxonnxruntime", "imports to JAX", _jaxonnxruntime),
}


def tests_of_numbers() -> list[Any]:
    """Return the node tests of standard operators on arrays of dtypes that NumPy has."""
    return [case for case in node_tests() if _is_of_numbers(case.model)]


def _is_of_numbers(model: onnx.ModelProto) -> bool:
    values = [*model.graph.input, *model.graph.output]
    others = any(n.domain.startswith("ai.onnx.") for n in model.graph.node)
    if others or any(n.op_type.startswith("Opt") for n in model.graph.node):
        return False
    if {v.type.WhichOneof("value") for v in values} - {"tensor_type"}:
        return False
    dtypes = {ir.DataType(v.type.tensor_type.elem_type) for v in values}
    return not dtypes & {*NARROW, ir.DataType.STRING}


def judge(peer: str, case: Any) -> str:
    """Return how a peer passes a test: as it is, with constants, or not."""
    run = PEERS[peer][2]
    names = [v.name for v in case.model.graph.input]
    for kind in ("right", "constants"):
        for inputs, outputs in case.data_sets:
            feed = dict(zip(names, map(_array, inputs), strict=False))
            model = case.model
            if kind == "constants":
                model, feed = _with_constants(model, feed)
            try:
                found = run(model, feed)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                break
            expected = list(map(_array, outputs))
            if len(found) != len(expected) or any(map(_difference, found, expected, [case] * 99)):
                break
        else:
            return kind
    return "fails"


def _with_constants(model: onnx.ModelProto, feed: Arrays) -> tuple[onnx.ModelProto, Arrays]:
    """Turn the inputs of integers, and scales, into constants."""
    fixed = {n for n, a in feed.items() if a.dtype.kind in "iub" or n in ("scales", "roi")}
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    kept = [v for v in copy.graph.input if v.name not in fixed]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    for name in fixed:
        copy.graph.initializer.append(onnx.numpy_helper.from_array(feed[name], name))
    return copy, {name: a for name, a in feed.items() if name not in fixed}


def verdicts(peer: str, every: int) -> list[str]:
    """Return the verdicts on tests, from processes of their own."""
    count = len(tests_of_numbers()[::every])
    found: list[str] = []
    while len(found) < count:
        place = ["--from", str(len(found)), "--every", str(every)]
        command = [sys.executable, "-m", "tests.importing.peers", peer, *place]
        try:
            out = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_SECONDS
            ).stdout
        except subprocess.TimeoutExpired as error:
            out = (error.stdout or b"").decode()
        lines = [line[1:] for line in out.splitlines() if line.startswith("=")]
        found += lines if len(found) + len(lines) == count else [*lines, "fails"]
    return found


def main() -> None:
    """Print the numbers of peers, or write their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", default=list(PEERS), help=", ".join(PEERS))
    parser.add_argument("--every", type=int, default=1, help="take each n-th test")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    parser.add_argument("--from", type=int, default=None, dest="first", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.first is not None:
        for case in tests_of_numbers()[:: options.every][options.first :]:
            print("=" + judge(options.peers[0], case), flush=True)
        return
    lines = [
        "| on the node tests of numbers | | equal, all inputs variables | equal, values given |",
        "|---|---|---|---|",
    ]
    for peer in options.peers:
        found = verdicts(peer, options.every)
        as_it_is, given = found.count("right"), found.count("right") + found.count("constants")
        name, kind, _ = PEERS[peer]
        lines.append(f"| {name} {version(peer)} | {kind} | {as_it_is:,} | {given:,} |")
        print(lines[-1], f"of {len(found)}", flush=True)
    if options.page:
        write_part(PAGE, "peers", "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
