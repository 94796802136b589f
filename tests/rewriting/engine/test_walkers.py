"""Rewrites are not asked about nodes that they do not track."""

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter, node_rewriter
from pytensor.graph.rewriting.unify import OpPattern
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot, Sum, exp, log

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
