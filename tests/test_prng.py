"""Stateless random numbers are those of JAX, in every mode and in files."""

import mpmath
import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import erfinv

from pytensor_onnx import ArgumentError, export_onnx, prng

jax = pytest.importorskip("jax", reason="JAX has no package for this system")

SEED = 7
SHAPES = ((), (5,), (3, 0, 2), (3, 4))
RANGES = [
    ("int8", -128, 127),
    ("uint8", 0, 200),
    ("int16", -1000, 1001),
    ("int32", -(2**31), 2**31 - 1),
    ("uint32", 0, 2**32 - 1),
    ("int64", -10, 10**15),
    ("int64", -(2**63), 2**63 - 1),
]


@pytest.fixture(autouse=True)
def _doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def words(key):
    return np.asarray(jax.random.key_data(key)).astype("int64")


def evaluated(variables, mode="FAST_COMPILE"):
    return pytensor.function([], variables, mode=mode)()


def test_the_cipher_has_the_published_vectors():
    # Of the distribution of Random123: threefry 2x32 20, counter and key to result.
    known = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]
    for (high, low), key, expected in known:
        number = np.array((high << 32) + low, dtype="uint64").astype("int64")
        (state,) = prng.split_prng(np.array(key), data=[number])
        assert evaluated(state).tolist() == list(expected)


@pytest.mark.parametrize("seed", [0, 42, 2**40 + 3, -1])
def test_first_and_split_states_are_jaxs_keys(seed):
    key = jax.random.key(seed)
    assert evaluated(prng.init_prng(seed)).tolist() == words(key).tolist()
    states = evaluated(prng.split_prng(prng.init_prng(seed), 3))
    np.testing.assert_array_equal(states, words(jax.random.split(key, 3)))
    (state,) = evaluated(prng.split_prng(prng.init_prng(seed), data=[12345]))
    np.testing.assert_array_equal(state, words(jax.random.fold_in(key, 12345)))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "JAX", "ONNX"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_are_jaxs(dtype, mode):
    after, key = jax.random.split(jax.random.key(SEED))
    drawn = [prng.random_uniform(prng.init_prng(SEED), shape, dtype=dtype) for shape in SHAPES]
    *found, state = evaluated([*(d.values for d in drawn), drawn[0].state], mode)
    for values, shape in zip(found, SHAPES, strict=True):
        expected = np.asarray(jax.random.uniform(key, shape, dtype))
        # Mode JAX of PyTensor widens numbers without axes.
        assert values.dtype == dtype or (mode == "JAX" and shape == ())
        np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(state, words(after))


def test_bounds_scale_uniform_numbers():
    _, key = jax.random.split(jax.random.key(SEED))
    drawn = prng.random_uniform(prng.init_prng(SEED), 1000, -2.5, 3.5, "float64")
    expected = np.asarray(jax.random.uniform(key, (1000,), "float64", -2.5, 3.5))
    # XLA rounds the product and the sum once.
    np.testing.assert_allclose(evaluated(drawn.values), expected, rtol=1e-14, atol=1e-15)


