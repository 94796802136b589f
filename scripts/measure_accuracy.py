"""Measure the special functions in ONNX Runtime: ``python scripts/measure_accuracy.py``.

Prints the table of errors by function, region and dtype as markdown, and writes it to
``docs/reference/accuracy.md``. The regions are those of the tests, with many more points.
"""

import argparse
import sys
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.functions.special.accuracy import (  # noqa: E402
    DTYPES,
    cases,
    compile_definition,
    errors_of,
)

TARGET = ROOT / "docs/reference/accuracy.md"
INTRODUCTION = """# Accuracy of the special functions

ONNX lacks some elementary and special functions, ONNX Runtime lacks others in float64, and some
that it has are inaccurate. Those are computed by functions that pytensor-onnx adds to the model,
written in terms of `Add`, `Mul`, `Div`, `Exp`, `Log`, `Pow` and the like. The table gives their
errors in units in the last place (ulp) of the exact result, which is computed by mpmath with 140
bits. A correctly rounded result is off by at most 0.5 ulp. Where `J0`, `J1` and `Jv` oscillate,
their errors are those in the last place of their amplitude, about `sqrt(2 / (pi x))`.

- All errors of functions of one argument are below 4 ulp, subnormal arguments and results included,
  with one exception in float64. Tangents of arguments beyond 2^20 may be off by 5 ulp: there the
  reduction of the argument is left to the runtime's operators `Sin` and `Cos`.
- The gamma family is computed in float64, whatever the dtype of its arguments. Its errors between
  the poles on the negative axis are those in the last place of `log(gamma(1-x))` and `psi(1-x)`:
  next to the roots, where those cancel, the errors of both are on average less than half of
  SciPy's.
- `Owens_t`, `Ive`, `Kve`, `iv` and `kv` are computed in float64, whatever the dtype of their
  arguments. They are within 1e-13 (450 ulp) of the exact value, with the first derivatives of `iv`
  and `kv` by the argument, unless `Ive` or `iv` of a negative order is next to a root,
  where SciPy's errors are 20 times as large. So is `Jv`, beside its amplitude, for orders up to
  500; for larger ones its errors are smaller than SciPy's.
- `BetaInc`, `BetaIncInv` and the derivatives of `BetaInc` are computed in float64 as well, within
  1e-13 for parameters up to 1e8.
- `gamma` and `psi` of [complex numbers](../understanding/complex.md) are computed in float64 too.
  Their errors are relative to the absolute value. Those of `gamma` are below 2e-14 for
  `|z| < 10`, below 1e-13 for `|z| < 50`, and
  below `5e-16 |z log(z)|` beyond, as SciPy's; those of `psi` are below 1e-14 of the
  value or of 1, whichever is larger.
- `Hyp2F1` is computed in float64 too, within 1e-13 or ten times SciPy's error but for
  [a few points](../project/limits.md) of 10,000 far below zero. Its largest errors are next to
  roots.
- In float32, `Sin`, `Cos` and `Tan` are the operators of the runtime.
- Infinities, NaN, and arguments outside the domain give what NumPy gives. Odd functions, `Expm1`
  and `Log1p` keep the sign of zero.
- `PortableLog`, `PortableExp` and the like serve random draws
  ([Random numbers](../understanding/random.md)): their results are equal in every bit in all
  runtimes.
- `Exp2` and `Log2` are exact at powers of 2, `Log10` at powers of 10.
- ONNX Runtime's own `Exp` and `Log` differ in the last bit between the body of a vector loop and
  its remainder, so that results of some functions may too. Natively and in WebAssembly the same
  file gives results within 4 ulp of each other, equal ones for most functions. In float64,
  `Sigmoid`, `Tanh`, `Sin`, `Cos`, `Tan`, `Owens_t` of a scalar and 3 in 100,000 results of
  `GammaLn` may differ by more than 1 ulp; in float32, operators of the
  runtime ([Notes](../../benchmarks/NOTES.md#special-functions-natively-and-in-webassembly)).

Written by `scripts/measure_accuracy.py`: at least {size} random points for each row and dtype, ONNX
Runtime {version}, x86-64. Cells read largest error / mean error. SciPy's errors stand beside those
of the functions that it has and NumPy has not; it computes float32 in float64.

| function | region | float64 | float32 | SciPy, float64 | SciPy, float32 |
|---|---|---|---|---|---|
"""


def rows_of(name: str, size: int) -> list[str]:
    """Measure a function, and the one of SciPy."""
    case = cases()[name]
    rows = []
    for region in case.regions:
        cells = []
        for reference in (False, True):
            for dtype in DTYPES:
                run = case.scipy if reference else compile_definition(name, dtype)
                if dtype not in region.dtypes or run is None:
                    cells.append("")
                    continue
                errors = errors_of(name, region, size, dtype, run)
                cells.append(f"{errors.max():.3g} / {errors.mean():.2g}")
        rows.append(f"| {name} | {region.label} | {' | '.join(cells)} |")
    return rows


def rows_before() -> dict[str, list[str]]:
    """Return the rows of the table as it is, by function."""
    found: dict[str, list[str]] = {}
    for line in TARGET.read_text().splitlines() if TARGET.exists() else []:
        if line.startswith("| "):
            found.setdefault(line.split("|")[1].strip(), []).append(line)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions to measure again (default: all)")
    parser.add_argument("--size", type=int, default=2_000, help="points for each row and dtype")
    arguments = parser.parse_args()
    names, size, before = arguments.names or list(cases()), arguments.size, rows_before()
    text = INTRODUCTION.format(size=size, version=onnxruntime.__version__)
    for name in cases():
        rows = rows_of(name, size) if name in names else before.get(name, [])
        print("\n".join(rows), flush=True)
        text += "".join(f"{row}\n" for row in rows)
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
