"""Bodies of loops and branches, functions of a model, and readers of shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, getdoc, signature as signature_of
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.graph.emitter import Emitter
from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx.graph.names import Names, name_values, rename_in_subgraphs, snake_case
from pytensor_onnx.graph.scope import LocalFunction, live_nodes
from pytensor_onnx.graph.traversal import DOMAINS, FUNCTION_DOMAIN, STANDARD_DOMAIN
from pytensor_onnx.operators.dims import SIZE, Dims, dims_of
from pytensor_onnx.operators.inference import dtype_of


class ShapeReader(Emitter):
    """Reads dimensions of values, and their sizes as values."""

    def dims(self, value: ir.Value) -> Dims:
        """Return the dimensions of a value of known rank."""
        dims = dims_of(value)
        if dims is None:
            raise TypeError(f"the rank of {value} is not known")
        return dims

    def shape(self, value: ir.Value) -> ir.Value:
        """Return the shape as a 1-d int64 value, a constant if it is static.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> build.shape(x) is build.shape(build.Exp(x)), build.sizes(x, 1, 2).const_value.numpy()
        (True, array([3]))
        """
        dims = dims_of(value)
        return self.Shape(value) if dims is None else self.sizes(value, 0, len(dims))

    def sizes(self, value: ir.Value, start: int, end: int) -> ir.Value:
        """Return the sizes of consecutive axes as a 1-d int64 value, which is read only once."""
        self.scope.dims.name_axes(value)
        dims = self.dims(value)[start:end]
        if all(isinstance(d, int) for d in dims):
            return self.ints([d for d in dims if isinstance(d, int)])
        whole = start == 0 and end == len(self.dims(value))
        limits = {} if whole else {"start": start, "end": end}
        return self._read_once(dims, lambda: self.Shape(value, **limits))

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """Return the size of one axis as a 0-d int64 value, a constant if it is static."""
        self.scope.dims.name_axes(value)
        dim = self.dims(value)[axis]
        if isinstance(dim, int):
            return self.constant(np.int64(dim))
        sizes = self.sizes(value, axis, axis + 1)
        return self._read_once(dim, lambda: self.Squeeze(sizes, self.ints([0])))

    def name_size(self, number: ir.Value, wanted: str) -> None:
        """Declare a nonnegative number as the size of a new dimension.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> n = ir.val("n", dtype=ir.DataType.INT64, shape=())
        >>> build.name_size(n, "steps")
        >>> dims_of(build.Range(0, n, 1))
        ('steps',)
        """
        dim = self.scope.dims.computed(wanted)
        number.meta[SIZE] = dim
        self._sizes_read[dim] = number
        self._sizes_read[(dim,)] = self.Unsqueeze(number, self.ints([0]))

    def _read_once(self, key: Hashable, read: Callable[[], ir.Value]) -> ir.Value:
        reader: Emitter | None = self
        while reader is not None:
            if key in reader._sizes_read:
                return reader._sizes_read[key]
            reader = reader._parent
        self._sizes_read[key] = read()
        return self._sizes_read[key]


MAX_DEPTH = 30
"""Levels of bodies: a level takes three messages of Protobuf, whose readers take 100 in all."""

Body = Callable[..., ir.Value | Sequence[ir.Value]]
"""Receives a builder, and values; returns one value or several."""


class SubgraphBuilder(ShapeReader):
    """Emits If, Loop and Scan.

    A body receives a builder, which sees the values of the graph around it, and arguments, which
    are named after its parameters.
    """

    def cond(self, condition: ir.Value, then: Body, else_: Body) -> list[ir.Value]:
        """Emit an If, whose outputs take the types that both branches agree on.

        Parameters
        ----------
        condition
            Value of dtype bool and rank 0.
        then, else_
            Receive a builder of the branch, and return its values.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> is_long = build.Greater(build.size(x, 0), 5)
        >>> (y,) = build.cond(is_long, lambda then: then.Exp(x), lambda other: other.Abs(x))
        >>> y.dtype, dims_of(y)
        (FLOAT, ('n', 3))
        """
        branches = [self._body((), branch) for branch in (then, else_)]
        values = []
        for a, b in zip(*(branch.outputs for branch in branches), strict=True):
            value = ir.Value(type=a.type)
            first, second = dims_of(a), dims_of(b)
            if first is not None and second is not None and len(first) == len(second):
                value.shape = ir.Shape(
                    [x if x == y else None for x, y in zip(first, second, strict=True)]
                )
            values.append(value)
        attributes = dict(zip(("then_branch", "else_branch"), branches, strict=True))
        self._emit("If", [condition], values, attributes)
        return values

    def loop(
        self,
        trip_count: ir.Value | None,
        condition: ir.Value | None,
        state: Sequence[ir.Value],
        body: Body,
    ) -> list[ir.Value]:
        """Emit a Loop.

        Parameters
        ----------
        trip_count
            Largest number of steps, 0-d int64; without it only the condition ends the loop.
        condition
            Whether the first step runs. Without it, all steps run.
        state
            Values that the loop starts from. They keep their ranks and static sizes.
        body
            Receives a builder of the body, the number of the step, and the state. Returns the next
            state, and rows to be stacked along a new first axis. Where there is a condition, it
            returns before these whether another step follows.

        Returns
        -------
        list of onnx_ir.Value
            The last state, and the stacked rows.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> def step(body, i, total):
        ...     following = body.Add(total, x)
        ...     return [following, body.Cast(i, to=1)]
        >>> total, counts = build.loop(build.constant(np.int64(5)), None, [x], step)
        >>> [node.op_type for node in build.nodes], counts.dtype
        (['Loop'], FLOAT)
        """
        iteration = _argument("step", ir.DataType.INT64, ())
        going = _argument("going", ir.DataType.BOOL, ())
        names = parameter_names(body, len(state))
        inside = [
            _argument(name or "state", dtype_of(x), dims_of(x))
            for name, x in zip(names, state, strict=True)
        ]

        def step(inner: Self, *_: ir.Value) -> Sequence[ir.Value]:
            values = _listed(body(inner, iteration, *inside))
            return values if condition is not None else [going, *values]

        graph = self._body([iteration, going, *inside], step)
        # Where the input is left out, the standard ignores the condition of the body.
        first = self.constant(np.True_) if condition is None else condition
        values = [ir.Value(type=x.type) for x in (*state, *graph.outputs[1 + len(state) :])]
        self._emit("Loop", [trip_count, first, *state], values, {"body": graph})
        return values

    def scan(
        self, state: Sequence[ir.Value], sequences: Sequence[ir.Value], body: Body
    ) -> list[ir.Value]:
        """Emit a Scan along the first axis of sequences of one length, which must not be zero.

        It is a Loop where the runtime has no right Scan.

        Parameters
        ----------
        state
            Values that the loop starts from. They keep their shapes.
        sequences
            Values of one length.
        body
            Receives a builder of the body, the state, and an element of each sequence. Returns the
            next state, and rows to be stacked along a new first axis.

        Returns
        -------
        list of onnx_ir.Value
            The last state, and the stacked rows.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> start = build.constant(np.zeros(3, "float32"))
        >>> (last,) = build.scan([start], [x], lambda body, total, row: body.Add(total, row))
        >>> last.dtype
        FLOAT
        """
        if not self.scope.has_scan:
            return self._scan_as_loop(state, sequences, body)
        names = parameter_names(body, len(state) + len(sequences))
        whole = [dims_of(x) for x in sequences]
        dims = [*map(dims_of, state), *(d[1:] if d else None for d in whole)]
        arguments = [
            _argument(name or ("state" if i < len(state) else "element"), dtype_of(x), d)
            for i, (name, x, d) in enumerate(zip(names, (*state, *sequences), dims, strict=True))
        ]
        graph = self._body(arguments, body)
        values = [ir.Value(type=x.type) for x in (*state, *graph.outputs[len(state) :])]
        attributes = {"body": graph, "num_scan_inputs": len(sequences)}
        self._emit("Scan", [*state, *sequences], values, attributes)
        return values

    def _scan_as_loop(
        self, state: Sequence[ir.Value], sequences: Sequence[ir.Value], body: Body
    ) -> list[ir.Value]:
        def step(inner: Self, i: ir.Value, *values: ir.Value) -> Sequence[ir.Value]:
            return _listed(body(inner, *values, *(inner.Gather(x, i, axis=0) for x in sequences)))

        length = self.Squeeze(self.Shape(sequences[0], start=0, end=1), self.ints([0]))
        return self.loop(length, None, state, step)

    def own_results(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the values as distinct results of this graph's nodes, copied where needed."""
        own = {id(v) for node in self._tape.nodes for v in node.outputs}
        results: list[ir.Value] = []
        for value in values:
            taken = id(value) not in own or any(value is other for other in results)
            results.append(self.Identity(value) if taken else value)
        return results

    def subgraph(self) -> Self:
        """Return a builder for the body of an If or a loop: it sees the values of this graph.

        Raises
        ------
        UnsupportedCase
            If bodies are nested deeper than readers of files accept.
        """
        inner = type(self)(self.scope, parent=self)
        if inner.depth > MAX_DEPTH:
            raise UnsupportedCase(
                f"branches and loops are nested deeper than {MAX_DEPTH} levels, and no file can be",
                "put inner ones into an OpFromGraph, a function of the file, or compute all "
                "branches and select one by pt.switch",
            )
        inner.provenance = self.provenance
        return inner

    def _body(self, inputs: Sequence[ir.Value], body: Body) -> ir.Graph:
        inner, names = self.subgraph(), self.scope.names
        results = inner.own_results(_listed(body(inner, *inputs)))
        for value in inputs:
            value.name = names.unique(str(value.name))
        nodes = live_nodes(inner._tape.nodes, results)
        name_values(nodes, names)
        return ir.Graph(list(inputs), results, nodes=nodes, name="body")


