"""Einstein sums, tensor products and Kronecker products, in whatever form they reach ONNX."""

import string
import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st

from pytensor_onnx import InputError, compile_onnx, export_onnx
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


def arrays(batch, k=3, n=4, dtype="float64"):
    """Return variables of unknown batch sizes, and values."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(*batch, size)).astype(dtype) for size in (k, n)]
    shapes = [(*[None] * len(batch), size) for size in (k, n)]
    variables = [
        pt.tensor(name, shape=shape, dtype=dtype) for name, shape in zip("xy", shapes, strict=True)
    ]
    return variables, values


def summed(x, y):
    return (x.mT @ y).sum(axis=tuple(range(x.type.ndim - 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(5, 6), (2, 5, 6), (0, 6), (5, 0), (1, 1), (300, 7)])
def test_a_sum_over_the_batch_is_one_product(batch, dtype):
    (x, y), values = arrays(batch, dtype=dtype)
    # Sums of positive and negative products lose digits.
    atol = {"float32": 3e-5, "float64": 1e-12}[dtype]
    program = compare_onnx_and_py([x, y], [summed(x, y)], values, atol=atol)
    assert op_types(program) == ["Flatten", "Flatten", "Gemm"]


def test_rows_without_elements_and_numbers_that_are_not_finite_stay_what_they_are():
    (x, y), (a, b) = arrays((2, 3), k=2, n=3)
    a[0, 1, 0], b[1, 2, 2] = np.nan, np.inf
    compare_onnx_and_py([x, y], [summed(x, y)], [a, b])
    z = pt.tensor("z", shape=(None, None, None))
    compare_onnx_and_py([x, z], [summed(x, z)], [a, b[..., :0]])


def test_the_gradient_of_weights_of_unknown_shape_is_one_product():
    x, w = pt.tensor("x", shape=(None, None, 8)), pt.matrix("w")
    rng = np.random.default_rng(1)
    values = [rng.normal(size=(4, 5, 8)), rng.normal(size=(8, 3))]
    gradient = pt.grad(pt.sqr(pt.tanh(x @ w)).sum(), w)
    program = compare_onnx_and_py([x, w], [gradient], values)
    assert op_types(program).count("Gemm") == 1
    assert "ReduceSum" not in op_types(program)


def test_arrays_that_are_repeated_along_the_batch_are_multiplied_one_by_one():
    x, y = pt.tensor("x", shape=(1, None, 3)), pt.tensor("y", shape=(None, None, 4))
    rng = np.random.default_rng(2)
    values = [rng.normal(size=(1, 5, 3)), rng.normal(size=(2, 5, 4))]
    program = compare_onnx_and_py([x, y], [summed(x, y)], values)
    assert "ReduceSum" in op_types(program)


def test_products_that_are_used_elsewhere_are_summed():
    (x, y), values = arrays((2, 5))
    products = x.mT @ y
    program = compare_onnx_and_py([x, y], [products, products.sum(axis=0)], values)
    assert op_types(program).count("MatMul") == 1
    assert "Gemm" not in op_types(program)


def test_batches_of_other_sizes_are_refused_if_they_have_as_many_rows():
    (x, y), (a, _) = arrays((2, 6))
    program = export_onnx([x, y], summed(x, y))
    with pytest.raises(InputError, match="is 2 in x and 3 in y"):
        program(a, np.zeros((3, 4, 4)))


def test_steps_of_loops_sum_as_well():
    _, (a, b) = arrays((2, 5))
    xs, ys = (
        pt.tensor("xs", shape=(None, None, None, 3)),
        pt.tensor("ys", shape=(None, None, None, 4)),
    )
    total = pytensor.scan(
        lambda x, y, total: total + summed(x, y),
        sequences=[xs, ys],
        outputs_info=[pt.zeros((3, 4))],
        return_updates=False,
    )
    compare_onnx_and_py([xs, ys], [total], [np.stack([a, 2 * a, a]), np.stack([b, b, -b])])
