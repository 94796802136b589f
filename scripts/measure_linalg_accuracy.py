"""Measure linear algebra beside LAPACK: ``python scripts/measure_linalg_accuracy.py``.

Prints the table of backward errors by factorisation, class of matrices and size as markdown, and
writes it to ``docs/reference/linear-algebra-accuracy.md``. The rows are those of the tests.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import scipy.linalg
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.functions.linalg.accuracy import MEASURED, SHOWN, SIZES  # noqa: E402
from tests.functions.linalg.measured import Measured  # noqa: E402

TARGET = ROOT / "docs/reference/linear-algebra-accuracy.md"
INTRODUCTION = """# Accuracy of linear algebra

Backward errors in float64, in units of 2.2e-16, ours / LAPACK's: the Frobenius norm of
`A - L @ L.T` and the like relative to that of `A`, that of `A @ x - b` relative to those of `A` and
`x`, or the loss of orthogonality, `Q.T @ Q - I`, if that is larger. NumPy and SciPy call LAPACK.
Eigenvalues without vectors, determinants and exponentials have no residual: their error is that
beside long double precision, relative to the norm, the determinant or its logarithm.

Our errors are at most ten times LAPACK's, or ten units where LAPACK is exact by chance, for all
rows and the sizes {sizes}; those of Eig are at most one unit for each row
where LAPACK is exact by chance. Rows without 300 × 300 stop at 100. Matrices are made by
`tests/functions/linalg/matrices.py` and its neighbours; a new row is one more entry of the lists in
`tests/functions/linalg/accuracy.py` and its neighbours.

Written by `scripts/measure_linalg_accuracy.py`: ONNX Runtime {version}, x86-64.

| | matrices | {shown} |
|---|---|{rule}|
"""


def row_of(measured: Measured, name: str) -> str:
    """Measure a factorisation for a class of matrices; the sizes that are not shown are checked."""
    cells = []
    for n in SIZES:
        if n > measured.largest:
            cells.append("")
            continue
        ours, lapacks = measured.measure(name, n)
        if not ours <= measured.bound(lapacks, n):
            raise SystemExit(f"{measured.name}, {name}, {n}: {ours:.3g} beside {lapacks:.3g}")
        if n in SHOWN:
            cells.append(" / ".join(f"{x / np.finfo(float).eps:.2g}" for x in (ours, lapacks)))
    return f"| {measured.name} | {name} | {' | '.join(cells)} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    # SciPy warns of ill-conditioned matrices.
    warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
    text = INTRODUCTION.format(
        sizes=f"{', '.join(map(str, SIZES[:-1]))} and {SIZES[-1]}",
        version=onnxruntime.__version__,
        shown=" | ".join(f"{n} × {n}" for n in SHOWN),
        rule="|".join(["---:"] * len(SHOWN)),
    )
    with threadpool_limits(1):
        for measured in MEASURED:
            for name in measured.classes:
                row = row_of(measured, name)
                print(row, flush=True)
                text += f"{row}\n"
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
