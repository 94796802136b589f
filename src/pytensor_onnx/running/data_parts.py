"""Sessions that compute what depends on data alone once, and again where the data change.

The data are inputs whose values hardly ever change: shared variables in mode ONNX, the data
containers of a PyMC model. A model is divided into the part that depends on them and on constants
alone, and the rest, which takes the results of that part as inputs. Each call compares the contents
of the data with a copy, since arrays may change in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from textwrap import indent
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass

from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.graph.weights import weight_bytes
from pytensor_onnx.operators.dims import SHARED, dims_of
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.running.operator_cost import Sizes
from pytensor_onnx.running.session import EqualSizes, Session
from pytensor_onnx_scoring.problems import is_interruption

if TYPE_CHECKING:
    from pytensor_onnx.running.session import SessionOptions

    Shapes = Mapping[str, tuple[int, ...]]

_OPERATION, _NODE = 0.05, 30.0
"""Nanoseconds of an operation as `operator_cost` counts them, and of a node in a region."""
_INPUT, _CALL = 600.0, 1000.0
"""Nanoseconds of one more input of a session, and of a call of a divided one."""
_COMPARED = 0.1
"""Nanoseconds for each byte that is compared with its copy."""
_READ, _READ_FROM_MEMORY, _CACHE = 0.15, 1.0, 1_000_000
"""Nanoseconds for each element of a kept result, where all are within a cache or are not."""
_MOST_BYTES = 1 << 26
"""Bytes of data, of kept results and of the weights of a model above which nothing is kept."""
_LEAST_GAIN = 1.5
"""Time that is saved over time that is spent, as both are estimates."""
_SMALL = 1 << 16
"""Bytes of an array that is compared through a copy, which has no call of NumPy's own loops."""
_MOST_CHANGES = 8
"""Calls with new data, one after the other, after which the model runs undivided."""


@dataclass(frozen=True)
class Division:
    """The two parts of a model.

    Attributes
    ----------
    data, rest
        The part that depends on data alone, and the rest. The outputs of `data` are the last inputs
        of `rest`.
    nodes
        Description of the nodes that run for the data alone.
    names
        Names of the data.
    values
        Names of the values that the part of the data computes.
    """

    data: ir.Model
    rest: ir.Model
    nodes: str
    names: list[str]
    values: list[str]

    @property
    def line(self) -> str:
        """Description of the part of the data."""
        return f"data: {self.nodes} computed once for {', '.join(self.names)}"


def divide(
    model: ir.Model, shapes: Shapes, *, input_cost: float = _INPUT, call_cost: float = _CALL
) -> Division | None:
    """Divide a model; None if that does not pay.

    Parameters
    ----------
    model
        A model as conversion makes it.
    shapes
        Present shapes of the inputs that are data.
    input_cost, call_cost
        Nanoseconds that a call takes longer for each kept result, and by the division itself.
    """
    others = [x for x in model.graph.inputs if x.name not in shapes]
    if not shapes or not others or weight_bytes(model) > _MOST_BYTES:
        return None
    return _Divider(model, shapes, input_cost).division(call_cost)


