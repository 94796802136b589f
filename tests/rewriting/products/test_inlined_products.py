"""Einstein sums, tensor products and Kronecker products, in whatever form they reach ONNX."""

import string
import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st

from pytensor_onnx import compile_onnx
from tests.conftest import assert_same, compare_onnx_and_py, op_types
from tests.properties import holds_for

SIZES = {"i": 2, "j": 3, "k": 4, "l": 2, "b": 3, "h": 2}
EQUATIONS = [
    *("ij->ji", "ij->", "ij->j", "ijk->ki", "ii->i", "ii", "ii->", "iij->j", "iji->ij", "iii->i"),
    *("ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ki", "i,i->", "i,i->i", "i,j->ij", "ij,j->i"),
    *(
        "bij,bjk->bik",
        "bhij,bhkj->bhik",
        "ijk,ilj->lk",
        "ij,ij->",
        "ijk,jk",
        "iij,jk->ik",
        ",ij->ji",
    ),
    *("ij,jk,kl->il", "bi,bj,bk->ijk", "i,ij,j->", "ij,jk,kl,lb->ib"),
]


def operands(equation, dtype="float64", sizes=SIZES):
    rng = np.random.default_rng(1)
    names = equation.split("->")[0].split(",")
    return [rng.integers(-3, 4, [sizes[c] for c in name]).astype(dtype) for name in names]


def check_einsum(equation, values, *, static=False, gradients=False):
    inputs = [
        pt.tensor(f"x{i}", dtype=x.dtype, shape=x.shape if static else (None,) * x.ndim)
        for i, x in enumerate(values)
    ]
    outputs = [pt.einsum(equation, *inputs)]
    if gradients:
        outputs += pytensor.grad((outputs[0] ** 2).sum(), inputs)
    return compare_onnx_and_py(inputs, outputs, values, rtol=1e-10, atol=1e-10)


@pytest.mark.few(9)
@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:The same einsum subscript")
@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_equations(equation, static):
    check_einsum(equation, operands(equation), static=static)


@pytest.mark.each_value
@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->j", "ij,jk,kl->il"]
)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32"]
)
def test_dtypes(equation, dtype):
    check_einsum(equation, operands(equation, dtype))


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij->i"])
def test_integers_are_exact_and_wrap(equation):
    values = [x * (2**62 + 1) for x in operands(equation, "int64")]
    check_einsum(equation, values)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(2, 3), (3, 4)]),
        ("i...,i...->...", [(2, 3, 4), (2, 3, 4)]),
        ("...i->...", [(2, 3)]),
        ("i...j->j...i", [(2, 3, 4, 5)]),
    ],
)
def test_ellipses(equation, shapes):
    check_einsum(equation, [np.random.default_rng(2).normal(size=shape) for shape in shapes])


@pytest.mark.each_value
@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bhij,bhkj->bhik", "ij,jk,kl->il", "ij->i", "ii->"]
)
@pytest.mark.parametrize("empty", ["i", "j", "k", "b", "ij", "jk"])
def test_empty_operands(equation, empty):
    sizes = SIZES | dict.fromkeys(empty, 0)
    check_einsum(equation, operands(equation, sizes=sizes))


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bij,bjk->bik", "ii->i", "ij,jk,kl->il", "ij->j"]
)
def test_gradients(equation):
    check_einsum(equation, operands(equation), gradients=True)


def test_attention_scores_are_a_transpose_and_a_product():
    values = operands("bhij,bhkj->bhik")
    program = check_einsum("bhij,bhkj->bhik", values, static=True)
    assert op_types(program) == ["Transpose", "MatMul"]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((2, 3), (4, 2)), ((3,), (2, 2)), ((2, 2, 2), (3, 2)), ((0, 2), (2, 3))]
)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_kronecker_products(dtype, shapes, static):
    rng = np.random.default_rng(3)
    values = [rng.integers(0, 9, shape).astype(dtype) for shape in shapes]
    a, b = (
        pt.tensor(n, dtype=dtype, shape=x.shape if static else (None,) * x.ndim)
        for n, x in zip("ab", values, strict=True)
    )
    program = compare_onnx_and_py([a, b], pt.linalg.kron(a, b), values)
    assert not program.model.functions


@pytest.mark.each_value
@pytest.mark.parametrize("axes", [0, 1, 2, [[0], [1]], [[2, 1], [0, 1]]])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_tensordot(axes, dtype):
    a, b = (pt.tensor(n, dtype=dtype, shape=(None,) * 3) for n in "ab")
    rng = np.random.default_rng(4)
    values = [rng.integers(-5, 5, (3, 3, 3)).astype(dtype) for _ in range(2)]
    compare_onnx_and_py([a, b], pt.tensordot(a, b, axes=axes), values)


@holds_for(data=st.data(), static=st.booleans(), dtype=st.sampled_from(["int64", "float64"]))
def test_any_einstein_sum_is_that_of_numpy(data, static, dtype):
    letters = string.ascii_lowercase[: data.draw(st.integers(1, 4))]
    sizes = {c: data.draw(st.integers(0, 3)) for c in letters}
    terms = data.draw(st.lists(st.text(letters, min_size=1, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    result = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    equation = f"{','.join(terms)}->{''.join(result)}"
    values = operands(equation, dtype, sizes)
    inputs = [
        pt.tensor(f"x{i}", dtype=dtype, shape=x.shape if static else (None,) * x.ndim)
        for i, x in enumerate(values)
    ]
    with warnings.catch_warnings(action="ignore"):
        program = compile_onnx(inputs, pt.einsum(equation, *inputs), verify=False)
    # PyTensor's Python implementation has no batches without elements.
    assert_same(program(*values), np.einsum(equation, *values), atol=1e-10)


def test_gradients_of_products_of_nothing():
    x, y = pt.vector("x", shape=(0,)), pt.matrix("y", shape=(0, 0))
    gradient = pt.grad((pt.outer(x, x) * y).sum(), x)
    program = compare_onnx_and_py([x, y], [gradient, x @ y + x], [np.zeros(0), np.zeros((0, 0))])
    assert "MatMul" not in op_types(program)
