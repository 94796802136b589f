"""Measure the special functions in ONNX Runtime: ``python scripts/measure_accuracy.py``.

Prints the table of errors by function, region and dtype as markdown, and writes it to
``docs/accuracy.md``. The regions are those of the tests, with many more points.
"""

import argparse
import sys
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.functions.special.accuracy import (  # noqa: E402
    DTYPES,
    compile_definition,
    errors_in_ulp,
    samples,
)
from tests.functions.special.regions import CASES  # noqa: E402

TARGET = ROOT / "docs/accuracy.md"
INTRODUCTION = """# Accuracy of the special functions

ONNX lacks some elementary and special functions, ONNX Runtime lacks others in float64, and some
that it has are inaccurate. Those are computed by functions that pytensor-onnx adds to the model,
written in terms of `Add`, `Mul`, `Div`, `Exp`, `Log`, `Pow` and the like. The table gives their
errors in units in the last place (ulp) of the exact result, which is computed by mpmath with 140
bits. A correctly rounded result is off by at most 0.5 ulp.

- All errors are below 4 ulp, subnormal arguments and results included, but for tangents of float64
  arguments beyond 2^20, which may be off by 5 ulp: there the reduction of the argument is left to
  the runtime's operators `Sin` and `Cos`.
- In float32, `Sin`, `Cos` and `Tan` are the operators of the runtime.
- Infinities, NaN, and arguments outside the domain give what NumPy gives. Odd functions, `Expm1`
  and `Log1p` keep the sign of zero.
- `Exp2` and `Log2` are exact at powers of 2, `Log10` at powers of 10.
- ONNX Runtime's own `Exp` and `Log` differ in the last bit between the body of a vector loop and
  its remainder, so that results may too.

Written by `scripts/measure_accuracy.py`: {size} random points for each row and dtype, ONNX Runtime
{version}, x86-64. Cells read largest error / mean error.

| function | region | float64 | float32 |
|---|---|---|---|
"""


def table(size: int) -> str:
    rows = []
    for name, case in CASES.items():
        for region in case.regions:
            cells = []
            for dtype in DTYPES:
                if dtype not in region.dtypes:
                    cells.append("")
                    continue
                points, exact = samples(name, region, size, dtype)
                errors = errors_in_ulp(compile_definition(name, dtype)(*points), exact)
                cells.append(f"{errors.max():.3g} / {errors.mean():.2g}")
            rows.append(f"| {name} | {region.label} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000, help="points for each row and dtype")
    size = parser.parse_args().size
    text = INTRODUCTION.format(size=size, version=onnxruntime.__version__) + table(size)
    print(text)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
