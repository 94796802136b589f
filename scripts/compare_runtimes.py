"""Compare the special functions in native ONNX Runtime and in WebAssembly, run by node.

    python scripts/compare_runtimes.py NODE_MODULES [FUNCTION ...]

Prints a markdown table by function and dtype, over the regions of the tests: the largest difference
in ulp, and the share of unequal results. A function is exported once for each dtype, and the same
file runs in both.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import mpmath as mp
import numpy as np
import onnxruntime
import pytensor.tensor as pt
from pytensor.scalar.basic import upgrade_to_float
from pytensor.tensor.elemwise import Elemwise
from web_runtime import run_in_web

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pytensor_onnx import export_onnx  # noqa: E402
from tests.functions.special.accuracy import DTYPES, cases  # noqa: E402
from tests.operations.regions import Region  # noqa: E402


def exported(name: str, dtype: str) -> bytes:
    """Return the file of a function of vectors named x0, x1, ..., whose result is y."""
    case = cases()[name]
    arguments = [pt.vector(f"x{i}", dtype=dtype) for i in range(case.arguments)]
    result = Elemwise(case.op_type(upgrade_to_float, name=name.lower()))(*arguments)
    result.name = "y"
    return export_onnx(arguments, result, verify=False).proto.SerializeToString()


def differences(
    native: np.ndarray, web: np.ndarray, region: Region, points: list[np.ndarray]
) -> np.ndarray:
    """Return differences in ulp of the value, or of the scale of the function near a root."""
    size = np.abs(native)
    if region.scale is not None:
        rows = ([mp.mpf(float(x)) for x in row] for row in zip(*points, strict=True))
        size = np.maximum(size, np.array([region.scale(*row) for row in rows], native.dtype))
    with np.errstate(invalid="ignore"):
        found = np.abs(native.astype("float64") - web) / np.spacing(size)
    equal = (native == web) | (np.isnan(native) & np.isnan(web))
    found[equal] = 0
    return np.where(np.isnan(found), np.inf, found)


def compare(names: Iterable[str], node_modules: str, size: int) -> tuple[str, list[tuple]]:
    """Return the version of the web runtime and the rows: function, region, dtype, differences."""
    asked, runs, native = [], [], []
    for name in names:
        for dtype in DTYPES:
            model = exported(name, dtype)
            session = onnxruntime.InferenceSession(model)
            for region in cases()[name].regions:
                if dtype in region.dtypes:
                    points = region.points(size, dtype)
                    inputs = {f"x{i}": x for i, x in enumerate(points)}
                    asked.append((name, region, dtype, points))
                    runs.append((model, inputs))
                    native.append(session.run(None, inputs)[0])
    version, web = run_in_web(node_modules, runs)
    rows = [
        (name, region.label, dtype, differences(a, b["y"], region, points))
        for (name, region, dtype, points), a, b in zip(asked, native, web, strict=True)
    ]
    return version, rows


def print_regions(rows: list[tuple]) -> None:
    """Print a row for each region and dtype."""
    print("| function | region | dtype | largest, ulp | unequal |")
    print("|---|---|---|---:|---:|")
    for name, region, dtype, found in rows:
        print(f"| {name} | {region} | {dtype} | {found.max():.3g} | {np.mean(found > 0):.1%} |")


def print_functions(rows: list[tuple]) -> None:
    """Print a row for each function."""
    print(f"| function | {' | '.join(DTYPES)} |")
    print(f"|---|{'---|' * len(DTYPES)}")
    for name in dict.fromkeys(name for name, *_ in rows):
        cells = []
        for dtype in DTYPES:
            of_all = [found for *key, found in rows if (key[0], key[2]) == (name, dtype)]
            found = np.concatenate(of_all or [np.zeros(1)])
            cells.append(
                f"{found.max():.3g} / {np.mean(found > 0):.1%}" if found.any() else "equal"
            )
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("node_modules", help="directory that has onnxruntime-web")
    parser.add_argument("names", nargs="*", help="functions to compare (default: all)")
    parser.add_argument("--size", type=int, default=2_000, help="points of each region")
    parser.add_argument("--regions", action="store_true", help="print a row for each region")
    arguments = parser.parse_args()
    version, rows = compare(arguments.names or cases(), arguments.node_modules, arguments.size)
    print(f"ONNX Runtime {onnxruntime.__version__} and onnxruntime-web {version}\n")
    (print_regions if arguments.regions else print_functions)(rows)


if __name__ == "__main__":
    main()
