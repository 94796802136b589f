"""Run nodes without a lowering in Python, and the graph between them on ONNX Runtime.

A graph is cut into stages. Each stage has one part for a session, and Python nodes after it that
need nothing of a later stage: there are as many sessions as black boxes follow one another with
convertible nodes between, plus one. Values pass from one to the other as PyTensor stores them.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply, Constant, Variable, clone_get_equiv
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.scan.op import Scan

from pytensor_onnx.compat.pytensor import has_perform, without_function
from pytensor_onnx.dispatch.registry.basic import has_no_lowering, is_array
from pytensor_onnx.encodings import Boundary, encoding_for, is_encoded
from pytensor_onnx.errors import PyTensorONNXError, UnsupportedOpError, UnsupportedTypeError
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.rewriting.engine.walkers import core_op, inner_nodes
from pytensor_onnx.running.session import Session
from pytensor_onnx.user_code import NOT_OF_USERS, user_line

UNSUPPORTED = (UnsupportedOpError, UnsupportedTypeError)
"""Errors of a graph that has a node without a lowering."""

Values = dict[Variable, Any]
OpenPart = Callable[[FunctionGraph], Session]
"""Function that opens a session of a graph, whose values may be encoded."""
Convert = Callable[[FunctionGraph], object]
"""Function that raises one of `UNSUPPORTED` for a graph that cannot be converted."""


class PartedGraph:
    """A graph whose nodes without a lowering run in Python; it runs as a `Session` does.

    Parameters
    ----------
    graph
        The graph, which stays as it is.
    convert
        Function that tries to convert a graph, which tells the nodes without a lowering.
    open_part
        Function that opens the session of a part.
    error
        Error of the whole graph, raised where a node cannot run in Python either.
    is_timed
        Whether the seconds of Python nodes are taken, for `update_profile`.
    warns
        Whether the first call warns of the nodes that run in Python.

    Raises
    ------
    UnsupportedOpError, UnsupportedTypeError
        If a node without a lowering cannot run in Python.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        convert: Convert,
        open_part: OpenPart,
        error: PyTensorONNXError,
        is_timed: bool = False,
        warns: bool = False,
    ) -> None:
        self._original = graph
        self._is_timed, self._warns = is_timed, warns
        self._lock = threading.RLock()
        self._convert, self._open_part, self.error = convert, open_part, error
        self._known: dict[Any, bool] = {}
        # Inputs stay: the linker knows the shared variables among them.
        equivalent: dict[Any, Any] = clone_get_equiv(graph.inputs, graph.outputs, False, False)
        self._originals = {new: old for old, new in equivalent.items() if isinstance(old, Apply)}
        graph = FunctionGraph(graph.inputs, [equivalent[v] for v in graph.outputs], clone=False)
        _keep_values(graph)
        self._steps = self._cut(graph)
        self.inputs, self.outputs = list(graph.inputs), list(graph.outputs)
        self.input_names = [str(i) for i in range(len(self.inputs))]
        self.output_names = [str(i) for i in range(len(self.outputs))]
        # No two outputs are one array, and none is that of an input or constant.
        ends = enumerate(self.outputs)
        self._is_copied = [v.owner is None or v in self.outputs[:i] for i, v in ends]

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the values of the outputs; exceptions of Python nodes reach the caller."""
        return self._run_and_warn(feed) if self._warns else self._run(feed)

    def _run_and_warn(self, feed: Mapping[str, Any]) -> list[Any]:
        """Run once, and warn of the nodes that ran in Python and of their share of the time."""
        for step in self.python_nodes:
            step.is_timed = True
        start = time.perf_counter()
        results = self._run(feed)
        seconds = time.perf_counter() - start
        self._warns = False
        warn_of_python(self, sum(step.seconds for step in self.python_nodes) / seconds)
        if not self._is_timed:
            for step in self.python_nodes:
                step.is_timed, step.seconds, step.calls = False, 0.0, 0
        return results

    def _run(self, feed: Mapping[str, Any]) -> list[Any]:
        values: Values = dict(zip(self.inputs, feed.values(), strict=True))
        for step, unused in self._steps:
            step.run(values)
            for variable in unused:
                del values[variable]
        return [
            _copied(_value(v, values)) if is_copied else values[v]
            for v, is_copied in zip(self.outputs, self._is_copied, strict=True)
        ]

    def __call__(self, *values: Any) -> list[Any]:
        """Return the values of the outputs for values of all inputs in order."""
        return self.run(dict(zip(self.input_names, values, strict=True)))

    def update_profile(self, stats: Any) -> None:
        """Add the seconds and calls of the Python nodes since the last call to statistics."""
        for step in self.python_nodes:
            # The graph that PyTensor prints has no nodes of inlined functions and of branches.
            node = self._originals.get(step.node)
            if node is not None and step.calls:
                key = self._original, node
                stats.apply_time[key] = stats.apply_time.get(key, 0.0) + step.seconds
                stats.apply_callcount[key] = stats.apply_callcount.get(key, 0) + step.calls
                stats.apply_cimpl[node] = False
            step.seconds, step.calls = 0.0, 0

    def _cut(self, graph: FunctionGraph) -> list[tuple[Part | PythonNode | Branches, list]]:
        """Return the steps of a run, each with the values that no later step needs."""
        python = self._nodes_of_python(graph)
        while True:
            steps: list[Part | PythonNode | Branches] = []
            refused: set[Apply] = set()
            for nodes in _stages(graph, python):
                converted = [node for node in nodes if node not in python]
                try:
                    steps += [Part(graph, converted, self._open_part)] if converted else []
                except UNSUPPORTED:
                    # The legaliser refuses nodes that have a lowering, for a dtype of theirs.
                    alone = {n for n in converted if not _is_accepted(self._open_part, n)}
                    refused |= alone or set(converted)
                steps += [self._in_python(node) for node in nodes if node in python]
            if not refused:
                self.python_nodes = list(_python_nodes(steps))
                return _with_unused(steps, graph)
            python |= refused

    def _nodes_of_python(self, graph: FunctionGraph) -> set[Apply]:
        """Return the nodes that cannot be converted, and inline functions that hold some."""
        while True:
            found = {node for node in graph.toposort() if not self._converts(node)}
            functions = [node for node in found if isinstance(node.op, OpFromGraph)]
            if not functions:
                return found
            for node in functions:
                pairs = list(zip(node.outputs, inline_ofg_node(node), strict=True))
                graph.replace_all(pairs, import_missing=True, reason="python_nodes")

    def _converts(self, node: Apply) -> bool:
        """Return whether a node alone can be converted; equal ones are tried once."""
        key = node.op, *[v if isinstance(v, Constant) else v.type for v in node.inputs]
        if key not in self._known:
            self._known[key] = _is_accepted(self._convert, node)
        return self._known[key]

    def _in_python(self, node: Apply) -> PythonNode | Branches:
        if isinstance(node.op, LazyIfElse):
            return Branches(node, self._branch)
        if not _runs_in_python(node):
            raise self.error
        return PythonNode(node, self._lock, self._is_timed)

    def _branch(self, graph: FunctionGraph) -> PartedGraph:
        return PartedGraph(graph, self._convert, self._open_part, self.error)


class Part:
    """Nodes that one session runs.

    Parameters
    ----------
    graph
        Graph of the nodes.
    nodes
        The nodes, in order.
    open_part
        Function that opens a session.
    """

    def __init__(self, graph: FunctionGraph, nodes: Sequence[Apply], open_part: OpenPart) -> None:
        inside = set(nodes)
        read = {v: None for n in nodes for v in n.inputs if v.owner not in inside}
        self.inputs = [v for v in read if not isinstance(v, Constant)]
        # A client outside is a node of Python, of a later stage, or marks an output of the graph.
        self.outputs = [
            v
            for n in nodes
            for v in n.outputs
            if any(client not in inside for client, _ in graph.clients.get(v, ()))
        ]
        # The session knows shared variables as such, by which it tells constant sizes.
        own: dict[Any, Any] = {v: v if v.owner is None else v.clone() for v in self.inputs}
        own = clone_get_equiv(self.inputs, self.outputs, False, False, memo=own)
        inputs, outputs = ([own[v] for v in ends] for ends in (self.inputs, self.outputs))
        self._session = open_part(FunctionGraph(inputs, outputs, clone=False))
        ends = Boundary.of(self.inputs), Boundary.of(self.outputs)
        self._given, self._made = (None if end.is_plain else end for end in ends)
        self._followed = [_followed_input(graph, v) for v in self.outputs]
        self._scalars = [i for i, v in enumerate(inputs) if isinstance(v.type, ScalarType)]

    def run(self, values: Values) -> None:
        """Compute the values of the outputs."""
        given = [values[v] for v in self.inputs]
        for i in self._scalars:
            given[i] = np.asarray(given[i])
        if self._given is not None:
            given = self._given.encode(given)
        made = self._session.run(dict(zip(self._session.input_names, given, strict=True)))
        if self._made is not None:
            former = [None if v is None else values.get(v) for v in self._followed]
            made = self._made.decode(made, former)
        values.update(zip(self.outputs, made, strict=True))


class PythonNode:
    """A node that runs by its Op's own Python implementation.

    It writes into no array that it is given, and returns none: an Op that works in place gets
    copies. Storage of results is new in each call, as results of the last one may be in use.

    Parameters
    ----------
    node
        The node.
    lock
        Lock of the function, since storage and many Ops serve one thread at a time.
    is_timed
        Whether to take the seconds.
    """

    def __init__(self, node: Apply, lock: threading.RLock, is_timed: bool = False) -> None:
        self.node, self._lock, self.is_timed = node, lock, is_timed
        self.seconds, self.calls = 0.0, 0
        self.inputs, self.outputs = list(node.inputs), list(node.outputs)
        op = _for_python(node.op)
        own = [v.clone() if v.owner is None else v.type(v.name) for v in node.inputs]
        alone = Apply(op, own, [v.clone() for v in node.outputs])
        alone.tag = copy(node.tag)
        storage = {v: [None] for v in (*own, *alone.outputs)}
        computed = {v: [v in own] for v in storage}
        # Inner graphs compile no C: compiling takes longer than C saves, or has no compiler.
        with pytensor.config.change_flags(cxx=""):
            self._thunk = op.make_thunk(alone, storage, computed, [], impl="py")
        self._given = [storage[v] for v in own]
        self._made = [storage[v] for v in alone.outputs]
        self._computed = [computed[v] for v in alone.outputs]
        self._arrays = [(i, v.type) for i, v in enumerate(node.outputs) if is_array(v.type)]
        destroyed = getattr(op, "destroy_map", None) or {}
        self._destroyed = {i for places in destroyed.values() for i in places}

    def run(self, values: Values) -> None:
        """Compute the values of the outputs."""
        given = [_value(v, values) for v in self.inputs]
        for i in self._destroyed:
            given[i] = _copied(given[i])
        start = time.perf_counter() if self.is_timed else 0.0
        try:
            made = self._called(given)
            kept = [x for i, x in enumerate(given) if i not in self._destroyed]
            for i, type_ in self._arrays:
                made[i] = _received(type_, made[i], kept)
        except Exception as error:
            line = _line(self.node)
            error.add_note(f"raised while {self.node.op} ran in Python{line and f', {line}'}")
            raise
        finally:
            if self.is_timed:
                self.seconds += time.perf_counter() - start
                self.calls += 1
        values.update(zip(self.outputs, made, strict=True))

    def _called(self, given: Sequence[Any]) -> list[Any]:
        """Return the results of the Op, whose storage is empty before and after."""
        with self._lock:
            try:
                for storage, value in zip(self._given, given, strict=True):
                    storage[0] = value
                for storage, computed in zip(self._made, self._computed, strict=True):
                    storage[0], computed[0] = None, False
                self._thunk()
                return [storage[0] for storage in self._made]
            finally:
                for storage in (*self._given, *self._made):
                    storage[0] = None


class Branches:
    """A condition with two graphs, one of them with a node without a lowering: one graph runs."""

    def __init__(self, node: Apply, cut: Callable[[FunctionGraph], PartedGraph]) -> None:
        self.inputs, self.outputs = list(node.inputs), list(node.outputs)
        op = node.op
        self._graphs = [cut(b.fgraph.unfreeze()) for b in (op.false_branch, op.true_branch)]
        self.python_nodes = [step for graph in self._graphs for step in graph.python_nodes]

    def run(self, values: Values) -> None:
        """Compute the values of the outputs."""
        condition, *given = [_value(v, values) for v in self.inputs]
        values.update(zip(self.outputs, self._graphs[bool(condition)](*given), strict=True))


def warn_of_python(parted: PartedGraph, share: float) -> None:
    """Warn of all nodes of a function that run in Python, and of their share of a call."""
    lines = dict.fromkeys(_described(step.node) for step in parted.python_nodes)
    # Ops of users have no lowering; of others the reason may name a way out.
    lines |= dict.fromkeys(
        f"  {p.subject}: {p.reason}; {p.hint}"
        for p in parted.error.problems
        if not p.reason.startswith("no lowering is registered")
    )
    text = "\n".join(lines)
    warnings.warn(
        "operations that cannot be converted to ONNX run in Python, at its speed, which took "
        f"{share:.0%} of the first call:\n"
        f"{text}\n"
        "Files cannot have them. For an error instead: "
        "mode=Mode(ONNXLinker(python_fallback=False), pytensor_onnx.rewriting.ONNX_QUERY)",
        UserWarning,
        skip_file_prefixes=NOT_OF_USERS,
    )


def _python_nodes(steps: Iterable[Part | PythonNode | Branches]) -> Iterator[PythonNode]:
    """Yield the steps that are nodes of Python, those within branches too."""
    for step in steps:
        if isinstance(step, Branches):
            yield from step.python_nodes
        elif isinstance(step, PythonNode):
            yield step


def _described(node: Apply) -> str:
    """Return a line with an Op, the Ops within it that are the reason, and the user's line."""
    inner = dict.fromkeys(str(n.op) for n in inner_nodes(node.op) if has_no_lowering(n.op))
    why = f" as a whole, for {', '.join(inner)} in it" if inner else ""
    line = _line(node)
    return f"- {node.op}{why}{line and f', {line}'}"


