"""References of a graph, and excused differences."""

import numpy as np
import pytensor
import pytest

from pytensor_onnx.ops.random import draw_reference as draws
from tests.fuzz.cases import Case
from tests.fuzz.graphs import Graph
from tests.fuzz.quietness import quiet
from tests.fuzz.references import Disagreement, Reference


def reference(code: str, value: list[float], kind: str = "pt.tensor('v0', shape=(None,))"):
    graph = Graph()
    graph.add_leaf("v0", kind, np.array(value))
    assert graph.add(code)
    return Reference(Case(graph, graph.terms[-1:], []), [t.value for t in graph.inputs])


def test_pytensors_rewrites_excuse_no_wrong_finite_number():
    with quiet():
        x = [-0.5, 1.5]
        floor = reference("v0 // 1", x)
        floor.compare(lambda _: [np.array([-1.0, 1.0])], "")
        with pytest.raises(Disagreement):
            floor.compare(lambda _: [np.array(x)], "")


def test_pytensors_rewrites_excuse_results_for_infinities_and_nan():
    with quiet():
        product = reference("v0 * 0", [np.nan])
        for result in (np.nan, 0.0):
            product.compare(lambda _, result=result: [np.array([result])], "")
            assert product.case.is_rewritten == (result == 0)
        with pytest.raises(Disagreement):
            product.compare(lambda _: [np.ones(1)], "")


def test_a_rewrite_that_fails_keeps_no_other_from_excusing_a_result():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,), dtype='uint64')", np.array([0], "u8"))
    with quiet():
        # PyTensor fails to write the negative as a product: -1 is no uint64.
        assert graph.add("v0 * np.uint64(2**64 - 1) - v0")
        assert graph.add("v1 / v1")
        ratio = Reference(Case(graph, graph.terms[-1:], []), [graph.inputs[0].value])
        for result in (np.nan, 1.0):
            ratio.compare(lambda _, result=result: [np.array([result])], "")
        with pytest.raises(Disagreement):
            ratio.compare(lambda _: [np.zeros(1)], "")


def test_each_element_is_excused_by_itself():
    with quiet():
        product = reference("v0 * 0", [np.nan, np.inf])
        product.compare(lambda _: [np.array([0.0, np.nan])], "")
        with pytest.raises(Disagreement):
            product.compare(lambda _: [np.array([0.0, 1.0])], "")


def test_a_number_of_positions_that_nan_decides_is_excused():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,))", np.array([np.inf, 2.0]))
    with quiet():
        assert graph.add("v0 - v0")
        assert graph.add("pt.nonzero(v1)[0]")
        positions = Reference(Case(graph, graph.terms[-1:], []), [graph.inputs[0].value])
        for result in ([0], []):
            positions.compare(lambda _, result=result: [np.array(result, dtype="int64")], "")
        for result in ([1], [0, 1]):
            with pytest.raises(Disagreement):
                positions.compare(lambda _, result=result: [np.array(result)], "")


def test_nan_is_excused_in_loops_that_pytensor_rewrites_wrongly():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,))", np.array([np.nan]))
    until = "__import__('sys').modules['pytensor.scan.utils'].until(pt.ge(i, 0))"
    with quiet():
        assert graph.add("v0 * 0")
        assert graph.add(
            f"pytensor.scan(lambda i, y: (0.5 * y + i, {until}), [pt.arange(3)], [v1], "
            "return_updates=False)[-2:]"
        )
        # PyTensor's rewrites give a second step.
        last = Reference(Case(graph, graph.terms[-1:], []), [graph.inputs[0].value])
        assert last.rewritten[0].shape == (2, 1)
        for result in (0.0, np.nan):
            last.compare(lambda _, result=result: [np.full((1, 1), result)], "")
        with pytest.raises(Disagreement):
            last.compare(lambda _: [np.ones((1, 1))], "")


def test_each_result_is_excused_by_itself():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,))", np.array([np.nan]))
    graph.add_leaf("v1", "pt.tensor('v1', shape=(None,))", np.array([0.5]))
    with quiet():
        assert graph.add("v0 * 0")
        assert graph.add("v1 // 1")
        case = Case(graph, graph.terms[-2:], [])
        both = Reference(case, [t.value for t in graph.inputs])
        # PyTensor's rewrites make 0 of the product, and 0.5 of the quotient.
        both.compare(lambda *_: [np.array([0.0]), np.array([0.0])], "")
        with pytest.raises(Disagreement):
            both.compare(lambda *_: [np.array([0.0]), np.array([0.5])], "")


