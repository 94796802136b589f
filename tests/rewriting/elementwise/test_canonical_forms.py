"""Sums and products are simplified as PyTensor does, and long ones take a time that is linear."""

import sys
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.math import add, mul
from pytensor.tensor.rewriting.math import local_mul_canonizer
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import compile_onnx
from pytensor_onnx.rewriting.elementwise.canonical_forms import (
    MOST_TERMS,
    PRODUCTS,
    SUMS,
    canonize_product,
    canonize_sum,
    terms_of,
)
from pytensor_onnx.rewriting.elementwise.formulas import sum_canonizer
from pytensor_onnx.running.linker import ONNX
from tests.conftest import compare_onnx_and_py, op_types, sweep_rest

LAYERS = {
    "sum": lambda h: h + pt.sin(h),
    "sum of three": lambda h: h + pt.sin(h) + pt.tanh(-h),
    "difference": lambda h: pt.tanh(h) - h,
    "product": lambda h: h * pt.sigmoid(h),
    "quotient": lambda h: h / pt.cosh(h),
    "factor of a sum": lambda h: h + h * pt.exp(-h * h),
    "negative": lambda h: pt.sin(h) + (-1.0) * h,
    "divisor": lambda h: (pt.sin(h) / pt.cosh(h) + pt.tanh(h) + abs(h) + pt.sqr(h)) * pt.cosh(h),
}

TELLING = ("sum of three", "product", "divisor")


def network(layer, n_layers):
    x = h = pt.vector("x")
    for _ in range(n_layers):
        h = layer(h)
    return x, h


def calls_per_node(x, h):
    """Return how many Python functions the rewrites of a graph call for each of its nodes."""
    graph, calls = FunctionGraph([x], [h], clone=False), 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        ONNX.optimizer.rewrite(graph)
    finally:
        sys.setprofile(None)
    return calls / len(graph.apply_nodes)


@pytest.mark.parametrize("name", sweep_rest(LAYERS, TELLING))
@pytest.mark.few(1)
def test_work_for_each_node_does_not_grow_with_the_network(name):
    layer = LAYERS[name]
    calls_per_node(*network(layer, 2))
    assert calls_per_node(*network(layer, 160)) < 1.2 * calls_per_node(*network(layer, 40))


@pytest.mark.slow
def test_work_for_each_divisor_does_not_grow_with_their_number():
    def chain(n_divisors):
        x = h = pt.vector("x")
        for k in range(n_divisors):
            h = h / (x + k + 1)
        return x, h

    calls_per_node(*chain(2))
    assert calls_per_node(*chain(3 * MOST_TERMS)) < 1.2 * calls_per_node(*chain(2 * MOST_TERMS))


def test_work_for_each_write_at_one_place_does_not_grow_with_their_number():
    def written(n_writes):
        x = h = pt.vector("x")
        for k in range(n_writes):
            h = h[0].set(pt.tanh(h[1] + h[0] + k))
        return x, h

    calls_per_node(*written(2))
    assert calls_per_node(*written(80)) < 1.3 * calls_per_node(*written(20))


@pytest.mark.parametrize(
    ("n_layers", "names"),
    [
        (3, LAYERS),
        (MOST_TERMS + 4, TELLING),
        pytest.param(MOST_TERMS + 4, LAYERS, marks=pytest.mark.sweep),
    ],
)
@pytest.mark.few(1)
def test_short_and_long_networks_and_their_gradients(n_layers, names):
    networks = [network(LAYERS[name], n_layers) for name in names]
    inputs = [x for x, _ in networks]
    outputs = [y for x, h in networks for y in (h, pt.grad(h.sum(), x))]
    arrays = [np.array([0.3, -1.2])] * len(inputs)
    # Rewritten by PyTensor, the sums have more operands than its Python mode takes.
    expected = pytensor.function(inputs, outputs, mode=Mode("py", None))(*arrays)
    found = pytensor.function(inputs, outputs, mode="ONNX")(*arrays)
    for y, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, reference, rtol=1e-9, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "rewrite", "canonizer"),
    [(add, canonize_sum, sum_canonizer), (mul, canonize_product, local_mul_canonizer)],
    ids=["sum", "product"],
)
def test_sums_and_products_change_where_the_canonizer_changes_them(op, rewrite, canonizer):
    x, y = pt.vectors("xy")
    numbers = [np.array([number]) for number in (0.0, 1.0, -1.0, 2.5, np.nan)]
    arrays = [*numbers, np.ones(2), np.full(2, 2.5), np.array([1.0, 0.0]), np.array([2], "int8")]
    operands = [x, y, x + y, x * y, -x, -1.0 * x, pt.exp(x), y.fill(0.0), pt.zeros(2), *arrays]
    changed = []
    for chosen in [*product(operands, repeat=2), *product(operands, [x, arrays[3]], operands)]:
        if not any(isinstance(operand, TensorVariable) for operand in chosen):
            continue
        node = op(*chosen).owner
        graph = FunctionGraph([x, y], node.outputs, clone=False)
        changed.append(bool(canonizer.transform(graph, node)))
        assert bool(rewrite.transform(graph, node)) == changed[-1], chosen
    assert {*changed} == {True, False}