def parameter_names(function: Callable, count: int) -> list[str | None]:
    """Return the names of the last parameters of a function, None for those without one.

    Examples
    --------
    >>> parameter_names(lambda build, x, y: None, 2), parameter_names(lambda build, *xs: None, 2)
    (['x', 'y'], [None, None])
    """
    named = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature_of(function).parameters.values()
    names: list[str | None] = [p.name for p in parameters if p.kind in named]
    if any(p.kind == Parameter.VAR_POSITIONAL for p in parameters) or len(names) < count:
        return [None] * count
    return names[len(names) - count :]


def _listed(returned: ir.Value | Sequence[ir.Value]) -> Sequence[ir.Value]:
    return [returned] if isinstance(returned, ir.Value) else returned


def _argument(name: str, dtype: ir.DataType, dims: Dims | None) -> ir.Value:
    shape = None if dims is None else ir.Shape(d if isinstance(d, int) else None for d in dims)
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)


@dataclass(frozen=True)
class Meaning:
    """The operation that a model-local function of this package computes.

    Files tell it in the metadata of the function, as names need not be read.

    Attributes
    ----------
    op
        Name of the Op, of the operator of ONNX, or of the function of this package.
    dtype
        Dtype of the first operand.
    rank
        Number of batch axes of the operands, None for a function that serves all.
    attributes
        Attributes of the operation, and the sizes that the function relies on.

    Examples
    --------
    >>> graph = ir.Graph([], [], nodes=[])
    >>> function = ir.Function("pytensor", "TopK_2", graph=graph, attributes=[])
    >>> Meaning("TopK", "float32", attributes={"axis": -1}).write(function)
    >>> function.metadata_props
    {'pytensor.function': '{"op": "TopK", "dtype": "float32", "attributes": {"axis": -1}}'}
    >>> Meaning.of(function)
    Meaning(op='TopK', dtype='float32', rank=None, attributes={'axis': -1})
    """

    op: str
    dtype: str = ""
    rank: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, function: ir.Function) -> Meaning | None:
        """Return the operation of a function, None where its metadata tell none."""
        told = stored_mapping(function.metadata_props, _MEANING)
        op, attributes = told.get("op"), told.get("attributes", {})
        if not isinstance(op, str) or not isinstance(attributes, dict):
            return None
        return cls(op, told.get("dtype", ""), told.get("rank"), attributes)

    def write(self, function: ir.Function) -> None:
        """Note the operation in the metadata of a function."""
        attributes = {key: value for key, value in self.attributes.items() if value is not None}
        told = {"op": self.op, "dtype": self.dtype, "rank": self.rank, "attributes": attributes}
        kept = {key: value for key, value in told.items() if value not in ("", None, {})}
        function.metadata_props[_MEANING] = json.dumps(kept)