def _line(node: Apply) -> str:
    """Return the user's line for a node; a gradient without one has that of an operand."""
    own = (user_line(v) for v in node.outputs)
    others = (user_line(v) for v in ancestors(node.inputs) if v.owner is not None)
    line = next((found for lines in (own, others) for found in lines if found), "")
    return f"made at {line}" if line else ""


def _keep_values(graph: FunctionGraph) -> None:
    """Let nodes of Python take an encoded value itself: the tensors lack a generator's buffer."""
    for node in graph.toposort():
        if not isinstance(node.op, Decode):
            continue
        origin = node.inputs[0].owner
        is_whole = origin is not None and isinstance(origin.op, Encode)
        if is_whole and node.inputs == origin.outputs and origin.inputs[0].type == node.out.type:
            graph.replace(node.out, origin.inputs[0], reason="python_nodes")


def _stages(graph: FunctionGraph, python: set[Apply]) -> list[list[Apply]]:
    """Return the nodes of each stage, in topological order.

    A convertible node is in a later stage than the Python nodes that it depends on; otherwise a
    node is in the stage of the last one before it.
    """
    stages: list[list[Apply]] = []
    stage_of: dict[Apply, int] = {}
    for node in graph.toposort():
        before = [v.owner for v in node.inputs if v.owner is not None]
        waits = node not in python
        stage = max((stage_of[n] + (waits and n in python) for n in before), default=0)
        stage_of[node] = stage
        if stage == len(stages):
            stages.append([])
        stages[stage].append(node)
    return stages