def test_terms_cancel_also_in_results_that_have_other_uses():
    x, y = pt.vectors("x", "y")
    both, ratio = x + y, x * y
    outputs = [pt.exp(both), pt.exp(ratio), both - x, ratio / x]
    program = compare_onnx_and_py([x, y], outputs, [np.array([1.5, 2.0]), np.array([0.5, 3.0])])
    assert not {"Sub", "Div"} & set(op_types(program))


def test_factors_are_multiplied_out_where_that_saves_operations():
    a, b, x = inputs = pt.vectors("a", "b", "x")
    values = [np.array([2.0, 3.0])] * 3
    program = compare_onnx_and_py(inputs, (a / x + b) * x, values)
    assert sorted(op_types(program)) == ["Add", "Mul"]
    program = compare_onnx_and_py(inputs, pt.neg(a / x) * x * b, values)
    assert "Div" not in op_types(program)


@pytest.mark.parametrize("n_others", [1, 2, 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_factors_cancel_divisors_of_single_terms(n_others, sign):
    """The other terms stay one sum, so that a division is saved and no product is added."""
    a, x = pt.vectors("a", "x")
    others = [pt.vector() for _ in range(n_others)]
    total = a / x + sign * sum(others)
    values = [np.array([2.0, 3.0]), np.array([-0.5, 4.0]), *[np.array([1.0, 7.0])] * n_others]
    inputs, zero = [a, x, *others], [values[0], np.zeros(2), *values[2:]]
    program = compare_onnx_and_py(inputs, pt.exp(a) * total * x, values)
    assert "Div" not in op_types(program)
    assert op_types(program).count("Mul") <= 3
    np.testing.assert_allclose(program(*zero)[0], np.exp(values[0]) * values[0])
    program = compare_onnx_and_py(inputs, x * total * x, values)
    assert "Div" not in op_types(program)


@pytest.mark.parametrize(("kinds", "combine"), [(SUMS, pt.add), (PRODUCTS, pt.mul)])
def test_only_long_and_shared_sums_are_not_expanded(kinds, combine):
    terms = [pt.vector() for _ in range(MOST_TERMS + 1)]
    inner = combine(terms[0], terms[1])
    whole = inner
    for term in terms[2:]:
        whole = combine(whole, term)
    unshared = FunctionGraph(terms, [whole], clone=False)
    assert set(terms_of(unshared, whole, kinds)) == set(terms)
    shared = FunctionGraph(terms, [whole, inner], clone=False)
    assert terms_of(shared, whole, kinds) is None


def test_stable_forms_of_sigmoids():
    x = pt.vector("x")
    f = pytensor.function([x], pt.sigmoid(x) * pt.exp(-x), mode="ONNX")
    np.testing.assert_allclose(f([-800.0, 0.0]), [1.0, 0.5])


@pytest.mark.parametrize("factor", [1.0, 2.0], ids=["alone", "in a product"])
def test_a_product_with_zeros_of_another_size_fails(factor):
    x = pt.matrix("x", shape=(5, 1))
    zeros = pytensor.shared(np.zeros((7, 1)), shape=(None, None))
    with pytest.raises(Exception, match=r"broadcast|[Ii]ncompatible|Mul"):
        compile_onnx([x], pt.exp(x) * zeros * factor, verify=False)(np.ones((5, 1)))
