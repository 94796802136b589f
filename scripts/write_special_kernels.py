"""Write the definitions of special functions as C, for the native library.

``python -m scripts.write_special_kernels`` writes ``native/special_functions.inc``: a function of a
number for each definition of one argument and dtype, if its record in ``tests/operations`` has a
kernel and ``native`` has no function of its own. Most functions have no branches. Where negative
numbers are rare, vectors compute the other side, and a function of single numbers all of it, whose
parts of selections are computed only where they are selected.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pytensor.conditional.op import IfElse
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.scalar import basic as ps
from pytensor.tensor.basic import ScalarFromTensor, Split, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Any as AnyElement
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_onnx.dispatch.registry.definition_instance import OPERATORS, Specialised
from pytensor_onnx.functions.registry import DEFINITIONS, definition_of
from pytensor_onnx.kernels.instructions import LOWERINGS
from pytensor_onnx.ops.special.portable import HalfPowerOfTwo
from pytensor_onnx.ops.special.precise import PreciseLog
from tests.operations import OPERATIONS

FILE = Path(__file__).parents[1] / "native" / "special_functions.inc"
TYPES = {"float64": "double", "float32": "float", "bool": "int", "int64": "int64_t"}
SLOW_IN_FLOAT32 = ("Erfc", "Erfinv", "NdtriExp")
"""Definitions whose operators are faster on long arrays of float32."""

IN_C = re.findall(r"[A-Z]\w+\((\w+), \w+_of\)", (FILE.parent / "special.c").read_text())
"""Definitions in whose place stand functions of the native library."""

RARELY_NEGATIVE = ("GammaLn", "Psi", "TriGamma")
"""Definitions in float64 whose outermost selection is that of negative numbers, which are rare."""

TABLES: dict[str, str] = {}
"""Names of the tables of constants, by their declarations."""

FEWEST = 4
"""Operations of a part of a selection from which it is computed only where it is selected."""
LONGEST = 80
"""Characters of an expression that is written in the place of its only use."""

# Patterns of expressions; {f} is the suffix of functions of float32.
PATTERNS: dict[type[Op], str] = {
    ps.Sub: "({} - {})",
    ps.TrueDiv: "({} / {})",
    ps.Neg: "(-{})",
    ps.Abs: "fabs{f}({})",
    ps.Sqrt: "sqrt{f}({})",
    ps.Sqr: "square{f}({})",
    ps.Exp: "exponential{f}({})",
    ps.Log: "logarithm{f}({})",
    PreciseLog: "logarithm{f}({})",
    ps.RoundHalfToEven: "nearbyint{f}({})",
    ps.Floor: "floor{f}({})",
    ps.Sign: "sign{f}({})",
    ps.IsNan: "isnan({})",
    ps.IsInf: "isinf({})",
    ps.LT: "({} < {})",
    ps.GT: "({} > {})",
    ps.LE: "({} <= {})",
    ps.GE: "({} >= {})",
    ps.EQ: "({} == {})",
    ps.NEQ: "({} != {})",
    ps.Invert: "(!{})",
    HalfPowerOfTwo: "half_power_of_two{f}({})",
    ps.Clip: "minimum{f}(maximum{f}({}, {}), {})",
    ps.Reciprocal: "(1 / {})",
    ps.Identity: "{}",
}
JOINED: dict[type[Op], str] = {
    ps.Add: "({} + {})",
    ps.Mul: "({} * {})",
    ps.AND: "({} & {})",
    ps.OR: "({} | {})",
    ps.Maximum: "maximum{f}({}, {})",
    ps.Minimum: "minimum{f}({}, {})",
}


@dataclass(eq=False)
class Term:
    """A number that a function computes: a pattern of other numbers, or a selection of two."""

    number: int
    dtype: str
    pattern: str
    parts: tuple[Term, ...] = ()
    value: Any = None

    @property
    def is_selection(self) -> bool:
        return self.pattern == "select"

    @property
    def is_given(self) -> bool:
        return not self.parts

    @property
    def eager(self) -> tuple[Term, ...]:
        """The parts that are computed in any case."""
        return self.parts[:1] if self.is_selection else self.parts


@dataclass
class Terms:
    """All numbers of a function, each once."""

    found: dict[tuple[Any, ...], Term] = field(default_factory=dict)

    def add(self, pattern: str, dtype: str, *parts: Term, value: Any = None) -> Term:
        key = pattern, dtype, *(part.number for part in parts)
        if key not in self.found:
            self.found[key] = Term(len(self.found), dtype, pattern, parts, value)
        return self.found[key]

    def constant(self, value: Any) -> Term:
        value = np.asarray(value)
        return self.add(_literal(value), value.dtype.name, value=value)

    def array(self, values: Any) -> np.ndarray:
        values = np.asarray(values)
        terms = np.empty(values.shape, object)
        for place in np.ndindex(values.shape):
            terms[place] = self.constant(values[place])
        return terms

    def of_graph(self, graph: FunctionGraph, operands: list[np.ndarray]) -> list[np.ndarray]:
        """Return the arrays of terms that a graph computes."""
        known = dict(zip(graph.inputs, operands, strict=True))
        for node in graph.toposort():
            for x in node.inputs:
                if x not in known:
                    known[x] = self.array(x.data) if hasattr(x.type, "dtype") else x.data
            results = self.of_node(node, [known[x] for x in node.inputs])
            known.update(zip(node.outputs, results, strict=True))
        for x in graph.outputs:
            if x not in known:
                known[x] = self.array(x.data)
        return [known[x] for x in graph.outputs]

    def of_node(self, node: Any, inputs: list[Any]) -> list[np.ndarray]:
        op = node.op
        if isinstance(op, IfElse):
            half = len(inputs[1:]) // 2
            condition = inputs[0]
            pairs = zip(inputs[1 : 1 + half], inputs[1 + half :], strict=True)
            return [self.each(self.select, condition, x, y) for x, y in pairs]
        if isinstance(op, DimShuffle):
            [x] = inputs
            kept = [i for i in op.new_order if i != "x"]
            x = x.reshape([x.shape[i] for i in range(x.ndim) if i not in op.drop]).transpose(
                [sorted(kept).index(i) for i in kept]
            )
            return [x[tuple(None if i == "x" else slice(None) for i in op.new_order)]]
        if isinstance(op, ScalarFromTensor | TensorFromScalar):
            return inputs
        if isinstance(op, AnyElement):
            return [inputs[0].reshape(())]
        if isinstance(op, Split):
            x, sizes = inputs
            ends = np.cumsum([t.value for t in sizes.ravel()])[:-1].astype(int)
            return np.split(x, ends, axis=op.axis)
        if isinstance(op, Subtensor):
            return [self.row(inputs[0], indices_from_subtensor(inputs[1:], op.idx_list))]
        if isinstance(op, Elemwise):
            [variable] = node.outputs
            return [self.each(lambda *p: self.scalar(op.scalar_op, variable, p), *inputs)]
        raise NotImplementedError(f"{op} of {node}")

    def each(self, function: Any, *inputs: np.ndarray) -> np.ndarray:
        wide = np.broadcast_arrays(*inputs)
        result = np.empty(wide[0].shape, object)
        for place in np.ndindex(result.shape):
            result[place] = function(*(x[place] for x in wide))
        return result

    def row(self, x: np.ndarray, indices: Any) -> np.ndarray:
        """Index an array by numbers, or an array of constants by one computed index."""
        indices = [_known(index) for index in indices]
        if not any(isinstance(index, np.ndarray) for index in indices):
            return np.asarray(x[tuple(indices)], object)
        [(axis, index)] = [(i, k) for i, k in enumerate(indices) if isinstance(k, np.ndarray)]
        rows = np.moveaxis(x, axis, -1)
        result = np.empty(rows.shape[:-1], object)
        [index] = index.ravel()
        for place in np.ndindex(result.shape):
            values = [term.value for term in rows[place]]
            table = (
                f"{TYPES[values[0].dtype.name]} {{}}[] = {{{{{', '.join(map(_literal, values))}}}}}"
            )
            name = TABLES.setdefault(table, f"TABLE_{len(TABLES)}")
            # The functions keep their indices in range.
            pattern = f"{name}[{{}}]"
            result[place] = self.add(pattern, values[0].dtype.name, index)
        return result

    def select(self, condition: Term, first: Term, second: Term) -> Term:
        return (
            first if first is second else self.add("select", first.dtype, condition, first, second)
        )

    def scalar(self, op: Op, variable: Any, parts: tuple[Term, ...]) -> Term:
        dtype = variable.type.dtype
        kind = type(op)
        if kind is ps.Switch:
            return self.select(*parts)
        if kind is ps.Cast:
            return parts[0] if parts[0].dtype == dtype else self.cast(parts[0], dtype)
        suffix = "f" if "float32" in (dtype, parts[0].dtype) else ""
        if kind in PATTERNS:
            return self.add(PATTERNS[kind].replace("{f}", suffix), dtype, *parts)
        if kind in JOINED:
            first, *rest = parts
            for part in rest:
                first = self.add(JOINED[kind].replace("{f}", suffix), dtype, first, part)
            return first
        definition = definition_of(kind)
        if definition is None:
            raise NotImplementedError(op)
        dtypes = tuple(part.dtype for part in parts)
        graph = Specialised(definition, {}, dtypes, (dtype,)).graph()
        [result] = self.of_graph(graph, [np.array(part, object) for part in parts])
        return result.item()

    def cast(self, term: Term, dtype: str) -> Term:
        if dtype == "int64":
            return self.add("to_integer({})", dtype, term)
        return self.add(f"(({TYPES[dtype]}){{}})", dtype, term)


def _known(index: Any) -> Any:
    """Return an index as a number if it is one."""
    if isinstance(index, slice):
        return slice(*map(_known, (index.start, index.stop, index.step)))
    if isinstance(index, np.ndarray) and index.item().value is not None:
        return int(index.item().value)
    return index


def _literal(value: np.ndarray) -> str:
    if value.dtype.kind in "bi":
        return str(int(value))
    number = value.item()
    if np.isnan(number):
        return "NAN"
    if np.isinf(number):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    text = np.format_float_scientific(value) if abs(number) >= 1e16 else str(value)
    text += "" if any(c in text for c in ".e") else ".0"
    text += "f" if value.dtype.name == "float32" else ""
    return f"({text})" if text.startswith("-") else text


@dataclass
class Writer:
    """Writes the lines of a function."""

    uses: Counter
    has_branches: bool = True
    texts: dict[Term, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def block(self, target: Term, done: set[Term], indent: str) -> None:
        """Write the statements that compute a term, without the terms that are done."""
        eager = _eager([target], done) if self.has_branches else _all_parts(target)
        while self.has_branches:
            lazy = {
                (term, i): _all_parts(term.parts[i]) - done - eager
                for term in eager
                if term.is_selection
                for i in (1, 2)
            }
            counts = Counter(part for parts in lazy.values() for part in parts)
            shared = [part for part, count in counts.items() if count > 1]
            for parts in lazy.values():
                is_short = sum(not part.is_given for part in parts) < FEWEST
                if is_short and not any("(" in p.pattern[1:] for p in parts):
                    shared += parts
            if not shared:
                break
            eager |= _eager(shared, done | eager)
        done = done | eager
        for term in sorted(eager, key=lambda term: term.number):
            self.write(term, done, indent)

    def write(self, term: Term, done: set[Term], indent: str) -> None:
        if term.is_given:
            self.texts[term] = term.pattern
            return
        name, declared = f"v{term.number}", TYPES[term.dtype]
        if term.is_selection:
            condition, *sides = term.parts
            if all(side in done for side in sides):
                text = (
                    f"({self.texts[condition]} ? {self.texts[sides[0]]} : {self.texts[sides[1]]})"
                )
            else:
                self.lines.append(f"{indent}{declared} {name};")
                for head, side in zip(
                    (f"if ({self.texts[condition]})", "else"), sides, strict=True
                ):
                    self.lines.append(f"{indent}{head} {{")
                    self.block(side, done, indent + "  ")
                    self.lines.append(f"{indent}  {name} = {_bare(self.texts[side])};")
                    self.lines.append(f"{indent}}}")
                self.texts[term] = name
                return
        else:
            text = term.pattern.format(*(self.texts[part] for part in term.parts))
        if self.uses[term] == 1 and len(text) <= LONGEST:
            self.texts[term] = text
            return
        self.lines.append(f"{indent}const {declared} {name} = {_bare(text)};")
        self.texts[term] = name


def _bare(text: str) -> str:
    """Return an expression without the parentheses around it."""
    depth = 0
    for i, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _eager(terms: list[Term], done: set[Term]) -> set[Term]:
    found: set[Term] = set()
    pending = list(terms)
    while pending:
        term = pending.pop()
        if term not in done and term not in found:
            found.add(term)
            pending.extend(term.eager)
    return found


def _all_parts(term: Term) -> set[Term]:
    found: set[Term] = set()
    pending = [term]
    while pending:
        term = pending.pop()
        if term not in found:
            found.add(term)
            pending.extend(term.parts)
    return found


def functions(name: str, dtype: str) -> str:
    """Return the C function of a definition, and perhaps that of all but negative numbers."""
    [definition] = [d for op, d in DEFINITIONS.items() if d.is_own and op.__name__ == name]
    graph = Specialised(definition, {}, (dtype,), (dtype,)).graph()
    terms = Terms()
    x = terms.add("x", dtype)
    [result] = terms.of_graph(graph, [np.array(x, object)])
    target = result.item()
    if name not in RARELY_NEGATIVE:
        return function(f"{name}_{dtype}", dtype, target, has_branches=False)
    condition, near = target.parts[0], target
    while near.is_selection and near.parts[0] is condition:
        near = near.parts[2]
    return "\n\n".join(
        [
            function(f"{name}_{dtype}", dtype, target),
            function(f"{name}_{dtype}_near", dtype, near, has_branches=False),
        ]
    )


def function(name: str, dtype: str, target: Term, has_branches: bool = True) -> str:
    """Return the C function of a term."""
    uses = Counter(part for term in _all_parts(target) for part in term.parts)
    writer = Writer(uses, has_branches)
    writer.block(target, set(), "  ")
    head = f"static inline {TYPES[target.dtype]} {name}({TYPES[dtype]} x) {{"
    return "\n".join([head, *writer.lines, f"  return {_bare(writer.texts[target])};", "}"])


def text() -> str:
    """Return the file."""
    found = [x.accuracy for x in OPERATIONS.values() if x.kernel and x.accuracy]
    # The native library has instructions for some operators, and kernels in C of several arguments.
    names = [
        x.op_type.__name__
        for x in found
        if x.arguments == 1
        and OPERATORS.get(x.op_type) not in LOWERINGS
        and x.op_type.__name__ not in IN_C
    ]
    written = {(name, dtype): functions(name, dtype) for name in names for dtype in dtypes_of(name)}
    tables = [f"static const {table.format(name)};" for table, name in TABLES.items()]
    listed = [
        f"  {'DOUBLE' if name in SLOW_IN_FLOAT32 else 'BOTH'}"
        f"({name}, {'SPLIT' if name in RARELY_NEGATIVE else 'EACH'})"
        for name in names
    ]
    return "\n\n".join(
        [
            "/* Special functions of a number. Written by scripts/write_special_kernels.py. */",
            *tables,
            *written.values(),
            "#define ALL_KERNELS(BOTH, DOUBLE) \\\n" + " \\\n".join(listed) + "\n",
        ]
    )


def dtypes_of(name: str) -> tuple[str, ...]:
    """Return the dtypes for which a definition is written."""
    is_one = name in (*SLOW_IN_FLOAT32, *RARELY_NEGATIVE)
    return ("float64",) if is_one else ("float64", "float32")


if __name__ == "__main__":
    FILE.write_text(text())
    subprocess.run(["wc", "-l", FILE], check=False)