class _Divider:
    """Finds the results that depend on data alone and are worth to be kept."""

    def __init__(self, model: ir.Model, shapes: Shapes, input_cost: float) -> None:
        self.model, self.input_cost = model, input_cost
        self.sizes = Sizes(model, shapes)
        self.given = [x for x in model.graph.inputs if x.name in shapes]
        self.read_cost = _READ

    def division(self, call_cost: float) -> Division | None:
        """Return the parts, None if the division costs more than it saves."""
        kept = self._kept()
        if sum(map(self._bytes, kept)) > _CACHE:
            self.read_cost = _READ_FROM_MEMORY
            kept = self._kept()
        once = self._behind(kept, set())
        always = self._behind(self.model.graph.outputs, set(kept))
        data = [x for x in self.given if any(x in _operands(node) for node in once)]
        if not kept or not data:
            return None
        spared = [x for x in data if not any(x in _operands(node) for node in always)]
        saved = sum(self._cost(node) for node in once if node not in set(always))
        saved += sum(map(self._input, spared))
        paid = call_cost + sum(map(self._input, kept))
        paid += sum(_COMPARED * self._bytes(x) for x in data) if call_cost else 0.0
        n_bytes = max(sum(map(self._bytes, values)) for values in (data, kept))
        if saved < _LEAST_GAIN * paid or n_bytes > _MOST_BYTES:
            return None
        return self._divided(kept, data, once, always)

    def _kept(self) -> list[ir.Value]:
        """Return the results of nodes of data that take longer to compute than to read."""
        results = set(self.model.graph.outputs)
        of_data = self._nodes_of_data()
        others = (node for node in self.model.graph if node not in of_data)
        read = {x for node in others for x in _operands(node)} | results
        kept = []
        for node in reversed(of_data):
            outputs = [x for x in node.outputs if x in read]
            if not outputs:
                continue
            added = [x for x in _operands(node) if x not in read and self._is_variable(x)]
            cost = self._cost(node) + sum(map(self._input, added))
            # Results of a call are new arrays, which the rest makes.
            is_result = any(x in results for x in outputs)
            if is_result or cost <= sum(map(self._input, outputs)) + 2 * _NODE:
                read.update(_operands(node))
            else:
                kept += outputs
        return kept[::-1]

    def _nodes_of_data(self) -> dict[ir.Node, None]:
        """Return the nodes that depend on data and constants alone, in order."""
        other = {x for x in self.model.graph.inputs if x not in self.given}
        found: dict[ir.Node, None] = {}
        for node in self.model.graph:
            if entry_of(node).is_random or not other.isdisjoint(_operands(node)):
                other.update(node.outputs)
            else:
                found[node] = None
        return found

    def _behind(self, values: Iterable[ir.Value], given: set[ir.Value]) -> list[ir.Node]:
        """Return the nodes that compute values from inputs and given values, in order."""
        needed, found = {x for x in values if x not in given}, []
        for node in reversed(self.model.graph):
            if not needed.isdisjoint(node.outputs):
                found.append(node)
                needed.update(x for x in _operands(node) if x not in given)
        return found[::-1]

    def _divided(
        self,
        kept: list[ir.Value],
        data: list[ir.Value],
        once: list[ir.Node],
        always: list[ir.Node],
    ) -> Division:
        names = [str(x.name) for x in kept]
        counts = Counter(node.op_type for node in once if node not in set(always))
        counted = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        values = [str(x.name) for node in once for x in node.outputs if node not in set(always)]
        return Division(
            data=_part(self.model, once, [], names),
            rest=_part(self.model, always, names, [str(x.name) for x in self.model.graph.outputs]),
            nodes=f"{sum(counts.values())} nodes ({counted})",
            names=[str(x.name) for x in data],
            values=values,
        )

    def _is_variable(self, value: ir.Value) -> bool:
        return value in self.given or value.producer() is not None

    def _cost(self, node: ir.Node) -> float:
        return _NODE + _OPERATION * self.sizes.operations(node)

    def _input(self, value: ir.Value) -> float:
        return self.input_cost + self.read_cost * self.sizes.elements(value)

    def _bytes(self, value: ir.Value) -> int:
        return self.sizes.elements(value) * 8


def _operands(node: ir.Node) -> list[ir.Value]:
    """Return the values that a node reads, within its bodies too."""
    nodes = [node, *(inner for body in bodies_of(node) for inner in all_nodes(body))]
    read = [x for inner in nodes for x in inner.inputs]
    ends = [x for inner in nodes for body in bodies_of(inner) for x in body.outputs]
    return [x for x in (*read, *ends) if x is not None]


