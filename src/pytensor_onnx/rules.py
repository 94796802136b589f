"""The ledger of rules: what each rewrite, pass, guard and exclusion does, and why it is there.

Rules are declared where they are implemented. `docs/reference/rules.md` is made from the
ledger, and `scripts/ablate.py` switches off one rule after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import UnionType
from typing import Any, Literal, get_args

from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, NodeRewriter, node_rewriter
from pytensor.graph.rewriting.unify import OpPattern

Kind = Literal["rewrite", "pass", "guard", "exclusion"]
"""A rewrite of PyTensor graphs, a pass over ONNX models, a condition on a rewrite of PyTensor, or
a rewrite of PyTensor that is left out."""
Family = Literal[
    "elementwise",
    "reductions",
    "shape",
    "indexing",
    "sorting",
    "products",
    "linalg",
    "special",
    "loops",
    "control_flow",
    "networks",
    "random",
    "signal",
    "sparse",
    "complex",
    "structure",
]
"""Kind of operations that a rule is about; ``structure`` for rules about all of them."""
Purpose = Literal["correctness", "conversion", "size", "speed", "compile time"]


@dataclass(frozen=True)
class Rule:
    """One rule of the conversion.

    Attributes
    ----------
    name
        Unique name: of its function, or of the rewrite of PyTensor that it concerns.
    kind, family, purpose
        Kind of rule, family of operations, and purpose of the rule.
    identity
        The equation that it applies, as one formula or phrase.
    requires, ensures
        Conditions before and after it.
    begins_at
        Ops of PyTensor, or operators of ONNX, without which it changes nothing; none if it looks at
        all of them.
    measured
        Where the reason was measured or reported.
    """

    name: str
    kind: Kind
    family: Family
    purpose: Purpose
    identity: str
    requires: str = ""
    ensures: str = ""
    begins_at: tuple[str, ...] = ()
    measured: str = ""

    @property
    def is_off(self) -> bool:
        """Whether the rule is switched off by `without`."""
        return self.name in _off

    @property
    def is_recorded(self) -> bool:
        """Whether changes are counted, within `recorded`."""
        return bool(_counters)

    def note(self) -> None:
        """Count a change that the rule made, within `recorded`."""
        for counter in _counters:
            counter[self.name] += 1


_ledger: dict[str, Rule] = {}
_off: set[str] = set()
_counters: list[Counter[str]] = []


def declare(rule: Rule) -> Rule:
    """Add a rule to the ledger.

    Raises
    ------
    ValueError
        If another rule has its name.
    """
    if rule.name in _ledger:
        raise ValueError(f"there are two rules of the name {rule.name!r}")
    for value, kinds in ((rule.kind, Kind), (rule.family, Family), (rule.purpose, Purpose)):
        if value not in get_args(kinds):
            raise ValueError(f"{rule.name}: {value!r} is none of {', '.join(get_args(kinds))}")
    _ledger[rule.name] = rule
    return rule


def ledger() -> dict[str, Rule]:
    """Return all rules by their names.

    Rules of optional packages, and passes, are declared when their modules are imported.
    """
    return dict(_ledger)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Switch rules off, for a measurement or a test.

    Parameters
    ----------
    names
        Names of rules. A guard that is off lets PyTensor's rewrite run everywhere; a rewrite of
        PyTensor whose exclusion is off runs too.

    Raises
    ------
    KeyError
        If no rule has the name.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, pipeline
    >>> from pytensor_onnx.rules import without
    >>> x = pt.matrix("x")
    >>> with without("fuse_gemm"):
    ...     program = export_onnx([x], x @ x.T, verify=False)
    >>> [node.op_type for node in program.model.graph]
    ['Transpose', 'MatMul']
    """
    for name in names:
        _ledger[name]
    added = set(names) - _off
    _off.update(added)
    try:
        yield
    finally:
        _off.difference_update(added)


@contextmanager
def recorded() -> Iterator[Counter[str]]:
    """Count the changes that each rule makes: yield a counter of their names."""
    counter: Counter[str] = Counter()
    _counters.append(counter)
    try:
        yield counter
    finally:
        _counters[:] = [other for other in _counters if other is not counter]


