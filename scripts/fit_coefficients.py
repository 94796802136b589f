"""Fit the coefficients of the special functions: ``python scripts/fit_coefficients.py``.

Writes ``src/pytensor_onnx/functions/special/coefficients.py``. Every approximant interpolates its
function at Chebyshev nodes of the stated interval in 60-digit arithmetic, which is within a small
factor of the best approximation of that degree (Trefethen, Approximation Theory and Approximation
Practice, 2013, chapters 15 and 16). The error printed is the largest one on the interval, weighted
as the approximant enters its result, in powers of two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60

TARGET = Path(__file__).parents[1] / "src/pytensor_onnx/functions/special/coefficients.py"
HEADER = '''"""Coefficients of the special functions, lowest power first.

Written by ``scripts/fit_coefficients.py``; change them there. Each table holds one tuple per dtype,
and the comment above it says what is approximated, where, and the largest relative error that the
rounding-free approximant causes in the function computed from it.
"""

from typing import Final

Coefficients = dict[str, tuple[float, ...]]
'''


@dataclass(frozen=True)
class Fit:
    """One function to approximate, with its interval and degrees per dtype.

    With ``scale``, a ``c``, the nodes are those of the variable ``(x - c) / (x + c)``.
    """

    name: str
    says: str
    function: Callable[[mp.mpf], mp.mpf]
    weight: Callable[[mp.mpf], mp.mpf]
    intervals: dict[str, tuple[mp.mpf, mp.mpf]]
    degrees: dict[str, tuple[int, int]]
    scale: int | None = None


def interpolate(
    fit: Fit, low: mp.mpf, high: mp.mpf, top: int, bottom: int
) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Numerator and denominator that agree with the function at Chebyshev nodes."""
    c = fit.scale
    if c:
        low, high = (low - c) / (low + c), (high - c) / (high + c)
    points = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles(top + bottom + 1)
    ]
    if c:
        points = [c * (1 + t) / (1 - t) for t in points]
    return through(points, fit.function, top, bottom)


def angles(count: int) -> list[mp.mpf]:
    """Angles whose cosines are the Chebyshev nodes."""
    return [mp.pi * (2 * i + 1) / (2 * mp.mpf(count)) for i in range(count)]