def _part(model: ir.Model, nodes: list[ir.Node], given: list[str], outputs: list[str]) -> ir.Model:
    """Return a model of some nodes, whose last inputs are given values."""
    taken = set(nodes)
    part = model.clone()
    left_out = [
        copy for node, copy in zip(model.graph, part.graph, strict=True) if node not in taken
    ]
    made = {x.name: x for node in part.graph for x in node.outputs}
    values = {x.name: x for x in (*part.graph.inputs, *part.graph.initializers.values())} | made
    part.graph.outputs[:] = [values[name] for name in outputs]
    for name in given:
        old = made[name]
        new = ir.Value(name=name, shape=old.shape, type=old.type)
        # Sizes among the kept results are constants of a plan, as those of shared variables.
        new.metadata_props[SHARED] = "yes"
        old.replace_all_uses_with(new)
        part.graph.inputs.append(new)
    part.graph.remove(left_out)
    # A copy has no uses by the nodes that were removed.
    part = part.clone()
    used = {x for node in part.graph for x in _operands(node)} | set(part.graph.outputs)
    part.graph.inputs[:] = [x for x in part.graph.inputs if x in used]
    for name in [name for name, x in part.graph.initializers.items() if x not in used]:
        del part.graph.initializers[name]
    RemoveUnusedFunctionsPass()(part)
    return part


_WRITTEN = """
known = divided.known
if known:
    {data}
    {kept}{results} = known
    if {same}:
        try:
{rest}
        except Exception as error:
            return divided.after(error, {{{whole}}})
return divided.run({{{whole}}})
"""
"""Code that runs the rest at once where the data are the same: loops take a µs longer."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Results for some data.

    Attributes
    ----------
    copies
        Shape and bytes of each of the data, one after the other.
    results
        The results; none where they are not computed.
    fails
        Whether their computation has failed.
    """

    copies: tuple[Any, ...] = ()
    results: tuple[np.ndarray, ...] = ()
    fails: bool = False

    def is_of(self, values: Iterable[np.ndarray]) -> bool:
        """Return whether the data of a call are the same, bit by bit."""
        copies = zip(self.copies[::2], self.copies[1::2], strict=True)
        return bool(self.copies) and all(
            x.shape == shape and _equals(x, content)
            for x, (shape, content) in zip(values, copies, strict=True)
        )


def _equals(value: np.ndarray, content: bytes) -> bool:
    """Return whether an array has some bytes; NaN equal themselves, and 0.0 is not -0.0."""
    if len(content) <= _SMALL or not value.flags.c_contiguous:
        return value.tobytes() == content
    unit = "u8" if len(content) % 8 == 0 else "u1"
    flat = value.reshape(-1).view("u1").view(unit)
    return bool((flat == np.frombuffer(content, unit)).all())


