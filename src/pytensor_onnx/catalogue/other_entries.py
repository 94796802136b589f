"""Entries of random states, bijectors, special functions and matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions import transforms
from pytensor.tensor import linalg
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.compile_entry import NEXT_KEY
from pytensor_onnx.catalogue.distribution_entries import NEXT_STATE, STATE
from pytensor_onnx.catalogue.entry import Argument, Entry
from pytensor_onnx.prng import init_prng, split_prng

REALS = ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0))
POSITIVES = ((0.4, 1.3, 2.5), (1.7, 0.2, 5.0))
UNITS = ((0.1, 0.5, 0.7), (0.8, 0.25, 0.95))


def random_entries() -> Iterator[Entry]:
    """Yield the functions of states."""
    seed = Argument("seed", "any integer", "int64", (), False, 42)
    yield Entry(
        "InitPRNG",
        "states",
        "states",
        "State of a seed, as jax.random.key makes it.",
        (seed,),
        (replace(STATE, example=None),),
        init_prng,
        "plain",
    )
    first, second = (replace(NEXT_STATE, name=name, about="") for name in ("first", "second"))
    yield Entry(
        "SplitPRNG",
        "states",
        "states",
        "Two states of independent streams, as jax.random.split makes them.",
        (STATE,),
        (first, second),
        split_prng,
        "plain",
    )
    data = Argument(
        "data", "an integer; different ones give different states", "int64", (), False, 7
    )
    yield Entry(
        "FoldIn",
        "states",
        "states",
        "State of an independent stream for an integer, as jax.random.fold_in makes it.",
        (STATE, data),
        (replace(NEXT_STATE, about=""),),
        lambda state, data: split_prng(state, data=pt.stack([data]))[0],
        "plain",
    )
    key = Argument(
        "key", "two words of a key of Threefry-2x64, and a counter", "uint64", ("3",), False
    )
    yield Entry(
        NEXT_KEY,
        "states",
        "states",
        "Next state, and the key of one draw of any size; functions of draws call it.",
        (STATE,),
        (NEXT_STATE, key),
        _next_key,
        "plain",
    )


def _next_key(state: V) -> list[V]:
    after, key = split_prng(state)
    zero = pt.constant(np.zeros(1, "uint64"))
    return [after, pt.concatenate([key.astype("uint64"), zero])]


_MATRIX = ((2.0, 0.5, 0.1), (0.5, 1.5, -0.3), (0.1, -0.3, 1.0))
_SIMPLEX = ((0.2, 0.3, 0.5), (0.6, 0.3, 0.1))


def bijector_entries() -> Iterator[Entry]:
    """Yield the functions of the transforms of PyMC."""
    bounds = (
        Argument("lower", "finite", example=(-2.0, -1.5, 1.0)),
        Argument("upper", "finite, above lower", example=(3.0, 0.5, 6.0)),
    )
    of_numbers: list[tuple[str, str, Any, Any, tuple[Argument, ...]]] = [
        ("Log", "positive", transforms.log, POSITIVES, ()),
        ("LogExpM1", "positive", transforms.log_exp_m1, POSITIVES, ()),
        ("LogOdds", "in (0, 1)", transforms.logodds, UNITS, ()),
        ("Circular", "in [-pi, pi]", transforms.circular, REALS, ()),
        (
            "Interval",
            "between lower and upper",
            _interval(True, True),
            ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
            bounds,
        ),
        (
            "LowerBound",
            "above lower",
            _interval(True, False),
            ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
            bounds[:1],
        ),
        (
            "UpperBound",
            "below upper",
            _interval(False, True),
            ((0.3, -1.2, 2.5), (-1.0, 0.1, 4.0)),
            bounds[1:],
        ),
    ]
    for name, about, transform, values, parameters in of_numbers:
        yield from _bijector(name, about, transform, values, REALS, ((), ()), parameters)
    increasing, decreasing = (
        ((-1.0, 0.5, 2.0), (0.1, 0.2, 4.0)),
        ((2.0, 0.5, -1.0), (4.0, 0.2, 0.1)),
    )
    vector = ("n",)
    yield from _bijector(
        "Ordered", "increasing", transforms.ordered, increasing, REALS, (vector, vector)
    )
    yield from _bijector(
        "PositiveOrdered",
        "increasing and positive",
        transforms.Ordered(positive=True),
        ((0.1, 0.5, 2.0), (0.1, 0.2, 4.0)),
        REALS,
        (vector, vector),
    )
    yield from _bijector(
        "Descending",
        "decreasing",
        transforms.Ordered(ascending=False),
        decreasing,
        REALS,
        (vector, vector),
    )
    short = ((0.3, -1.2), (2.5, 0.4))
    yield from _bijector(
        "Simplex",
        "positive with a sum of 1",
        transforms.simplex,
        _SIMPLEX,
        short,
        (("n",), ("n - 1",)),
    )
    yield from _bijector(
        "SumTo1",
        "with a sum of 1",
        transforms.SumTo1(),
        _SIMPLEX,
        ((0.3, 0.2), (0.5, 0.4)),
        (("n",), ("n - 1",)),
    )
    yield from _bijector(
        "ZeroSum",
        "with a sum of 0",
        transforms.ZeroSumTransform([-1]),
        ((0.5, -1.0, 0.5), (2.0, -0.5, -1.5)),
        short,
        (("n",), ("n - 1",)),
    )
    packed = ((0.5, -1.0, 1.5), (2.0, -0.5, 0.7))
    yield from _bijector(
        "CholeskyCovPacked",
        "a lower triangle by rows, with a positive diagonal",
        _Packed(transforms.CholeskyCovPacked),
        packed,
        REALS,
        (("n (n + 1) / 2",), ("n (n + 1) / 2",)),
    )
    covariances = (((2.0, 0.5), (0.5, 1.5)), ((1.0, -0.3), (-0.3, 0.8)))
    yield from _bijector(
        "CholeskyCov",
        "a covariance",
        _Packed(transforms.CholeskyCovTransform),
        covariances,
        REALS,
        (("n", "n"), ("n (n + 1) / 2",)),
    )
    factors = (((1.0, 0.0), (0.6, 0.8)), ((1.0, 0.0), (-0.28, 0.96)))
    yield from _bijector(
        "CholeskyCorr",
        "the lower Cholesky factor of a correlation matrix",
        _Packed(transforms.CholeskyCorrTransform, without_diagonal=True),
        factors,
        ((0.7,), (-1.3,)),
        (("n", "n"), ("n (n - 1) / 2",)),
    )


class _Packed:
    """A transform of PyMC whose number of rows follows from the operand."""

    def __init__(self, make: Callable[[V], Any], *, without_diagonal: bool = False) -> None:
        self.make, self.without_diagonal = make, without_diagonal

    def _of(self, size: V) -> Any:
        sign = 1 if self.without_diagonal else -1
        root = pt.sqrt(8.0 * size.astype("float64") + 1.0)
        return self.make(pt.round((root + sign) / 2.0).astype("int64"))

    def forward(self, value: V, *_: V) -> V:
        square = self.make in (transforms.CholeskyCovTransform, transforms.CholeskyCorrTransform)
        return (self.make(value.shape[-1]) if square else self._of(value.shape[-1])).forward(value)

    def backward(self, value: V, *_: V) -> V:
        return self._of(value.shape[-1]).backward(value)

    def log_jac_det(self, value: V, *_: V) -> V:
        return self._of(value.shape[-1]).log_jac_det(value)


def _interval(has_lower: bool, has_upper: bool) -> Any:
    def bounds(*given: V) -> tuple[V | None, V | None]:
        rest = list(given)
        lower = rest.pop(0) if has_lower else None
        return lower, rest.pop(0) if has_upper else None

    return transforms.Interval(bounds_fn=bounds)


def _bijector(
    name: str,
    about: str,
    transform: Any,
    values: Any,
    unconstrained: Any,
    cores: tuple[tuple[str, ...], tuple[str, ...]],
    parameters: Sequence[Argument] = (),
) -> Iterator[Entry]:
    """Yield both directions; axes are those of the value, and of the real numbers."""
    core, real_core = cores
    value = Argument("value", about, core=core, example=values)
    real = Argument("real", "any real", core=real_core, example=unconstrained)
    kind = "core" if core else "elementwise"
    given = tuple(parameters)
    functions = [
        (
            "Forward",
            f"Real numbers for a value that is {about}.",
            value,
            replace(real, example=None),
            transform.forward,
        ),
        (
            "Inverse",
            f"Value that is {about} for real numbers.",
            real,
            replace(value, example=None),
            transform.backward,
        ),
        (
            "LogDet",
            "Logarithm of the absolute determinant of the Jacobian of Inverse, "
            "which a log-density of the real numbers has beside that of the value.",
            real,
            Argument("log_det"),
            transform.log_jac_det,
        ),
    ]
    for suffix, text, x, y, make in functions:
        yield Entry(f"{name}{suffix}", "bijectors", name, text, (x, *given), (y,), make, kind)


SPECIAL: tuple[tuple[str, str, Callable[..., V], tuple[tuple[str, str, Any], ...]], ...] = (
    (
        "GammaLn",
        "Logarithm of the absolute value of the gamma function",
        pt.gammaln,
        (("x", "real", REALS),),
    ),
    ("Gamma", "Gamma function", pt.gamma, (("x", "real", REALS),)),
    ("Psi", "Digamma function", pt.psi, (("x", "real", REALS),)),
    ("TriGamma", "Trigamma function", pt.tri_gamma, (("x", "positive", POSITIVES),)),
    (
        "PolyGamma",
        "Polygamma function",
        pt.polygamma,
        (("n", "order, 0, 1, …", (0, 1, 3)), ("x", "positive", POSITIVES)),
    ),
    (
        "GammaInc",
        "Regularised lower incomplete gamma function",
        pt.gammainc,
        (("a", "positive", (2.0, 0.7, 5.0)), ("x", "not negative", POSITIVES)),
    ),
    (
        "GammaIncC",
        "Regularised upper incomplete gamma function",
        pt.gammaincc,
        (("a", "positive", (2.0, 0.7, 5.0)), ("x", "not negative", POSITIVES)),
    ),
    (
        "GammaIncInv",
        "Inverse of GammaInc by x",
        pt.gammaincinv,
        (("a", "positive", (2.0, 0.7, 5.0)), ("p", "in [0, 1]", UNITS)),
    ),
    (
        "GammaIncCInv",
        "Inverse of GammaIncC by x",
        pt.gammainccinv,
        (("a", "positive", (2.0, 0.7, 5.0)), ("p", "in [0, 1]", UNITS)),
    ),
    (
        "BetaInc",
        "Regularised incomplete beta function",
        pt.betainc,
        (
            ("a", "positive", (2.0, 0.7, 5.0)),
            ("b", "positive", (1.5, 0.5, 3.0)),
            ("x", "in [0, 1]", UNITS),
        ),
    ),
    (
        "BetaIncInv",
        "Inverse of BetaInc by x",
        pt.betaincinv,
        (
            ("a", "positive", (2.0, 0.7, 5.0)),
            ("b", "positive", (1.5, 0.5, 3.0)),
            ("p", "in [0, 1]", UNITS),
        ),
    ),
    ("Erf", "Error function", pt.erf, (("x", "real", REALS),)),
    ("Erfc", "Complementary error function", pt.erfc, (("x", "real", REALS),)),
    ("Erfcx", "Erfc(x) exp(x^2)", pt.erfcx, (("x", "real", REALS),)),
    (
        "Erfinv",
        "Inverse of the error function",
        pt.erfinv,
        (("x", "in [-1, 1]", ((0.1, -0.5, 0.7), (-0.8, 0.25, 0.95))),),
    ),
    (
        "Erfcinv",
        "Inverse of Erfc",
        pt.erfcinv,
        (("x", "in [0, 2]", ((0.1, 0.5, 1.7), (0.8, 1.25, 1.95))),),
    ),
    ("Log1p", "log(1 + x)", pt.log1p, (("x", "above -1", POSITIVES),)),
    ("Expm1", "exp(x) - 1", pt.expm1, (("x", "real", REALS),)),
    (
        "Log1mexp",
        "log(1 - exp(x))",
        pt.log1mexp,
        (("x", "negative", ((-0.4, -1.3, -2.5), (-1.7, -0.2, -5.0))),),
    ),
    ("Softplus", "log(1 + exp(x))", pt.softplus, (("x", "real", REALS),)),
    ("Sigmoid", "1 / (1 + exp(-x))", pt.sigmoid, (("x", "real", REALS),)),
    (
        "Owens_t",
        "Owen's function T(h, a)",
        pt.owens_t,
        (("h", "real", REALS), ("a", "real", (0.5, -1.0, 2.0))),
    ),
    ("I0", "Modified Bessel function of the first kind of order 0", pt.i0, (("x", "real", REALS),)),
    ("I1", "Modified Bessel function of the first kind of order 1", pt.i1, (("x", "real", REALS),)),
    (
        "Ive",
        "Modified Bessel function of the first kind, times exp(-|x|)",
        pt.ive,
        (("v", "order", (0.5, 1.0, 2.0)), ("x", "positive", POSITIVES)),
    ),
    (
        "Kve",
        "Modified Bessel function of the second kind, times exp(x)",
        pt.kve,
        (("v", "order", (0.5, 1.0, 2.0)), ("x", "positive", POSITIVES)),
    ),
    ("J0", "Bessel function of the first kind of order 0", pt.j0, (("x", "real", REALS),)),
    ("J1", "Bessel function of the first kind of order 1", pt.j1, (("x", "real", REALS),)),
    (
        "Jv",
        "Bessel function of the first kind",
        pt.jv,
        (("v", "order", (0.5, 1.0, 2.0)), ("x", "positive", POSITIVES)),
    ),
    (
        "Hyp2F1",
        "Gauss' hypergeometric function",
        pt.hyp2f1,
        (
            ("a", "real", (2.0, 0.7, 5.0)),
            ("b", "real", (1.5, 0.5, 3.0)),
            ("c", "no integer below 1", (3.5, 2.5, 6.0)),
            ("x", "below 1", UNITS),
        ),
    ),
)


def special_entries() -> Iterator[Entry]:
    """Yield the special functions."""
    for name, about, make, operands in SPECIAL:
        inputs = tuple(
            Argument(x, text, "int64" if text.startswith("order, 0") else "T", example=values)
            for x, text, values in operands
        )
        yield Entry(name, "special", name, f"{about}.", inputs, (Argument("y"),), make)


def matrix_entries() -> Iterator[Entry]:
    """Yield functions of one matrix of any size, and of batches of matrices."""
    for one in _one_matrix():
        yield one
        inputs = tuple(
            replace(x, is_batched=True, example=(x.example, np.multiply(x.example, 2.0).tolist()))
            for x in one.inputs
        )
        outputs = tuple(replace(y, is_batched=True) for y in one.outputs)
        yield replace(
            one,
            name=f"Batch{one.name}",
            about=f"{one.about[:-1]}, for each matrix of a batch.",
            inputs=inputs,
            outputs=outputs,
            kind="core",
        )


def _one_matrix() -> Iterator[Entry]:
    square = Argument(
        "a",
        "square",
        core=("n", "n"),
        is_batched=False,
        example=((1.0, 2.0, 0.5), (0.3, -1.0, 2.0), (1.5, 0.2, 1.0)),
    )
    symmetric = Argument(
        "a", "symmetric and positive definite", core=("n", "n"), is_batched=False, example=_MATRIX
    )
    lower = Argument(
        "l",
        "lower triangular",
        core=("n", "n"),
        is_batched=False,
        example=((1.5, 0.0, 0.0), (0.3, 1.0, 0.0), (-0.5, 0.2, 2.0)),
    )
    b = Argument(
        "b", core=("n", "k"), is_batched=False, example=((1.0, 2.0), (0.5, -1.0), (0.3, 0.7))
    )
    tall = Argument(
        "a",
        "with at least as many rows as columns",
        core=("m", "n"),
        is_batched=False,
        example=((1.0, 2.0), (0.3, -1.0), (1.5, 0.2)),
    )

    def result(name: str, *core: str) -> Argument:
        return Argument(name, core=core, is_batched=False)

    nn = ("n", "n")
    cases: list[tuple[str, str, tuple[Argument, ...], tuple[Argument, ...], Callable[..., Any]]] = [
        ("Cholesky", "Lower Cholesky factor", (symmetric,), (result("l", *nn),), linalg.cholesky),
        (
            "SolveTriangular",
            "Solution x of l x = b",
            (lower, b),
            (result("x", "n", "k"),),
            lambda a, b: linalg.solve_triangular(a, b, lower=True),
        ),
        (
            "SolveTriangularTransposed",
            "Solution x of l' x = b",
            (lower, b),
            (result("x", "n", "k"),),
            lambda a, b: linalg.solve_triangular(a, b, lower=True, trans=1),
        ),
        (
            "CholeskySolve",
            "Solution x of l l' x = b",
            (lower, b),
            (result("x", "n", "k"),),
            lambda a, b: linalg.cho_solve((a, True), b),
        ),
        (
            "Solve",
            "Solution x of a x = b",
            (square, b),
            (result("x", "n", "k"),),
            linalg.solve,
        ),
        ("Inverse", "Inverse", (square,), (result("x", *nn),), linalg.inv),
        (
            "LogAbsDet",
            "Sign and logarithm of the absolute value of the determinant",
            (square,),
            (result("sign"), result("log_det")),
            linalg.slogdet,
        ),
        (
            "QR",
            "Orthonormal columns and an upper triangle whose product is a",
            (tall,),
            (result("q", "m", "n"), result("r", *nn)),
            lambda a: linalg.qr(a, mode="economic"),
        ),
        (
            "Eigh",
            "Eigenvalues in increasing order, and eigenvectors as columns, of a symmetric matrix",
            (symmetric,),
            (result("w", "n"), result("v", *nn)),
            linalg.eigh,
        ),
        (
            "SVD",
            "Singular vectors and values: a = u diag(s) vh",
            (tall,),
            (result("u", "m", "n"), result("s", "n"), result("vh", *nn)),
            lambda a: linalg.svd(a, full_matrices=False),
        ),
        ("Expm", "Matrix exponential", (square,), (result("x", *nn),), linalg.expm),
    ]
    for name, about, inputs, outputs, make in cases:
        yield Entry(name, "matrices", name, f"{about}.", inputs, outputs, make, "plain")
