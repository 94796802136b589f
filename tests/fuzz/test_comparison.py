import numpy as np

from tests.fuzz.cases import Case
from tests.fuzz.comparison import check
from tests.fuzz.graphs import Graph
from tests.fuzz.quietness import quiet
from tests.fuzz.references import Reference


def test_the_evaluator_of_a_standard_model_begins_with_the_first_state():
    graph = Graph()
    # Without its guards ONNX Runtime's Unique drops NaN: the evaluator of onnx is asked.
    value, new = np.array([np.nan, 1.0, 2.0]), np.ones(3)
    kind = "pytensor.shared(np.array([nan, 1.0, 2.0]), shape=(3,))"
    state = graph.add_leaf("v0", kind, value)
    given = graph.add_leaf("v1", "pt.tensor('v1', shape=(3,))", new)
    with quiet():
        assert graph.add("pt.unique(v0)")
        assert graph.add("v1 + 1")
        found, update = graph.terms[-2:]
        check(Case(graph, [found], [(state, update)], options={"target": "standard"}))
    assert given in graph.inputs


def test_a_rewrite_of_pytensor_that_fails_is_left_out():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', dtype='int64', shape=(None, None))", np.ones((2, 3), int))
    with quiet():
        # PyTensor flips before it sums, and forgets the dtype of the sum.
        assert graph.add("pt.sum(v0, axis=-1, dtype='int8')")
        assert graph.add("pt.flip(v1, axis=0)")
        case = Case(graph, graph.terms[-1:], [])
        assert Reference(case, case.arguments).has_failing_rewrite
        check(case)