class DividedSession:
    """Runs a model in two parts: one for each change of the data, the rest in each call.

    Any error of a part is that of the whole model, which is loaded where it is needed.

    Parameters
    ----------
    division
        The parts.
    open_whole
        Function that opens a session of the whole model.
    model, shapes
        The whole model, and the shapes of the data for which it was divided.
    options
        Options of the runtime.

    Attributes
    ----------
    known
        Shape and bytes of each of the data and then the results for these, none if the whole model
        runs.
    """

    def __init__(
        self,
        division: Division,
        open_whole: Callable[[], Session],
        model: ir.Model,
        shapes: Shapes,
        options: SessionOptions | None,
    ) -> None:
        self.division = division
        self.data = Session(division.data, options=options)
        self.rest = Session(division.rest, options=options)
        self.input_names = [str(x.name) for x in model.graph.inputs]
        self.output_names = self.rest.output_names
        self._equal_sizes = EqualSizes(
            [SimpleNamespace(name=x.name, shape=dims_of(x) or ()) for x in model.graph.inputs]
        )
        self._shapes = dict(shapes)
        self._open_whole = open_whole
        self._whole: Session | None = None
        made = set(self.data.output_names)
        self._given = [name for name in self.rest.input_names if name not in made]
        self._kept = _Kept()
        self._changes = 0
        self.known: tuple[Any, ...] = ()

    @property
    def whole(self) -> Session:
        """A session of the undivided model."""
        if self._whole is None:
            self._whole = self._open_whole()
        return self._whole

    @property
    def has_regions(self) -> bool:
        """Whether nodes of the rest run together in the native library."""
        return self.rest.has_regions

    def kernels(self) -> list[str]:
        """Return the lines of `Session.kernels` for the rest, and one for the data."""
        return [*self.rest.kernels(), self.division.line]

    def places(self) -> dict[str, str]:
        """Return `Session.places` for the rest, and the values that are computed once."""
        return {**self.rest.places(), **dict.fromkeys(self.division.values, "once for the data")}

    def feed_of_rest(self, feed: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the feed of the session of each call, None where the whole model runs."""
        results = self._results([feed[name] for name in self.data.input_names])
        if not results:
            return None
        given = {name: feed[name] for name in self._given}
        return given | dict(zip(self.data.output_names, results, strict=True))

    def run(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once, as `Session.run`."""
        try:
            self._equal_sizes.check(feed)
            given = self.feed_of_rest(feed)
            if given is not None:
                return self.rest.run(given)
        except Exception as error:
            return self.after(error, feed)
        return self.whole.run(feed)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the model once for arrays of the inputs in order, as `Session`."""
        return self.run(dict(zip(self.input_names, arrays, strict=True)))

    def after(self, error: Exception, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the whole model where a part has failed: it tells the user's own error."""
        if is_interruption(error):
            raise error
        return self.whole.run(feed)

    def written_run(self, values: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Return code that runs the model, and its names; see `Session.written_run`."""
        given = {name: f"a{i}" for i, name in enumerate(self.data.input_names)}
        feed = {x: given.get(x, values[x]) for x in self._given}
        feed |= {name: f"r{i}" for i, name in enumerate(self.data.output_names)}
        rest, names = self.rest.written_run(feed)
        source = _WRITTEN.format(
            data="; ".join(f"{a} = {values[name]}" for name, a in given.items()),
            kept="".join(f"k{a}, b{a}, " for a in given.values()),
            same=" and ".join(self._test(name, a) for name, a in given.items()),
            results="".join(f"r{i}, " for i in range(len(self.data.output_names))),
            rest=indent(rest, " " * 12),
            whole=", ".join(f"{name!r}: {x}" for name, x in values.items()),
        )
        return source, {**names, "divided": self, "equals": _equals}

    def _test(self, name: str, a: str) -> str:
        """Return an expression for whether an array is the one of the kept results."""
        value = next(x for x in self.division.data.graph.inputs if x.name == name)
        # The bytes of vectors and numbers tell their shapes.
        test = "" if len(value.shape or (0, 0)) < 2 else f"{a}.shape == k{a} and "
        is_small = prod(self._shapes[name]) * 8 <= _SMALL
        return test + (f"{a}.tobytes() == b{a}" if is_small else f"equals({a}, b{a})")

    def _results(self, values: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the results for some data; none where the whole model is to run."""
        kept = self._kept
        is_same = kept.is_of(values)
        self._changes = 0 if is_same else self._changes + 1
        if is_same and (kept.results or kept.fails):
            return kept.results
        # Copies, as another thread may change the arrays meanwhile.
        data = [np.array(x, order="C") for x in values]
        copies = tuple(part for x in data for part in (x.shape, x.tobytes()))
        self.known = ()
        if self._changes > _MOST_CHANGES:
            self._kept = _Kept(copies)
            return ()
        try:
            results = self.data.run(dict(zip(self.data.input_names, data, strict=True)))
        except Exception as error:
            if not is_interruption(error):
                self._kept = _Kept(copies, fails=True)
            raise
        self._kept = kept = _Kept(copies, tuple(results))
        self.known = (*copies, *results)
        return kept.results