def _with_unused(
    steps: Sequence[Part | PythonNode | Branches], graph: FunctionGraph
) -> list[tuple[Part | PythonNode | Branches, list]]:
    """Return steps, each with the values that neither later steps nor the caller need."""
    needed, found = {*graph.outputs, *graph.inputs}, []
    for step in reversed(steps):
        last = {v for v in (*step.inputs, *step.outputs) if not isinstance(v, Constant)} - needed
        needed |= last
        found.append((step, list(last)))
    return found[::-1]


def _is_accepted(convert: Convert, node: Apply) -> bool:
    """Return whether a function takes the graph of a node alone."""
    own = [v if isinstance(v, Constant) else v.type(v.name) for v in node.inputs]
    alone = node.clone_with_new_inputs(own)
    given = [v for v in own if not isinstance(v, Constant)]
    try:
        with warnings.catch_warnings():
            # The part that has the node warns, too.
            warnings.simplefilter("ignore")
            convert(FunctionGraph(given, alone.outputs, clone=False))
    except UNSUPPORTED:
        return False
    return True


def _runs_in_python(node: Apply) -> bool:
    """Return whether an Op has a Python implementation that serves the types of its operands."""
    if not has_perform(node.op):
        return isinstance(node.op, IfElse)
    # PyTensor makes nodes of sparse matrices with operations of arrays, which fail when they run.
    encoding = encoding_for(node)
    is_of_arrays = type(core_op(node.op)).__module__.startswith("pytensor.tensor.")
    return not (encoding and encoding.advice and is_of_arrays)


