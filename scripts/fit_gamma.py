"""Fit the coefficients of the gamma family: ``python scripts/fit_gamma.py``.

Writes ``src/pytensor_onnx/functions/special/gamma_coefficients.py``, in the way and the form of
``scripts/fit_coefficients.py``: rational functions that agree with a function at Chebyshev nodes,
where ``c`` is given, of the variable ``(v - c) / (v + c)``, which draws them to the poles.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mpmath as mp
from fit_coefficients import angles, table, through

mp.mp.dps = 60

TARGET = Path(__file__).parents[1] / "src/pytensor_onnx/functions/special/gamma_coefficients.py"
HEADER = '''"""Coefficients of the gamma family, lowest power first, in float64.

Written by ``scripts/fit_gamma.py``; change them there. The comment above a table
names the function, the interval, and the largest relative error that the approximant causes, before
rounding, in the function computed from it.
"""

from typing import Final

from pytensor_onnx.functions.special.coefficients import Coefficients
'''
Function = Callable[[mp.mpf], mp.mpf]
ROOT = mp.findroot(mp.digamma, 1.4616)
NEGATIVE_ROOT = mp.findroot(mp.digamma, -0.504)
TINY = mp.mpf(10) ** -20
HALF = mp.mpf(1) / 2


@dataclass(frozen=True)
class Fit:
    """A function to approximate, its interval and the degrees.

    ``weight`` turns an error of the approximant into one of the result; ``scale`` is the ``c`` of
    the variable in which the nodes are chosen, None for the argument itself. With ``start`` the
    tables hold that number plus the argument times the approximant.
    """

    name: str
    says: str
    function: Function
    interval: tuple[float, float]
    degrees: tuple[int, int]
    weight: Function = field(default=lambda v: mp.mpf(1))
    scale: float | None = None
    start: mp.mpf | None = None

    def node(self, angle: mp.mpf) -> mp.mpf:
        """Point of the interval that belongs to an angle between 0 and pi."""
        low, high = map(mp.mpf, self.interval)
        if self.scale is None:
            return (low + high) / 2 - (high - low) / 2 * mp.cos(angle)
        c = mp.mpf(self.scale)
        low, high = (low - c) / (low + c), (high - c) / (high + c)
        t = (low + high) / 2 - (high - low) / 2 * mp.cos(angle)
        return c * (1 + t) / (1 - t)

    def coefficients(self) -> tuple[list[mp.mpf], list[mp.mpf]]:
        """Numerator and denominator that agree with the function at the nodes."""
        points = [self.node(angle) for angle in angles(sum(self.degrees) + 1)]
        return through(points, self.function, *self.degrees)

    def largest_error(self, top: list[mp.mpf], bottom: list[mp.mpf]) -> mp.mpf:
        """Largest error of the approximant, as it enters the result."""
        worst = mp.mpf(0)
        for i in range(401):
            v = self.node(mp.pi * i / mp.mpf(400))
            found = mp.polyval(top[::-1], v) / mp.polyval(bottom[::-1], v)
            worst = max(worst, abs(self.weight(v) * (found - self.function(v))))
        return worst


def relative(function: Function) -> Function:
    return lambda v: 1 / function(v)


def log_gamma_bow(z: mp.mpf) -> mp.mpf:
    for root, limit in ((0, mp.euler), (1, 1 - mp.euler)):
        if abs(z - root) < TINY:
            return limit
    return mp.loggamma(1 + z) / (z * (z - 1))


def log_gamma_tail(z: mp.mpf) -> mp.mpf:
    if z < TINY:
        return mp.mpf(1) / 12
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def scaled_gamma(s: mp.mpf) -> mp.mpf:
    y = 1 / s
    return mp.exp(mp.loggamma(y) - (y - mp.mpf(1) / 2) * mp.log(y) + y)


def gamma_excess(s: mp.mpf) -> mp.mpf:
    limit = mp.sqrt(2 * mp.pi / mp.e)
    return (scaled_gamma(s) / mp.sqrt(mp.e) - limit) / s if s > TINY else limit / 12


def gamma_bow(z: mp.mpf) -> mp.mpf:
    for root, limit in ((0, mp.euler), (1, 1 - mp.euler)):
        if abs(z - root) < TINY:
            return limit
    return (mp.gamma(1 + z) - 1) / (z * (z - 1))


def psi(d: mp.mpf) -> mp.mpf:
    return mp.psi(0, ROOT + d) / d if abs(d) > TINY else mp.psi(1, ROOT)


def negative_psi(x: mp.mpf) -> mp.mpf:
    for pole in (0, -1):
        if abs(x - pole) < TINY:
            return -1 / abs(x - NEGATIVE_ROOT)
    if abs(x - NEGATIVE_ROOT) < TINY:
        return mp.psi(1, NEGATIVE_ROOT) * NEGATIVE_ROOT * (1 + NEGATIVE_ROOT)
    return mp.psi(0, x) * x * (1 + x) / (x - NEGATIVE_ROOT)


def psi_tail(z: mp.mpf) -> mp.mpf:
    if z < TINY:
        return mp.mpf(1) / 12
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.psi(0, x)) / z


def trigamma(x: mp.mpf) -> mp.mpf:
    return mp.psi(1, x) * x * x - x - mp.mpf(1) / 2 if x > TINY else mp.mpf(1) / 2


def trigamma_tail(z: mp.mpf) -> mp.mpf:
    if z < TINY:
        return mp.mpf(1) / 6
    x = 1 / mp.sqrt(z)
    return (mp.psi(1, x) - 1 / x - z / 2) * x / z


def sine_pi(z: mp.mpf) -> mp.mpf:
    r = mp.sqrt(z)
    return (mp.sinpi(r) / (mp.pi * r) - 1) / z if z > TINY else -(mp.pi**2) / 6


def cotangent_pi(z: mp.mpf) -> mp.mpf:
    if z < TINY:
        return 4 - mp.pi**2 / 3
    if abs(z - mp.mpf(1) / 4) < TINY:
        return mp.pi**2 / 2 - 4
    r = mp.sqrt(z)
    return (mp.pi * r * mp.cot(mp.pi * r) / (1 - 4 * z) - 1) / z


def log_ratio(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z if z > TINY else mp.mpf(2) / 3


def temme_series(terms: int, size: int) -> list[list[mp.mpf]]:
    """Coefficients of the c_k of Temme's uniform expansion in powers of eta (DLMF 8.12.9-12).

    With ``mu`` as a power series in ``eta``, from ``mu mu' = eta (1 + mu)``, they follow from
    ``c_0 = 1/mu - 1/eta`` and ``c_k = c_{k-1}' / eta + g_k / mu``, where ``g_k`` cancels the pole.
    """
    size += 2 * terms + 2
    mu = [mp.mpf(0), mp.mpf(1)]
    for j in range(2, size + 2):
        rest = mu[j - 1] - sum(mu[i] * (j + 1 - i) * mu[j + 1 - i] for i in range(2, j))
        mu.append(rest / (j + 1))
    inverse = [mp.mpf(1)]  # of mu / eta
    for j in range(1, size + 1):
        inverse.append(-sum(mu[i + 1] * inverse[j - i] for i in range(1, j + 1)))
    c = [inverse[1:]]
    for _ in range(1, terms):
        last = c[-1]
        derived = [(n + 1) * last[n + 1] for n in range(len(last) - 1)]
        pole = derived[0]
        c.append([derived[n + 1] - pole * inverse[n + 1] for n in range(len(derived) - 2)])
    return c


def temme_tables() -> list[list[mp.mpf]]:
    """Return a polynomial in ``1/a`` and ``eta``, for ``a >= 20`` and ``|x/a - 1| <= 0.3``.

    The sum of the ``c_k / a**k`` is expanded in products of Chebyshev polynomials of both
    variables; products with a coefficient above 3e-18 are kept. Each power of ``1/a`` has a row of
    coefficients of powers of eta.
    """
    largest = mp.sqrt(2 * (-mp.mpf(3) / 10 - mp.log(1 - mp.mpf(3) / 10)))
    series = [c[25::-1] for c in temme_series(14, 30)]
    values = [
        [
            mp.polyval([mp.polyval(c, largest * v) for c in series[::-1]], (u + 1) / 40)
            for v in nodes(20)
        ]
        for u in nodes(14)
    ]
    terms = zip(
        *map(chebyshev_series, zip(*map(chebyshev_series, values), strict=True)), strict=True
    )
    rows: list[list[mp.mpf]] = [[mp.mpf(0)] * 20 for _ in range(14)]
    for p, row in enumerate(terms):
        for q, term in enumerate(row):
            if abs(term) > 3e-18:
                for i, left in enumerate(chebyshev_polynomial(p, 40, -1)):
                    for j, right in enumerate(chebyshev_polynomial(q, 1 / largest, 0)):
                        rows[i][j] += term * left * right
    counts = [max((j + 1 for j, c in enumerate(row) if c), default=0) for row in rows]
    return [row[:count] for row, count in zip(rows, counts, strict=True) if count]


def log_ratio_to_factorial(n: int, r: mp.mpf) -> mp.mpf:
    return (mp.loggamma(n + 1 + r) - mp.log(mp.factorial(n))) / r


def factorial_tables() -> list[list[mp.mpf]]:
    """Return the factorials of 4 to 22 and, by power, polynomials for the functions beside them.

    These are ``log(gamma(n+1+r) / n!) / r`` in ``r``, for ``|r| <= 1/8``, within 1e-17.
    """
    count = 8
    points = [v / 8 for v in nodes(count)]
    columns = []
    for n in range(4, 23):
        fitted, _ = through(points, lambda r, n=n: log_ratio_to_factorial(n, r), count - 1, 0)
        columns.append([mp.factorial(n), *fitted])
    return [list(row) for row in zip(*columns, strict=True)]


def nodes(count: int) -> list[mp.mpf]:
    return [mp.cos(angle) for angle in angles(count)]


def chebyshev_series(values: Sequence[mp.mpf]) -> list[mp.mpf]:
    """Return the coefficients of Chebyshev polynomials with these values at the nodes."""
    n = len(values)
    pairs = list(zip(angles(n), values, strict=True))
    sums = [sum(value * mp.cos(k * angle) for angle, value in pairs) for k in range(n)]
    return [total * (2 if k else 1) / n for k, total in enumerate(sums)]


def chebyshev_polynomial(degree: int, scale: mp.mpf, shift: mp.mpf) -> list[mp.mpf]:
    """Return the coefficients of a Chebyshev polynomial of ``scale * x + shift``."""
    before, last = [mp.mpf(0)], [mp.mpf(1)]
    for k in range(degree):
        factor = 2 if k else 1
        moved = [mp.mpf(0), *(factor * scale * c for c in last)]
        same = [*(factor * shift * c for c in last), mp.mpf(0)]
        less = [*before, *[mp.mpf(0)] * (len(moved) - len(before))]
        before, last = last, [m + c - b for m, c, b in zip(moved, same, less, strict=True)]
    return last


# Squares of the reciprocals of the arguments from which on asymptotic series serve.
EIGHTH = 1 / mp.mpf(64)
TWO_AND_A_HALF = 4 / mp.mpf(25)
FITS = [
    Fit(
        "LOG_GAMMA",
        "log(gamma(2+d)) / (d (d+1)) in d + 1/2, for -0.75 <= d <= 0.5",
        lambda v: log_gamma_bow(v + HALF),
        (-0.25, 1),
        (6, 6),
        lambda v: 1 / log_gamma_bow(v + HALF),
    ),
    Fit(
        "LOG_GAMMA_TAIL",
        "x (log(gamma(x)) - (x-1/2) log(x) + x - log(2 pi)/2) in 1/x^2, for x >= 2.5",
        log_gamma_tail,
        (0, TWO_AND_A_HALF),
        (5, 4),
        lambda z: mp.sqrt(z) / mp.loggamma(1 / mp.sqrt(z)) if z > TINY else mp.mpf(0),
    ),
    Fit(
        "LOG_GAMMA_BOW",
        "log(gamma(1+x)) / (x (x-1)) in x, for 0 <= x <= 1",
        log_gamma_bow,
        (0, 1),
        (6, 6),
        relative(log_gamma_bow),
        1,
    ),
    Fit(
        "GAMMA_EXCESS",
        "gamma(x) / (x/e)^(x-1/2) less the rounded sqrt(2 pi/e), in 1/x, for x >= 1",
        gamma_excess,
        (0, 1),
        (7, 8),
        lambda s: s * mp.sqrt(mp.e) / scaled_gamma(s) if s else mp.mpf(0),
        1,
        mp.sqrt(2 * mp.pi / mp.e) - mp.mpf(float(mp.sqrt(2 * mp.pi / mp.e))),
    ),
    Fit(
        "GAMMA_BOW",
        "(gamma(1+x) - 1) / (x (x-1)) in x, for 0 <= x <= 1",
        gamma_bow,
        (0, 1),
        (6, 6),
        lambda z: z * (1 - z) / mp.gamma(1 + z),
        1,
    ),
    Fit(
        "PSI",
        "psi(r+d) / d - 1 in d, for 1 <= r+d <= 2.5, r the root of psi",
        lambda d: psi(d) - 1,
        (1 - ROOT, 2.5 - ROOT),
        (6, 6),
        relative(psi),
    ),
    Fit(
        "NEGATIVE_PSI",
        "psi(x) x (x+1) / (x-s) + 2 in x, for -1 <= x <= 0, s its root",
        lambda x: negative_psi(x) + 2,
        (-1, 0),
        (7, 6),
        relative(negative_psi),
    ),
    Fit(
        "PSI_TAIL",
        "(log(x) - 1/(2x) - psi(x)) x^2 in 1/x^2, for x >= 2.5",
        psi_tail,
        (0, TWO_AND_A_HALF),
        (5, 4),
        lambda z: z / mp.psi(0, 1 / mp.sqrt(z)) if z > TINY else mp.mpf(0),
    ),
    Fit(
        "TRIGAMMA",
        "x^2 trigamma(x) - x - 1/2 in x, for 0 <= x <= 8",
        trigamma,
        (0, 8),
        (8, 8),
        lambda x: 1 / (trigamma(x) + x + mp.mpf(1) / 2),
        2,
    ),
    Fit(
        "TRIGAMMA_TAIL",
        "(trigamma(x) - 1/x - 1/(2x^2)) x^3 in 1/x^2, for x >= 8",
        trigamma_tail,
        (0, EIGHTH),
        (7, 0),
        lambda z: z,
    ),
    Fit(
        "SINE_PI",
        "(sin(pi r) / (pi r) - 1) / r^2 in r^2, for |r| <= 1/2",
        sine_pi,
        (0, 0.25),
        (7, 0),
        lambda z: z / (1 + z * sine_pi(z)),
    ),
    Fit(
        "COTANGENT_PI",
        "(pi r cot(pi r) / (1 - 4 r^2) - 1) / r^2 in r^2, for |r| <= 1/2",
        cotangent_pi,
        (0, 0.25),
        (4, 3),
        lambda z: z / (1 + z * cotangent_pi(z)),
    ),
    Fit(
        "LOG_RATIO_WIDE",
        "(log((1+s)/(1-s))/s - 2) / s^2 in s^2, for |s| <= 0.34",
        log_ratio,
        (0, 0.1156),
        (9, 0),
        lambda z: z,
    ),
]


def rows(name: str, values: list[list[mp.mpf]]) -> str:
    lines = [f"{name}: Final[tuple[Coefficients, ...]] = ("]
    for row in values:
        digits = ",\n        ".join(repr(float(mp.nstr(d, 17))) for d in row)
        lines.append(f'    {{"float64": (\n        {digits},\n    )}},')
    return "\n".join([*lines, ")"])


def main() -> None:
    parts = [HEADER]
    for fit in FITS:
        top, bottom = fit.coefficients()
        error = f"2^{float(mp.log(fit.largest_error(top, bottom), 2)):.1f}"
        print(fit.name, error, flush=True)
        if fit.start is not None:
            top = [c + fit.start * d for c, d in zip([mp.mpf(0), *top], bottom, strict=True)]
        parts.append(f"# {fit.says}:\n# {error}.")
        if fit.degrees[1]:
            parts.append(table(f"{fit.name}_TOP", {"float64": top}))
            parts.append(table(f"{fit.name}_BOTTOM", {"float64": bottom}))
        else:
            parts.append(table(fit.name, {"float64": top}))
    parts.append(
        "# Powers of eta, for each power of 1/a, in Temme's uniform expansion (DLMF 8.12.7), for"
    )
    parts.append("# a >= 20 and |x/a - 1| <= 0.3: 2e-17.")
    parts.append(rows("TEMME", temme_tables()))
    parts.append(
        "# The factorials of 4 to 22, and coefficients of log(gamma(n+1+r) / n!) / r in r for each"
    )
    parts.append("# of these n, for |r| <= 1/8: 1e-17.")
    parts.append(rows("FACTORIALS", factorial_tables()))
    TARGET.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