def rewrites_nodes(
    tracks: Sequence[Any] | None,
    *,
    family: Family,
    purpose: Purpose,
    identity: str,
    **description: Any,
) -> Callable[[Callable], NodeRewriter]:
    """Declare a rule and make its function PyTensor's rewriter of single nodes.

    Parameters
    ----------
    tracks
        Ops that it begins at, as of `pytensor.graph.node_rewriter`.
    family, purpose, identity, description
        Fields of the `Rule`; its name is that of the function unless the description has one.
    """

    def decorate(function: Callable) -> NodeRewriter:
        described = {"name": function.__name__, "begins_at": names_of(tracks)} | description
        rule = Rule(kind="rewrite", family=family, purpose=purpose, identity=identity, **described)
        return part_of(declare(rule), tracks)(function)

    return decorate


def part_of(rule: Rule, tracks: Sequence[Any] | None) -> Callable[[Callable], NodeRewriter]:
    """Make a function PyTensor's rewriter of single nodes, as a further part of a declared rule.

    Parameters
    ----------
    rule
        Rule that also has other rewriters.
    tracks
        Ops that it begins at, as of `pytensor.graph.node_rewriter`.
    """

    def decorate(function: Callable) -> NodeRewriter:
        @wraps(function)
        def rewrite(fgraph: FunctionGraph, node: Any) -> Any:
            if rule.is_off:
                return None
            result = function(fgraph, node)
            if result and rule.is_recorded:
                rule.note()
            return result

        rewriter = node_rewriter(tracks)(rewrite)
        rewriter.rule = rule
        return rewriter

    return decorate


def rewrites_graphs(
    *, family: Family, purpose: Purpose, identity: str, **description: Any
) -> Callable[[Any], RuleOfGraphs]:
    """Declare a rule and make its function, or its `GraphRewriter`, one that can be switched off.

    Parameters
    ----------
    family, purpose, identity, description
        Fields of the `Rule`; its name is that of the function unless the description has one.
    """

    def decorate(change: Any) -> RuleOfGraphs:
        name = description.pop("name", None) or change.__name__
        rule = declare(Rule(name, "rewrite", family, purpose, identity, **description))
        return RuleOfGraphs(rule, change)

    return decorate


class RuleOfGraphs(GraphRewriter):
    """A rule that rewrites a whole graph.

    Parameters
    ----------
    rule
        Its entry in the ledger.
    change
        A function of the graph, or a `GraphRewriter`.
    """

    def __init__(self, rule: Rule, change: Any) -> None:
        self.rule = rule
        self._change = change
        self.__name__ = getattr(change, "__name__", rule.name)
        self.__doc__ = change.__doc__

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that the rewrite needs."""
        if isinstance(self._change, GraphRewriter) and not self.rule.is_off:
            self._change.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph) -> None:
        """Rewrite a graph in place."""
        if self.rule.is_off:
            return
        apply = self._change.apply if isinstance(self._change, GraphRewriter) else self._change
        before = _contents(fgraph) if self.rule.is_recorded else None
        apply(fgraph)
        if before is not None and before != _contents(fgraph):
            self.rule.note()

    def again(self) -> RuleOfGraphs:
        """Return the same rule as an object of its own, to be registered a second time."""
        return RuleOfGraphs(self.rule, self._change)

    def __str__(self) -> str:
        return self.rule.name


def _contents(fgraph: FunctionGraph) -> tuple[Any, ...]:
    """Return the nodes and outputs of a graph, to tell whether a rewrite changed it.

    A feature that a rewrite attaches counts its own changes.
    """
    operands = {node: (id(node.op), *map(id, node.inputs)) for node in fgraph.apply_nodes}
    return operands, list(fgraph.outputs)


def names_of(tracks: Sequence[Any] | None) -> tuple[str, ...]:
    """Return the names of the Ops that a rewrite begins at.

    Examples
    --------
    >>> from pytensor.tensor.math import Dot, add
    >>> names_of([Dot, add])
    ('Dot', 'Add')
    """
    return tuple(map(_name_of, tracks or ()))


def _name_of(tracked: Any) -> str:
    """Return the name of an Op, of a class of Ops, or of a pattern of them."""
    if isinstance(tracked, OpPattern):
        inner = ", ".join(_name_of(value) for _, value in tracked.parameters)
        name = _name_of(tracked.op_type)
        return f"{name}({inner})" if inner else name
    if isinstance(tracked, UnionType):
        return " | ".join(map(_name_of, tracked.__args__))
    return tracked.__name__ if isinstance(tracked, type) else str(tracked)
