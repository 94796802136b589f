"""Rewrites are not asked about nodes that they do not track."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter, node_rewriter
from pytensor.graph.rewriting.unify import OpPattern
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot, Sum, exp, log

from pytensor_onnx import export_onnx
from pytensor_onnx.rewriting.engine.walkers import Visit, WithOps


def graph() -> FunctionGraph:
    x = pt.vector("x")
    return FunctionGraph([x], [pt.exp(pt.exp(x)).sum()], clone=False)


def asked_by(*tracks, **options) -> list[str]:
    """Return the Ops that a rewrite is asked about, which replaces none."""
    asked = []

    @node_rewriter(list(tracks) or None)
    def ask(fgraph, node):
        asked.append(str(node.op))

    Visit(ask, **options).rewrite(graph())
    return asked


@pytest.mark.parametrize(
    ("tracks", "expected"),
    [
        ([Elemwise], ["Exp", "Exp"]),
        ([exp], ["Exp", "Exp"]),
        ([OpPattern(Elemwise, scalar_op=exp.scalar_op)], ["Exp", "Exp"]),
        ([log], []),
        ([Sum], ["Sum{axes=None}"]),
        ([Sum, Elemwise], ["Exp", "Exp", "Sum{axes=None}"]),
        ([], ["Exp", "Exp", "Sum{axes=None}"]),
    ],
)
def test_a_rewrite_is_asked_about_what_it_tracks(tracks, expected):
    assert asked_by(*tracks, order="in_to_out") == expected
    assert sorted(asked_by(*tracks)) == expected


def test_a_graph_without_a_tracked_op_is_not_walked(monkeypatch):
    @node_rewriter([Sum])
    def rewrite(fgraph, node):
        raise AssertionError

    x = pt.vector("x")
    visit, without = Visit(rewrite), FunctionGraph([x], [pt.exp(x)], clone=False)

    def attach(*args, **kwargs):
        raise AssertionError("walked")

    monkeypatch.setattr(visit, "attach_updater", attach)
    visit.rewrite(without)
    with pytest.raises(AssertionError, match="walked"):
        visit.rewrite(graph())


def is_log(node):
    return node.op == log


@pytest.mark.parametrize(
    ("where", "expected"), [(lambda node: node.op == exp, ["Exp", "Exp"]), (is_log, [])]
)
def test_a_rewrite_is_asked_about_nodes_that_meet_the_condition(where, expected):
    assert asked_by(Elemwise, Sum, where=where) == expected


def test_a_graph_without_a_node_that_meets_the_condition_is_not_walked(monkeypatch):
    @node_rewriter([Elemwise])
    def rewrite(fgraph, node):
        raise AssertionError

    visit = Visit(rewrite, where=is_log)
    monkeypatch.setattr(visit, "attach_updater", None)
    visit.rewrite(graph())


def test_properties_of_an_op_are_checked_before_a_walk(monkeypatch):
    @node_rewriter([OpPattern(Elemwise, scalar_op=log.scalar_op)])
    def rewrite(fgraph, node):
        raise AssertionError

    visit = Visit(rewrite)
    monkeypatch.setattr(visit, "attach_updater", None)
    visit.rewrite(graph())


@pytest.mark.parametrize(("classes", "expected"), [((Sum,), 1), ((Dot, Sum), 1), ((Dot,), 0)])
def test_a_graph_rewrite_runs_on_graphs_with_an_op_of_its_classes(classes, expected):
    count = 0

    @graph_rewriter
    def rewrite(fgraph):
        nonlocal count
        count += 1

    WithOps(rewrite, *classes).rewrite(graph())
    assert count == expected


@pytest.mark.parametrize(("once", "expected"), [(True, 1), (False, 3)])
def test_nodes_that_a_rewrite_creates_are_visited_unless_once(once, expected):
    count = 0

    @node_rewriter([exp])
    def add_exp(fgraph, node):
        nonlocal count
        count += 1
        return [pt.exp(node.inputs[0]) + 1] if count < 3 else None

    x = pt.vector("x")
    Visit(add_exp, once=once).rewrite(FunctionGraph([x], [pt.exp(x)], clone=False))
    assert count == expected


def test_rewrites_are_applied_in_turn():
    @node_rewriter([exp])
    def to_log(fgraph, node):
        return [pt.log(node.inputs[0])]

    @node_rewriter([log])
    def to_sqrt(fgraph, node):
        return [pt.sqrt(node.inputs[0])]

    rewritten = graph()
    Visit(to_log, to_sqrt).rewrite(rewritten)
    assert sorted(str(node.op) for node in rewritten.apply_nodes) == [
        "Sqrt",
        "Sqrt",
        "Sum{axes=None}",
    ]


def named(variable, name):
    variable.name = name
    return variable


def test_rewritten_results_keep_their_names_in_the_file():
    x = pt.matrix("x")
    hidden = named(x * 2 + 0 * x + 1, "hidden")
    program = export_onnx([x], named(pt.exp(pt.maximum(0, hidden)), "y"))
    names = [node.outputs[0].name for node in program.model.graph]
    assert "hidden" in names
    assert names[-1] == "y"


def test_inputs_and_variables_of_the_user_are_not_renamed():
    x, y = pt.vector("x"), pt.vector()
    z = named(x * 1, "z")
    total = y + z
    pytensor.function([x, y], total, mode="ONNX")
    assert (x.name, y.name, z.name, total.name) == ("x", None, "z", None)


def test_names_of_merged_results_do_not_clash():
    x = pt.vector("x")
    first, second = named(pt.exp(x), "first"), named(pt.exp(x), "second")
    program = export_onnx([x], [first + 1, second * 2])
    value = np.array([0.0, 1.0])
    np.testing.assert_allclose(program(value)[0], np.exp(value) + 1, rtol=1e-14)
    names = [v.name for node in program.model.graph for v in node.outputs]
    assert len(names) == len(set(names))