def test_a_shared_variable_has_its_first_value_in_all_references():
    with quiet():
        product = reference("v0 * 0 + v0", [np.nan, 2.0], "pytensor.shared(np.array([nan, 2.0]))")
        product.case.graph.shared[0].variable.set_value(np.ones(2))
        np.testing.assert_array_equal(product.rewritten[0], [np.nan, 2.0])


def test_an_error_may_be_left_out_where_the_value_of_a_shared_variable_shows_it():
    graph = Graph()
    graph.add_leaf("v0", "pytensor.shared(np.array([0]), shape=(None,))", np.array([0]))
    with quiet():
        assert not graph.add("v0[3].set(0)")
        write = Reference(Case(graph, [graph.take_failing()], []), [])
        write.compare(lambda: [np.array([0])], "", frozen=True)
        for result, frozen in ((0, False), (1, True)):
            with pytest.raises(Disagreement):
                write.compare(lambda result=result: [np.array([result])], "", frozen=frozen)


def test_graphs_that_pytensor_cannot_compile_are_no_failures_to_repeat():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', dtype='float64', shape=())", np.array(2.0))
    graph.add_leaf("v1", "pt.tensor('v1', dtype='int64', shape=())", np.array(1))
    assert graph.add("pt.reshape(v0, (v1, v1), ndim=2)")
    with quiet():
        assert not graph.add(
            "pytensor.scan(lambda e, y: 0.5 * y + e, [v2], [pt.zeros((v2.shape[1],))], "
            "return_updates=False)"
        )
    assert not graph.failing


def test_a_result_that_is_wider_than_its_type_hides_no_other():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,))", np.array([np.nan]))
    graph.add_leaf("v1", "pt.tensor('v1', dtype='bool', shape=(None,))", np.ones(2, bool))
    with quiet():
        assert graph.add("v0 * 0")
        assert graph.add("called(lambda v1: pt.cumsum(v1), v1)")
        case = Case(graph, [*graph.terms[-1:], *graph.ends], [])
        both = Reference(case, [t.value for t in graph.inputs])
        both.compare(lambda *_: [np.zeros(1), np.array([1, 2])], "")
        with pytest.raises(Disagreement):
            both.compare(lambda *_: [np.zeros(1), np.array([True, True])], "")


def test_one_result_is_excused_where_pytensors_rewrites_fail_for_another(monkeypatch):
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None,))", np.array([0.0, 1.0]))
    graph.add_leaf("v1", "pt.tensor('v1', shape=(None,))", np.array([0.0, 1.0]))
    with quiet():
        assert graph.add("called(lambda v0: v0 / v0, v0)")
        assert graph.add("v1 + 1")
        both = Reference(Case(graph, graph.terms[-2:], []), [t.value for t in graph.inputs])
        function = pytensor.function

        def failing(inputs, outputs, **options):
            if graph.terms[-1].variable in outputs or len(outputs) > 1:
                raise ValueError
            return function(inputs, outputs, **options)

        monkeypatch.setattr(pytensor, "function", failing)
        both.compare(lambda *_: [np.ones(2), np.array([1.0, 2.0])], "")
        for wrong in ([np.ones(2), np.ones(2)], [np.zeros(2), np.array([1.0, 2.0])]):
            with pytest.raises(Disagreement):
                both.compare(lambda *_, wrong=wrong: wrong, "")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        # PyTensor reads the only element of an axis of size one for every index.
        ("{g}.normal(size=(3,))[1][None][v0]", [0.25, 0.5, 0.75]),
        # PyTensor makes one of the quotient of zeros.
        ("{g}.normal((v0 - 3) / (v0 - 3), size=(3,))[1]", [1.25, 1.5, 1.75]),
    ],
)
def test_draws_of_rewritten_graphs_are_those_of_a_model(code, found, monkeypatch):
    monkeypatch.setattr(draws, "normal", lambda state, n, dtype: (state, np.arange(1.0, n + 1) / 4))
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', dtype='int64', shape=())", np.array(3))
    with quiet():
        is_known = graph.add(code.format(g=graph.add_generator()))
        drawn = graph.terms[-1] if is_known else graph.take_failing()
        draw = Reference(Case(graph, [drawn], []), [np.array(3)])
        draw.compare(lambda _: [np.array(found)], "")
        with pytest.raises(Disagreement):
            draw.compare(lambda _: [np.ones(3)], "")
