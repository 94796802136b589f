"""Hypothesis strategy for random graphs: any list of numbers makes a graph."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from pytensor.tensor.variable import TensorVariable

from tests.fuzz.cases import Case
from tests.fuzz.graphs import Graph
from tests.fuzz.operations import OPERATIONS, loops
from tests.fuzz.terms import Choices, Term

SHORTEST, LONGEST = 5, 30
LOOPS = [i for i, operation in enumerate(OPERATIONS) if operation.__module__ == loops.__name__]

Step = tuple[int, bytes]


def steps() -> st.SearchStrategy[list[Step]]:
    """Draw what operations to apply, each with the numbers that it is decided by."""
    step = st.tuples(st.integers(0, len(OPERATIONS) - 1), st.binary(min_size=16, max_size=16))
    return st.lists(step, min_size=2 * SHORTEST, max_size=2 * LONGEST)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a graph with one to four outputs."""
    return build(draw(steps()), draw(st.binary(min_size=16, max_size=16)))


@st.composite
def cases_with_loops(draw: st.DrawFn) -> Case:
    """Draw a graph whose last steps are loops or branches, or use those before."""
    loop = st.tuples(st.sampled_from(LOOPS), st.binary(min_size=16, max_size=16))
    drawn = [
        *draw(steps())[:8],
        *draw(st.lists(loop, min_size=1, max_size=3)),
        *draw(steps())[:4],
        draw(loop),
    ]
    return build(drawn, draw(st.binary(min_size=16, max_size=16)))


def build(drawn: Sequence[Step], numbers: bytes) -> Case:
    """Apply operations, and choose outputs and updates."""
    graph = Graph()
    applied = 0
    for position, decisions in drawn:
        applied += graph.apply(OPERATIONS[position], decisions)
        if applied == LONGEST:
            break
    choices = Choices(numbers)
    if graph.failing and choices.one_in(3):
        return Case(graph, [graph.take_failing()], [], options=_options(graph, choices))
    computed = [t for t in graph.terms if t.variable.owner is not None]
    outputs = computed[-1:]
    for _ in range(choices.below(4)):
        if computed:
            outputs.append(choices.of(computed))
    outputs += graph.ends
    updates = []
    for state in graph.shared:
        if choices.below(2):
            new = _update_of(graph, state, choices)
            if new is not None:
                updates.append((state, new))
    resized = choices.of(("", "larger", "", "empty"))
    return Case(graph, list(dict.fromkeys(outputs)), updates, resized, _options(graph, choices))


def _options(graph: Graph, choices: Choices) -> dict[str, Any]:
    """Return how the model is exported: mostly in one way that is not the default."""
    options: dict[str, Any] = {}
    if choices.below(4):
        options["opset_version"] = choices.of(range(18, 27))
    if choices.below(2):
        # The standard does not say that a maximum pool keeps NaN.
        loses_nan = any("max_pool" in line.code for line in graph.lines)
        is_finite = not graph.evaluation.not_finite
        options["target"] = choices.of(
            ("web", "webgpu", "standard") if is_finite or not loses_nan else ("web", "webgpu")
        )
        options["precision"] = "float64"
    if choices.one_in(4):
        options["inline_functions"] = True
    if choices.one_in(4) and not graph.evaluation.not_finite:
        options["assume_finite"] = True
    return options


def _update_of(graph: Graph, state: Term, choices: Choices) -> Term | None:
    fitting = [
        t
        for t in graph.terms
        if isinstance(t.variable, TensorVariable)
        and t.variable.owner is not None
        and t.dtype == state.dtype
        and state.variable.type.is_super(t.variable.type)
        and state.variable.type.broadcastable == t.variable.type.broadcastable
    ]
    return choices.of(fitting) if fitting else None