def through(
    points: list[mp.mpf], function: Callable[[mp.mpf], mp.mpf], top: int, bottom: int
) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Numerator and denominator that agree with the function at as many points as they need."""
    system, values = mp.matrix(len(points), len(points)), mp.matrix(len(points), 1)
    for row, point in enumerate(points):
        value = function(point)
        for power in range(top + 1):
            system[row, power] = point**power
        for power in range(1, bottom + 1):
            system[row, top + power] = -value * point**power
        values[row] = value
    solution = list(mp.lu_solve(system, values))
    return solution[: top + 1], [mp.mpf(1), *solution[top + 1 :]]


def largest_error(fit: Fit, dtype: str, top: list[mp.mpf], bottom: list[mp.mpf]) -> mp.mpf:
    low, high = fit.intervals[dtype]
    points = [low + (high - low) * i / mp.mpf(500) for i in range(501)]
    return max(
        abs(
            fit.weight(x)
            * (mp.polyval(top[::-1], x) / mp.polyval(bottom[::-1], x) - fit.function(x))
        )
        for x in points
    )


def from_square(odd: Callable[[mp.mpf], mp.mpf], limit: mp.mpf) -> Callable[[mp.mpf], mp.mpf]:
    """``(odd(x) / x - 1) / x**2`` as a function of ``x**2``, with its limit at zero."""

    def function(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return (odd(x) / x - 1) / z if z > mp.mpf(10) ** -30 else limit

    return function


def both(low: mp.mpf, high: mp.mpf) -> dict[str, tuple[mp.mpf, mp.mpf]]:
    return {"float64": (mp.mpf(low), mp.mpf(high)), "float32": (mp.mpf(low), mp.mpf(high))}


def half_coth(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return (x * mp.coth(x / 2) - 2) / z if z > mp.mpf(10) ** -30 else mp.mpf(1) / 6


def cosine_tail(z: mp.mpf) -> mp.mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mp.mpf(10) ** -20 else mp.mpf(1) / 24


def erf_ratio(z: mp.mpf) -> mp.mpf:
    x = mp.sqrt(z)
    return (mp.erf(x) / x if z > mp.mpf(10) ** -40 else 2 / mp.sqrt(mp.pi)) - 1


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    x = 4 * (1 + t) / (1 - t)
    return x * mp.exp(x * x) * mp.erfc(x)


def log_ratio(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z if z > mp.mpf(10) ** -30 else 2 * mp.mpf(1) / 3


def fold(x: float) -> mp.mpf:
    return (mp.mpf(x) - 4) / (mp.mpf(x) + 4)


THIRD = mp.mpf(1) / 3
FITS = [
    Fit(
        "HALF_COTH",
        "(x coth(x/2) - 2) / x^2 in x^2, for |x| <= 1.1",
        half_coth,
        lambda z: z / 2,
        both(0, mp.mpf("1.21")),
        {"float64": (7, 0), "float32": (3, 0)},
    ),
    Fit(
        "SINH",
        "(sinh(x)/x - 1) / x^2 in x^2, for |x| <= 1",
        from_square(mp.sinh, THIRD / 2),
        lambda z: z,
        both(0, 1),
        {"float64": (6, 0), "float32": (3, 0)},
    ),
    Fit(
        "SINE",
        "(sin(x)/x - 1) / x^2 in x^2, for |x| <= 0.786",
        from_square(mp.sin, -THIRD / 2),
        lambda z: z,
        both(0, mp.mpf("0.786") ** 2),
        {"float64": (5, 0), "float32": (2, 0)},
    ),
    Fit(
        "COSINE",
        "(cos(x) - 1 + x^2/2) / x^4 in x^2, for |x| <= 0.786",
        cosine_tail,
        lambda z: z**2,
        both(0, mp.mpf("0.786") ** 2),
        {"float64": (5, 0), "float32": (2, 0)},
    ),
    Fit(
        "ARCTAN",
        "(arctan(x)/x - 1) / x^2 in x^2, for |x| <= 1",
        from_square(mp.atan, -THIRD),
        lambda z: z,
        both(0, 1),
        {"float64": (6, 6), "float32": (2, 3)},
    ),
    Fit(
        "ARCSIN",
        "(arcsin(x)/x - 1) / x^2 in x^2, for |x| <= 1/2",
        from_square(mp.asin, THIRD / 2),
        lambda z: z,
        both(0, mp.mpf("0.25")),
        {"float64": (4, 5), "float32": (2, 2)},
    ),
    Fit(
        "ERF",
        "erf(x)/x - 1 in x^2, for |x| <= 1",
        erf_ratio,
        lambda z: 1 / (1 + erf_ratio(z)),
        both(0, 1),
        {"float64": (12, 0), "float32": (6, 0)},
    ),
    Fit(
        "REDUCED_LOG_RATIO",
        "(log((1+s)/(1-s))/s - 2) / s^2 in s^2, for 1/sqrt(2) <= (1+s)/(1-s) <= sqrt(2)",
        log_ratio,
        lambda z: z / 2,
        both(0, mp.mpf("0.1716") ** 2),
        {"float64": (6, 0), "float32": (2, 0)},
    ),
    Fit(
        "REDUCED_HALF_COTH",
        "(x coth(x/2) - 2) / x^2 in x^2, for |x| <= log(2) / 2",
        half_coth,
        lambda z: z / 2,
        both(0, mp.mpf("0.3467") ** 2),
        {"float64": (4, 0), "float32": (1, 0)},
    ),
    Fit(
        "SCALED_ERFC",
        "x exp(x^2) erfc(x) in (x-4)/(x+4), for 1 <= x <= 28 (10.2 in float32)",
        scaled_erfc,
        lambda t: 1 / scaled_erfc(t),
        {"float64": (fold(1), fold(28)), "float32": (fold(1), fold(10.2))},
        {"float64": (20, 0), "float32": (9, 0)},
    ),
]


def table(name: str, rows: dict[str, list[mp.mpf]]) -> str:
    lines = [f"{name}: Final[Coefficients] = {{"]
    for dtype, coefficients in rows.items():
        digits = {"float64": 17, "float32": 9}[dtype]
        lines.append(f'    "{dtype}": (')
        lines += [f"        {float(mp.nstr(c, digits))!r}," for c in coefficients]
        lines.append("    ),")
    return "\n".join([*lines, "}"])


def write(fits: list[Fit], target: Path, header: str) -> None:
    """Fit all functions, print the errors, and write the tables to a module."""
    parts = [header]
    for fit in fits:
        tops, bottoms, errors = {}, {}, []
        for dtype, degrees in fit.degrees.items():
            tops[dtype], bottoms[dtype] = interpolate(fit, *fit.intervals[dtype], *degrees)
            error = largest_error(fit, dtype, tops[dtype], bottoms[dtype])
            errors.append(f"2^{float(mp.log(error, 2)):.1f} in {dtype}")
        print(fit.name, ", ".join(errors), flush=True)
        parts.append(f"# {fit.says}:\n# {', '.join(errors)}.")
        if any(bottom for _, bottom in fit.degrees.values()):
            parts.append(table(f"{fit.name}_TOP", tops))
            parts.append(table(f"{fit.name}_BOTTOM", bottoms))
        else:
            parts.append(table(fit.name, tops))
    target.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    write(FITS, TARGET, HEADER)
