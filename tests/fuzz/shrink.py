"""Making a failing graph small: fewer outputs, and inputs in place of computed values."""

from collections.abc import Callable, Collection
from dataclasses import replace

from tests.fuzz.cases import Case
from tests.fuzz.graphs import Graph
from tests.fuzz.scripts import needed
from tests.fuzz.terms import Line, Term

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails) -> Case:
    """Return a part of a failing case that fails as well.

    Hypothesis shrinks the numbers that a graph is drawn from, which takes minutes where every try
    compiles two models. Cutting the graph itself takes seconds.
    """
    for output in case.outputs:
        if len(case.outputs) > 1 or case.updates:
            alone = replace(case, outputs=[output], updates=[])
            if fails(alone):
                case = alone
                break
    if case.resized and fails(replace(case, resized="")):
        case = replace(case, resized="")
    for name in case.options:
        others = {key: value for key, value in case.options.items() if key != name}
        if fails(replace(case, options=others)):
            case = replace(case, options=others)
    case = _replayed(case, cut=()) or case
    for name in [t.name for t in reversed(case.graph.terms)]:
        is_leaf = any(t.name == name for t in (*case.graph.inputs, *case.graph.shared))
        if is_leaf or any(t.name == name for t in case.outputs):
            continue
        smaller = _replayed(case, cut={name})
        if smaller is not None and fails(smaller):
            case = smaller
    return case


def _replayed(case: Case, cut: Collection[str]) -> Case | None:
    """Build a case again from the terms that it needs, with inputs in place of some of them."""
    terms = {t.name: t for t in (*case.graph.inputs, *case.graph.terms)}
    leaves = {name for name, term in terms.items() if term.variable.owner is None}
    wanted = {t.name for t in case.outputs} | {t.name for pair in case.updates for t in pair}
    lines, graph = list[Line](), Graph()
    for line in case.graph.lines:
        if set(line.names) & set(cut):
            if len(line.names) > 1:
                return None
            lines.append(Line(line.names, _input_code(terms[line.names[0]])))
        else:
            lines.append(line)
    for line in needed(lines, wanted):
        name = line.names[0]
        if name in case.graph.generators:
            graph.add_generator(line.code, name)
        elif name in leaves or name in cut:
            graph.add_leaf(name, line.code, terms[name].value, terms[name].layout)
        elif not graph.add(line.code, first_name=name, is_loss=line.is_loss):
            if not graph.failing:
                return None
            graph.take_failing()
    found = {t.name: t for t in (*graph.terms, *graph.ends)}
    return Case(
        graph,
        [found[t.name] for t in case.outputs],
        [(found[a.name], found[b.name]) for a, b in case.updates],
        case.resized,
        case.options,
    )


def _input_code(term: Term) -> str:
    return f"pt.tensor({term.name!r}, dtype={term.dtype!r}, shape={term.static})"
