"""Random graphs, built as the Python code that makes them, with the values of all variables."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

import pytensor_onnx
from pytensor_onnx import nn
from tests.conftest import called
from tests.dispatch.values import DTYPES
from tests.fuzz.drawn_values import drawn_values
from tests.fuzz.evaluation import Evaluation
from tests.fuzz.implementation import NoReferenceError
from tests.fuzz.layouts import LAYOUTS, literal_of
from tests.fuzz.terms import Choices, Line, Term

LARGEST_SIZE, LARGEST_RANK = 1000, 5
SIZES = (3, 2, 1, 4, 0, 5)
NAMESPACE = {
    **{"np": np, "pytensor": pytensor, "pt": pt, "OpFromGraph": OpFromGraph, "nn": nn},
    **{"pytensor_onnx": pytensor_onnx, "called": called, "nan": np.nan, "inf": np.inf},
}
"""The names that the code of a graph uses, beside those of its variables."""


@dataclass
class Graph:
    """A graph that grows by one operation at a time; operations that make no sense are left out.

    Attributes
    ----------
    choices
        Numbers by which the operation being added makes its choices.
    terms
        All variables so far.
    inputs, shared
        The inputs, and the shared variables.
    generators
        Shared random generators, by their names.
    failing
        What fails in PyTensor, with its code; nothing depends on it.
    ends
        Losses and gradients at extreme arguments, and results that are wider than their types say;
        nothing depends on them.
    lines
        Code that makes the graph: the names assigned and the expression.
    """

    choices: Choices = field(default_factory=Choices)
    terms: list[Term] = field(default_factory=list)
    inputs: list[Term] = field(default_factory=list)
    shared: list[Term] = field(default_factory=list)
    generators: dict[str, Variable] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    failing: list[tuple[Term, Line]] = field(default_factory=list)
    ends: list[Term] = field(default_factory=list)
    evaluation: Evaluation = field(default_factory=Evaluation)
    _count: int = 0
    namespace: dict[str, Any] = field(default_factory=lambda: dict(NAMESPACE))

    def apply(self, operation: Callable[["Graph"], str | None], numbers: Iterable[int]) -> bool:
        """Add an operation, decided by numbers, and return whether it made sense.

        The operation returns code, None if it makes no sense, and an empty text if all is done.
        """
        self.choices = Choices(numbers)
        try:
            code = operation(self)
        except REFUSED:
            return False
        if code and self.choices.one_in(6):
            code = self._in_function(code)
        return code == "" or (code is not None and self.add(code))

    def _in_function(self, code: str) -> str:
        """Return code that does the same in a function, which knows its arguments by type only."""
        names = list(dict.fromkeys(re.findall(r"\bv\d+\b", code)))
        if not names or "pt.grad(" in code:
            return code
        arguments = ", ".join(names)
        return f"called(lambda {arguments}: {code}, {arguments})"

    def add(self, code: str, first_name: str | None = None, *, is_loss: bool = False) -> bool:
        """Evaluate code, add its result, and return whether it made sense."""
        self._count = int(first_name[1:]) if first_name else self._count
        try:
            result = eval(code, dict(self.namespace))
            variables = list(result) if isinstance(result, list | tuple) else [result]
            usable = [v for v in variables if hasattr(v.type, "dtype")]
            if not usable or any(
                v.type.dtype not in DTYPES or v.type.ndim > LARGEST_RANK for v in usable
            ):
                return False
        except REFUSED:
            return False
        try:
            self.evaluation.evaluate(usable)
        except NoReferenceError:
            return False
        except REFUSED:
            self._add_failing(usable, code, is_list=isinstance(result, list | tuple))
            return False
        if not is_loss and any(self.evaluation.rounding(v) > 1 for v in usable):
            return False
        if not all(_is_comparable(v, self.evaluation.value(v)) for v in usable):
            return False
        names = []
        for variable in variables:
            term = self._name(variable, f"v{self._count}")
            term.is_loss = is_loss
            names.append(term.name)
            if variable in usable:
                is_end = is_loss or term.value.dtype != term.dtype
                (self.ends if is_end else self.terms).append(term)
        self.lines.append(Line(names, code, isinstance(result, list | tuple), is_loss))
        return True

    def _add_failing(self, variables: Sequence[Variable], code: str, *, is_list: bool) -> None:
        """Keep what fails in PyTensor, to be compared alone."""
        terms = [self._name(variable, f"v{self._count}") for variable in variables]
        self.failing.append((terms[0], Line([t.name for t in terms], code, is_list)))

    def take_failing(self) -> Term:
        """Let the graph end with what fails in PyTensor."""
        term, line = self.failing[0]
        self.lines.append(line)
        self.terms.append(term)
        return term

    def _name(self, variable: Variable, name: str) -> Term:
        self._count = max(self._count, int(name[1:])) + 1
        self.namespace[name] = variable
        value = self.evaluation.values.get(variable, [None])[0]
        return Term(name, variable, np.asarray(value), variable in self.evaluation.exact)

    @property
    def long_inputs(self) -> list[Term]:
        """Inputs that are too long for most operations."""
        return [t for t in self.inputs if t.value.size > LARGEST_SIZE]

    # What operations choose their operands by.

    def term(
        self,
        dtypes: Sequence[str] = DTYPES,
        *,
        rank: range = range(LARGEST_RANK + 1),
        exact: bool = False,
        where: Callable[[Term], bool] = lambda _: True,
    ) -> Term:
        """Return a term of this kind, rather a new one; an input is made where there is none.

        Raises
        ------
        ValueError
            If the input is not of this kind either.
        """
        fitting = [
            t
            for t in reversed(self.terms)
            if t.dtype in dtypes and t.ndim in rank and (t.exact or not exact) and where(t)
        ]
        if not fitting or self.choices.one_in(12):
            shape = [self.choices.of(SIZES) for _ in range(self._rank(rank))]
            leaf = self.leaf(self.choices.of(_float64_first(dtypes)), shape)
            if where(leaf):
                return leaf
            if not fitting:
                raise ValueError("no term is of this kind")
        near = fitting[:3] if self.choices.below(2) == 0 else fitting
        return self.choices.of(near)

    def _rank(self, rank: range) -> int:
        likely = [r for r in (2, 1, 3, 0) if r in rank]
        return self.choices.of(likely) if likely else rank[0]

    def partner(self, x: Term, dtypes: Sequence[str] = DTYPES, *, exact: bool = False) -> Term:
        """Return a term that PyTensor broadcasts against another."""
        fitting = [
            t
            for t in reversed(self.terms)
            if t.dtype in dtypes and (t.exact or not exact) and t.broadcasts_to(x)
        ]
        if fitting and not self.choices.one_in(4):
            return self.choices.of(fitting)
        dropped = self.choices.below(x.ndim + 1) if self.choices.one_in(3) else 0
        shape = list(x.shape[dropped:])
        ones = [self.choices.one_in(4) for _ in shape]
        shape = [1 if one else size for size, one in zip(shape, ones, strict=True)]
        return self.leaf(self.choices.of(_float64_first(dtypes)), shape, ones)

    def axis(self, x: Term) -> int:
        """Return an axis of a term, counted from either end."""
        return self.choices.below(2 * x.ndim) - x.ndim

    def axes(self, x: Term) -> str:
        """Return the code of an ``axis`` argument: none, one or several."""
        if x.ndim == 0 or self.choices.one_in(3):
            return "None"
        if self.choices.one_in(3):
            return str(tuple(self.choices.some(range(x.ndim))))
        return str(self.axis(x))

    def whole(self, value: int) -> str:
        """Return the code of a whole number: a literal, an input, or a size in the graph."""
        kind = self.choices.below(5)
        if kind == 3:
            return self.given("int64", np.asarray(value)).name
        if kind == 4:
            sizes = [
                f"{t}.shape[{axis}]"
                for t in self.terms
                for axis, size in enumerate(t.shape)
                if size == value
            ]
            return self.choices.of(sizes) if sizes else str(value)
        return str(value)

    # Inputs, constants and shared variables.

    def leaf(
        self, dtype: str, shape: Sequence[int], ones: Sequence[bool] = (), *, finite: bool = False
    ) -> Term:
        """Make an input, a constant or a shared variable with values of its own."""
        return self.given(dtype, drawn_values(self.choices, dtype, shape, finite=finite), ones)

    def given(self, dtype: str, value: np.ndarray, ones: Sequence[bool] = ()) -> Term:
        """Make an input, a constant or a shared variable of a given value.

        The axes in `ones` have size one by their type.
        """
        value = np.asarray(value, dtype=dtype)
        ones = list(ones) or [False] * value.ndim
        layout = self.choices.of(LAYOUTS) if self.choices.one_in(4) else ""
        literal = literal_of(value, layout)
        kind = self.choices.below(8) if value.size <= LARGEST_SIZE else 0
        static = kind in (1, 4)
        sizes = [
            size if one or static or (size == 1 and self.choices.below(2)) else None
            for size, one in zip(value.shape, ones, strict=True)
        ]
        shape = f"({''.join(f'{size}, ' for size in sizes)})"
        name = f"v{self._count}"
        if kind == 5:
            code = f"pt.constant({literal})"
        elif kind in (6, 7):
            code = f"pytensor.shared({literal}, name={name!r}, shape={shape})"
        else:
            code = f"pt.tensor({name!r}, dtype={dtype!r}, shape={shape})"
        return self.add_leaf(name, code, value, layout)

    def add_leaf(self, name: str, code: str, value: np.ndarray, layout: str = "") -> Term:
        """Add what code makes, which depends on nothing."""
        variable = eval(code, dict(self.namespace))
        self.evaluation.give(variable, value)
        term = self._name(variable, name)
        term.layout = layout
        if term.value.size <= LARGEST_SIZE:
            self.terms.append(term)
        self.lines.append(Line([name], code))
        if isinstance(variable, SharedVariable):
            self.shared.append(term)
        elif not isinstance(variable, Constant):
            self.inputs.append(term)
        return term

    def add_generator(self, code: str = "", name: str = "") -> str:
        """Add a shared random generator that code makes, and return its name."""
        name = name or f"v{self._count}"
        code = code or f"pt.random.shared_rng(seed={self.choices.below(8)}, name={name!r})"
        variable = eval(code, dict(self.namespace))
        self.evaluation.give(variable, variable.get_value())
        self._name(variable, name)
        self.generators[name] = variable
        self.lines.append(Line([name], code))
        return name


REFUSED = (
    *(TypeError, ValueError, NotImplementedError, IndexError, AssertionError, ZeroDivisionError),
    *(AttributeError, OverflowError, pytensor.gradient.NullTypeGradError),
    pytensor.gradient.DisconnectedInputError,
)


def _is_comparable(variable: Variable, value: Any) -> bool:
    if np.size(value) > LARGEST_SIZE:
        return False
    if variable.type.dtype == "float16" and np.isinf(value).any():
        # The runtime computes float16 in float32, and joins casts: nothing overflows.
        return False
    # PyTensor gives some empty results a type that they do not have.
    sizes = zip(getattr(variable.type, "shape", ()), np.shape(value), strict=True)
    return all(static in (None, size) for static, size in sizes)


def _float64_first(dtypes: Sequence[str]) -> list[str]:
    first = [d for d in ("float64", "int64", "bool", "float32") if d in dtypes]
    return [*first, *(d for d in dtypes if d not in first)]
