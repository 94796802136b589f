"""Fit the coefficients of inverse error functions and of Bessel functions.

``python scripts/fit_erf_and_bessel.py`` writes ``erf_coefficients.py`` and
``bessel_coefficients.py`` beside ``coefficients.py``; see ``fit_coefficients.py`` for the method.
"""

from functools import cache, partial

import mpmath as mp
from fit_coefficients import TARGET, Fit, both, from_square, write

mp.mp.dps = 60
HEADER = '''"""Coefficients of inverse error functions and Bessel functions, lowest power first.

Written by ``scripts/fit_erf_and_bessel.py``; change them there. The comment above a table
names the function, the interval, and the largest relative error that the approximant causes, before
rounding, in the function computed from it.
"""

from typing import Final

from pytensor_onnx.functions.special.coefficients import Coefficients
'''
SHIFT = mp.mpf(63) / 8
Interval = tuple[mp.mpf, mp.mpf]


def reciprocal(value: mp.mpf) -> mp.mpf:
    return 1 / mp.mpf(value)


def erfcx_ratio(t: mp.mpf) -> mp.mpf:
    if t == 1:
        return 1 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    return (x + mp.mpf(7) / 8) * mp.exp(x * x) * mp.erfc(x)


@cache
def log_erfcinv(w: mp.mpf) -> mp.mpf:
    """The solution of ``-log(erfc(y)) = w`` by Newton's method, for ``w > 3``."""
    y = mp.sqrt(w - mp.log(mp.pi * w) / 2)
    for _ in range(100):
        slope = 2 * mp.exp(-y * y) / (mp.sqrt(mp.pi) * mp.erfc(y))
        step = (-mp.log(mp.erfc(y)) - w) / slope
        y -= step
        if abs(step) < mp.mpf(10) ** -50:
            return y
    raise ArithmeticError(w)


@cache
def erfinv_ratio(w: mp.mpf) -> mp.mpf:
    if w < mp.mpf(10) ** -40:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    # The complement of x, in whose terms the inverse is well conditioned.
    return (mp.erfinv(x) if w < 2 else log_erfcinv(w + mp.log1p(x))) / x


def erfcinv_excess(s: mp.mpf) -> mp.mpf:
    return log_erfcinv(s * s) / s - 1


def erfcinv_remainder(v: mp.mpf) -> mp.mpf:
    u = v + 3
    w, bent = mp.exp(2 * u), u + mp.log(mp.pi) / 2
    # Differences of numbers of the size of w need their digits too.
    with mp.workdps(100):
        return w * (w * (log_erfcinv(w) ** 2 - w + bent) - (bent - 1) / 2)


def temme_difference(z: mp.mpf) -> mp.mpf:
    m = mp.sqrt(z)
    return (mp.rgamma(1 - m) - mp.rgamma(1 + m)) / (2 * m) if m > mp.mpf(10) ** -20 else -mp.euler


def scaled_i(order: int, t: mp.mpf) -> mp.mpf:
    if t < mp.mpf(10) ** -20:
        return mp.exp(SHIFT) / mp.sqrt(2 * mp.pi) * (1 - (4 * order**2 - 1) * t / 8)
    return mp.exp(SHIFT - 1 / t) * mp.besseli(order, 1 / t) / mp.sqrt(t)


def i_excess(order: int, z: mp.mpf) -> mp.mpf:
    if z < mp.mpf(10) ** -20:
        return mp.mpf(1) / (1 + order)
    return (mp.besseli(order, 2 * mp.sqrt(z)) / mp.sqrt(z) ** order - 1) / z


def relative_i(order: int, z: mp.mpf) -> mp.mpf:
    return z / (1 + z * i_excess(order, z))


