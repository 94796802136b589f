"""Fit the expansion of the Pólya-Gamma density: ``python scripts/fit_polya_gamma.py``.

Writes ``src/pytensor_onnx/functions/random/polya_gamma_coefficients.py``. The density over its
saddle-point approximation is ``1 + c_1(q) / h + c_2(q) / h**2 + ...`` for the shape h and
``q = c**2 + 2 s`` at the saddle point s. With the series ``log cosh sqrt(q + e) = sum l_m e**m``
it is an integral of ``exp(-h l_2 y**2 (1 + ...))``, whose terms are the coefficients of powers of
the series in brackets (O. Perron; F. W. J. Olver, Asymptotics and Special Functions, 1974, chapter
3.8). The fit of ``c_j`` has the weight ``h**-j`` of the smallest h at which q occurs.
"""

from pathlib import Path

import mpmath as mp
import numpy as np

from pytensor_onnx.functions.random.polya_gamma import PARTS

mp.mp.dps = 50

TARGET = "src/pytensor_onnx/functions/random/polya_gamma_coefficients.py"
HEADER = '''"""Coefficients of the expansion of the Pólya-Gamma density, lowest power first.

Written by ``scripts/fit_polya_gamma.py``; change them there.
"""

from typing import Final

# c_1, ..., c_5 in (20 / (20 + q) - {middle!r}) / {radius!r} for q from {low} to {high}:
# the largest error of the density is {error:.1e}.
EXPANSION: Final = (
'''
TERMS, SHIFT, LOW, HIGH = 5, 20, -1.95, 120.0


def expansion(q: mp.mpf) -> list[float]:
    """Return c_1, c_2, ... at a point."""
    logs = _logarithm(_cosine(q, 2 * TERMS + 2))
    # In units of the width: the factor of the square is one.
    width = 1 / mp.sqrt(-2 * logs[2])
    series = [2 * logs[m] * (mp.mpc(0, 1) * width) ** m for m in range(2, 2 * TERMS + 3)]
    return [
        (2**j * mp.rf(mp.mpf(1) / 2, j) * _power(series, -j - mp.mpf(1) / 2)[2 * j]).real
        for j in range(1, TERMS + 1)
    ]


def _cosine(q: mp.mpf, count: int) -> list[mp.mpf]:
    """Return the Taylor coefficients of cosh(sqrt(q)), an entire function."""
    terms = range(200)
    return [
        mp.fsum(mp.binomial(i, j) * q ** (i - j) / mp.factorial(2 * i) for i in terms if i >= j)
        for j in range(count + 1)
    ]


def _logarithm(a: list[mp.mpf]) -> list[mp.mpf]:
    """Return the coefficients of the logarithm of a series."""
    logs = [mp.log(a[0])]
    for n in range(1, len(a)):
        rest = mp.fsum(k * logs[k] * a[n - k] for k in range(1, n)) / n
        logs.append((a[n] - rest) / a[0])
    return logs


def _power(a: list[mp.mpc], exponent: mp.mpf) -> list[mp.mpc]:
    """Return the coefficients of a power of a series that starts with one (J. C. P. Miller)."""
    power = [mp.mpc(1)]
    for n in range(1, len(a)):
        terms = ((exponent * k - n + k) * a[k] * power[n - k] for k in range(1, n + 1))
        power.append(mp.fsum(terms) / n)
    return power


def smallest_shape(q: float) -> float:
    """Return the smallest shape whose proposals reach this q.

    A proposal has ``q + pi**2 / 4`` at most 3.87 times that of the tilt.
    """
    square = max((q + np.pi**2 / 4) / 3.87 - np.pi**2 / 4, 0.0)
    return PARTS / np.log2(1 + np.exp(-2 * np.sqrt(square)))


def main() -> None:
    """Write the module."""
    ends = [SHIFT / (SHIFT + q) for q in (HIGH, LOW)]
    middle, radius = round(sum(ends) / 2, 3), round((ends[1] - ends[0]) / 2 + 1e-3, 3)
    t = np.cos(np.pi * (np.arange(80) + 0.5) / 80)
    q = SHIFT / (middle + radius * t) - SHIFT
    values = np.array([expansion(mp.mpf(x)) for x in q], dtype="float64")
    h = np.array([smallest_shape(x) for x in q])
    columns, total = [], np.zeros(len(q))
    for j in range(TERMS):
        degree, error = 1, np.ones(1)
        while np.abs(error).max() > 2e-15:
            degree += 1
            powers = np.polynomial.chebyshev.chebvander(t, degree)
            weight = h ** -(j + 1.0)
            scaled = powers * weight[:, None]
            fitted = np.linalg.lstsq(scaled, values[:, j] * weight, rcond=None)[0]
            column = np.polynomial.chebyshev.cheb2poly(fitted)
            error = (np.polynomial.polynomial.polyval(t, column) - values[:, j]) * weight
        columns.append(column)
        total += np.abs(error)
    rows = np.zeros((max(map(len, columns)), TERMS))
    for j, column in enumerate(columns):
        rows[: len(column), j] = column
    error = total.max()
    header = HEADER.format(middle=middle, radius=radius, low=LOW, high=HIGH, error=error)
    lines = [f"    ({', '.join(f'{x:.17g}' for x in row)})," for row in rows]
    path = Path(__file__).parents[1] / TARGET
    path.write_text(header + "\n".join(lines) + "\n)\n")


if __name__ == "__main__":
    main()