def _for_python(op: Op) -> Op:
    """Return an Op whose inner function is its own, and runs in Python if it is a loop."""
    own: Any = without_function(op)
    if isinstance(op, Scan):
        own.mode = "FAST_COMPILE"
    result: Op = own
    return result


def _followed_input(graph: FunctionGraph, variable: Variable) -> Variable | None:
    """Return the input of the type of an encoded value: its generator keeps the class."""
    if is_tensor(variable.type) or not is_encoded(variable):
        return None
    given = set(graph.inputs)
    found = (v for v in ancestors([variable]) if v in given and v.type == variable.type)
    return next(found, None)


def _value(variable: Variable, values: Values) -> Any:
    return variable.data if isinstance(variable, Constant) else values[variable]


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else deepcopy(value)


def _received(type_: Type, value: Any, given: Sequence[Any]) -> Any:
    """Return a result of a Python node as an array of its type, in memory of its own."""
    dtype = np.dtype(type_.dtype)
    may_round = None
    if type(value) is not np.ndarray or value.dtype != dtype:
        # PyTensor's own modes take a float64 for a float32 from an Op, and an integer for a float.
        may_round = np.can_cast(np.asarray(value).dtype, dtype, "same_kind") or None
    value = type_.filter(value, allow_downcast=may_round)
    if type(value) is np.ndarray:
        for other in given:
            if isinstance(other, np.ndarray) and np.may_share_memory(value, other):
                return value.copy()
    return value