def scaled_i_fits(order: int) -> list[Fit]:
    function = cache(partial(scaled_i, order))
    return [
        Fit(
            f"I{order}_SMALL",
            f"(I{order}(x) (2/x)^{order} - 1) / (x^2/4) in x^2/4, for |x| <= 5",
            partial(i_excess, order),
            partial(relative_i, order),
            both(0, mp.mpf("6.25")),
            {"float64": (12, 0), "float32": (7, 0)},
        ),
        Fit(
            f"I{order}_MIDDLE",
            f"sqrt(x) exp(7.875 - x) I{order}(x) in 10/x - 1, for 5 <= x <= 16",
            lambda v: function((1 + v) / 10),
            lambda v: 1 / function((1 + v) / 10),
            both(10 * reciprocal(16) - 1, 10 * reciprocal(5) - 1),
            {"float64": (22, 0), "float32": (8, 0)},
        ),
        Fit(
            f"I{order}_LARGE",
            f"sqrt(x) exp(7.875 - x) I{order}(x) in 1/x, for x >= 16",
            function,
            lambda t: 1 / function(t),
            both(0, reciprocal(16)),
            {"float64": (13, 0), "float32": (4, 0)},
        ),
    ]


@cache
def modulus_and_phase(order: int, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """``(sqrt(x/2) modulus - 1/sqrt(pi)) x**2`` and ``x`` times the phase, at ``x = t**(-1/2)``."""
    if t < mp.mpf(10) ** -20:
        mu = mp.mpf(4 * order**2 - 1)
        return mu / 16 / mp.sqrt(mp.pi), mu / 8
    x = 1 / mp.sqrt(t)
    hankel = mp.hankel1(order, x)
    turned = hankel * mp.expj((order / mp.mpf(2) + mp.mpf(1) / 4) * mp.pi - x)
    modulus = abs(hankel) * mp.sqrt(x / 2)
    return (modulus - 1 / mp.sqrt(mp.pi)) / t, mp.arg(turned) * x


def j_fits(order: int, root: mp.mpf, first: mp.mpf, last: mp.mpf, *degrees: int) -> list[Fit]:
    small, near, modulus, phase = degrees

    def excess(z: mp.mpf) -> mp.mpf:
        if z < mp.mpf(10) ** -20:
            return -mp.mpf(1) / (1 + order)
        return (mp.besselj(order, 2 * mp.sqrt(z)) / mp.sqrt(z) ** order - 1) / z

    def slope(d: mp.mpf) -> mp.mpf:
        if abs(d) < mp.mpf(10) ** -20:
            return mp.besselj(order, root, derivative=1)
        return mp.besselj(order, root + d) / d

    def double(low: mp.mpf, high: mp.mpf) -> dict[str, Interval]:
        return {"float64": (low, high)}

    far = double(mp.mpf(0), 1 / last**2)
    return [
        Fit(
            f"J{order}_SMALL",
            f"(J{order}(x) (2/x)^{order} - 1) / (x^2/4) in x^2/4, for |x| <= {float(first):g}",
            excess,
            lambda z: z,
            double(mp.mpf(0), first**2 / 4),
            {"float64": (small, 0)},
        ),
        Fit(
            f"J{order}_NEAR_ROOT",
            f"J{order}(x) / (x - r) in x - r, for {float(first):g} <= x <= {float(last):g}",
            cache(slope),
            lambda d: mp.mpf(4),
            double(first - root, last - root),
            {"float64": (near, 0)},
        ),
        Fit(
            f"J{order}_MODULUS",
            f"(sqrt(x/2) modulus of J{order}(x) + i Y{order}(x) - 1/sqrt(pi)) x^2 in 1/x^2, "
            f"for x >= {float(last):g}",
            lambda t: modulus_and_phase(order, t)[0],
            lambda t: t * mp.sqrt(mp.pi),
            far,
            {"float64": (modulus, modulus)},
        ),
        Fit(
            f"J{order}_PHASE",
            f"x (phase - x + {2 * order + 1} pi/4) of J{order}(x) + i Y{order}(x) in 1/x^2, "
            f"for x >= {float(last):g}",
            lambda t: modulus_and_phase(order, t)[1],
            mp.sqrt,
            far,
            {"float64": (phase, phase)},
        ),
    ]


ERF_FITS = [
    Fit(
        "ERFCX",
        "(x + 7/8) exp(x^2) erfc(x) in (x-4)/(x+4), for x >= 0",
        cache(erfcx_ratio),
        lambda t: 1 / erfcx_ratio(t),
        both(-1, 1),
        {"float64": (26, 0), "float32": (14, 0)},
    ),
    Fit(
        "NDTRI",
        "sqrt(2) erfinv(x)/x - 16 (w+25/8)/(w+40) in w = -log(1 - x^2), for w <= 37 (104 in\n"
        "# float32)",
        lambda w: mp.sqrt(2) * erfinv_ratio(w) - 16 * (w + mp.mpf(25) / 8) / (w + 40),
        lambda w: mp.sqrt(mp.mpf(1) / 2) / erfinv_ratio(w),
        {"float64": (mp.mpf(0), mp.mpf(37)), "float32": (mp.mpf(0), mp.mpf(104))},
        {"float64": (15, 15), "float32": (9, 9)},
        17,
    ),
    Fit(
        "ERFINV",
        "erfinv(x)/x - 16 (w+4)/(w+68) in w = -log(1 - x^2), for w <= 37 (104 in float32)",
        lambda w: erfinv_ratio(w) - 16 * (w + 4) / (w + 68),
        lambda w: 1 / erfinv_ratio(w),
        {"float64": (mp.mpf(0), mp.mpf(37)), "float32": (mp.mpf(0), mp.mpf(104))},
        {"float64": (15, 15), "float32": (9, 9)},
        17,
    ),
    Fit(
        "ERFCINV_FAR_TAIL",
        "erfcinv(q)/s - 1 in s = sqrt(-log(q)), for 6 <= s <= 27.5",
        erfcinv_excess,
        lambda s: 1 / (1 + erfcinv_excess(s)),
        {"float64": (mp.mpf(6), mp.mpf("27.5"))},
        {"float64": (10, 10)},
    ),
    Fit(
        "ERFCINV_REMAINDER",
        "w (w (y^2 - w + l) - (l - 1)/2) for y = erfcinv(exp(-w)) and l = log(pi w)/2,\n# in "
        "log(w)/2 - 3, for w >= 740 (100 in float32)",
        erfcinv_remainder,
        lambda v: mp.exp(-6 * (v + 3)) / 2,
        {"float64": (mp.log(740) / 2 - 3, mp.mpf(4)), "float32": (mp.log(100) / 2 - 3, mp.mpf(2))},
        {"float64": (8, 0), "float32": (4, 0)},
    ),
]
BESSEL_FITS = [
    Fit(
        "TEMME_DIFFERENCE",
        "(1/gamma(1 - m) - 1/gamma(1 + m)) / (2m) in m^2, for |m| <= 1/2",
        temme_difference,
        lambda z: 1 / temme_difference(z),
        {"float64": (mp.mpf(0), mp.mpf("0.25"))},
        {"float64": (7, 0)},
    ),
    Fit(
        "TEMME_MEAN",
        "(1/gamma(1 - m) + 1/gamma(1 + m)) / 2 in m^2, for |m| <= 1/2",
        lambda z: (mp.rgamma(1 - mp.sqrt(z)) + mp.rgamma(1 + mp.sqrt(z))) / 2,
        lambda z: mp.mpf(1),
        {"float64": (mp.mpf(0), mp.mpf("0.25"))},
        {"float64": (7, 0)},
    ),
    *scaled_i_fits(0),
    *scaled_i_fits(1),
    Fit(
        "LONG_SINE",
        "(sin(x)/x - 1) / x^2 in x^2, for |x| <= 1.571",
        from_square(mp.sin, -mp.mpf(1) / 6),
        lambda z: z,
        {"float64": (mp.mpf(0), mp.mpf("1.571") ** 2)},
        {"float64": (7, 0)},
    ),
    *j_fits(0, mp.besseljzero(0, 1), mp.mpf("1.5"), mp.mpf(4), 7, 15, 7, 8),
    *j_fits(1, mp.besseljzero(1, 1), mp.mpf(2), mp.mpf(5), 8, 16, 6, 7),
]

if __name__ == "__main__":
    write(ERF_FITS, TARGET.with_name("erf_coefficients.py"), HEADER)
    write(BESSEL_FITS, TARGET.with_name("bessel_coefficients.py"), HEADER)