_MEANING = "pytensor.function"


@dataclass(frozen=True)
class Described:
    """Facts of a model-local function beside its body.

    Attributes
    ----------
    source
        Python function whose docstring documents the model-local function, and whose parameters
        name its parameters; the body unless given.
    parameters
        Other names for the parameters, None for those without one.
    is_definition
        Whether the function is an elementwise definition; see `LocalFunction`.
    is_standard
        Whether name and variant tell all that the function depends on but for sizes and ranks.
    dtypes
        Dtypes of the results, if they are known without the body.
    meaning
        The operation that the function computes, None for functions of users.
    """

    source: Callable | None = None
    parameters: Sequence[str | None] = ()
    is_definition: bool = False
    is_standard: bool = False
    dtypes: Sequence[str] = ()
    meaning: Meaning | None = None


def define(
    inner: SubgraphBuilder,
    name: str,
    body: Body,
    operands: Sequence[ir.Value],
    shapes: Sequence[Dims] | None,
    described: Described,
) -> LocalFunction:
    """Return the model-local function of a body.

    Parameters
    ----------
    inner
        Builder of the function, without nodes.
    name
        Name wanted for the function.
    body
        Receives the builder and one value for each operand.
    operands
        Values of the dtypes that the function takes.
    shapes
        Dimensions of the operands that the body may rely on.
    described
        Documentation of the function, names of its parameters, dtypes of its results.
    """
    names, source = Names(), described.source or body
    parameters = described.parameters or parameter_names(source, len(operands))
    inputs = [
        ir.Value(name=names.unique(wanted or ("x" if len(operands) == 1 else f"x{i}")), type=x.type)
        for i, (wanted, x) in enumerate(zip(parameters, operands, strict=True))
    ]
    for value, dims in zip(inputs, shapes or (), strict=False):
        value.shape = ir.Shape(dims)
    returned = body(inner, *inputs)
    returns_list = not isinstance(returned, ir.Value)
    results = inner.own_results([returned] if isinstance(returned, ir.Value) else returned)
    for value in results:
        node = value.producer()
        if node is not None and node.name is None:
            node.name = names.unique(snake_case(node.op_type))
        value.name = names.unique("result")
    nodes = live_nodes(inner.nodes, results)
    rename_in_subgraphs(nodes, names)
    name_values(nodes, names)
    graph = ir.Graph(
        inputs,
        results,
        nodes=nodes,
        opset_imports={"": inner.scope.opset_version, **DOMAINS},
    )
    is_called = described.is_standard and name in inner.scope.kernel_calls
    unique = name if is_called else inner.scope.function_names.unique(name)
    is_standard = described.is_standard and unique == name
    domain = STANDARD_DOMAIN if is_standard else FUNCTION_DOMAIN
    function = ir.Function(domain, unique, graph=graph, attributes=[])
    function.doc_string = _summary(source)
    if described.meaning is not None:
        described.meaning.write(function)
    return LocalFunction(function, returns_list, described.is_definition)


def _summary(function: Callable) -> str | None:
    """Return the first line of a docstring."""
    return (getdoc(function) or "").partition("\n")[0] or None