def _exact_normal(x):
    """Return ``sqrt(2) erfinv(x)`` to 40 digits."""
    with mpmath.workdps(40):
        return mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(float(x)))


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 0.51), ("float32", 0.6), ("float64", 2)])
def test_normal_numbers_are_exact_inverses_of_jaxs_uniform_ones(dtype, bound):
    _, key = jax.random.split(jax.random.key(SEED))
    n = 400 if dtype == "float64" else 4000
    drawn = prng.random_normal(prng.init_prng(SEED), n, dtype=dtype)
    found = evaluated(drawn.values, "ONNX")
    number = np.dtype(dtype).type
    least = np.nextafter(number(-1), number(0))
    uniforms = np.asarray(jax.random.uniform(key, (n,), dtype, least, 1.0))
    # SciPy's errors do not count in narrower floats.
    inverse = np.sqrt(2.0) * erfinv(uniforms.astype("float64"))
    exact = [_exact_normal(x) for x in uniforms] if dtype == "float64" else inverse
    units = np.spacing(np.abs(found)).astype("float64")
    errors = [abs(float(mpmath.mpf(float(x)) - y)) for x, y in zip(found, exact, strict=True)]
    assert np.max(errors / units) <= bound
    # JAX's own error is up to 85 units of float32, next to zero.
    jaxs = np.asarray(jax.random.normal(key, (n,), dtype))
    close = {"float16": 2e-3, "float32": 2e-5, "float64": 2e-12}[dtype]
    np.testing.assert_allclose(found, jaxs, rtol=close, atol=close * (dtype == "float16"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_have_equal_bits_in_all_modes(dtype):
    drawn = prng.random_normal(prng.init_prng(SEED), 5000, dtype=dtype).values
    expected = evaluated(drawn)
    for mode in ("JAX", "ONNX"):
        np.testing.assert_array_equal(evaluated(drawn, mode), expected)
    portable = export_onnx([], drawn, target="portable", verify=False)
    np.testing.assert_array_equal(portable(), expected)


@pytest.mark.parametrize(("dtype", "low", "high"), RANGES)
def test_integers_are_jaxs(dtype, low, high):
    _, key = jax.random.split(jax.random.key(SEED))
    drawn = prng.random_integers(prng.init_prng(SEED), (300,), low, high, dtype)
    expected = np.asarray(jax.random.randint(key, (300,), low, high, dtype))
    for mode in ("FAST_COMPILE", "ONNX"):
        found = evaluated(drawn.values, mode)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_a_file_takes_a_state_and_returns_the_next_one():
    state, x = pt.vector("state", dtype="int64", shape=(2,)), pt.fmatrix("x")
    drawn = prng.random_uniform(state, x.shape)
    outputs = {"values": drawn.values, "next_state": drawn.state}
    program = export_onnx([state, x], outputs, target="portable")
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    key = jax.random.key(SEED)
    present = words(key)
    for _ in range(2):
        key, used = jax.random.split(key)
        feed = {"state": present, "x": np.zeros((3, 4), "float32")}
        values, present = session.run(None, feed)
        np.testing.assert_array_equal(values, jax.random.uniform(used, (3, 4), "float32"))
        np.testing.assert_array_equal(present, words(key))


def test_streams_of_split_states_are_uniform_and_unrelated():
    states = prng.split_prng(prng.init_prng(1), 2)
    first, second = evaluated([prng.random_uniform(s, 50_000).values for s in states])
    for numbers in (first, second):
        assert stats.kstest(numbers, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(50_000)
    table, *_ = np.histogram2d(first, second, bins=20)
    assert stats.chisquare(table.ravel()).pvalue > 1e-4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prng.init_prng([1, 2]), "a seed is one integer"),
        (lambda: prng.split_prng(5), "vector of two words"),
        (lambda: prng.split_prng([0, 1], data=pt.lvector()), "number of elements of data"),
        (lambda: prng.random_uniform([0, 1], dtype="int8"), "give one of float16"),
        (lambda: prng.random_integers([0, 1], low=3, high=3), "no range of int32"),
        (lambda: prng.random_uniform([0, 1], pt.lvector()), "number of axes of shape"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


KNOWN_ANSWERS = (
    ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
)
"""Counters, keys and blocks of Philox-4x32-10 in the tests of Random123."""


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_philox_has_the_known_answers(target: str) -> None:
    key, counters = pt.lvector("key"), pt.lmatrix("counters")
    blocks = prng.philox(key, counters)
    call = export_onnx([key, counters], blocks, target=target, verify=False)
    for counter, given, block in KNOWN_ANSWERS:
        words = [np.array([int(word, 16) for word in text.split()]) for text in (counter, given)]
        found = call(words[1], np.stack([words[0]] * 3))
        assert [f"{word:08x}" for word in found[2]] == block.split()
