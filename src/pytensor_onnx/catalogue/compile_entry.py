"""Functions of ONNX for entries of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
from onnx import FunctionProto, GraphProto, NodeProto, helper, numpy_helper
from pytensor.scalar.basic import autocast_float_as
from pytensor.tensor.random.type import random_generator_type

from pytensor_onnx.catalogue.entry import Argument, Entry
from pytensor_onnx.exporting.program.build_program import export_graph
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.operators.entries import ELEMENTWISE
from pytensor_onnx.targets import Profile, get_profile

DOMAIN = "pytensor.prob"
"""Beginning of the domains of functions: ``pytensor.prob.float32``, ``pytensor.prob.float64``."""

NEXT_KEY = "NextKey"
"""Function of a state that draws use: the next state, and a key and a counter of 64 bits."""

OPSET = 21

_PROFILE = replace(get_profile("portable"), keeps_functions=True, splits_words=False)
_ANY_RANK = ELEMENTWISE | {"Cast", "Constant", "Identity", "Where"}
_OF_BATCH = re.compile(r"_batch\d+$")


@dataclass(frozen=True, kw_only=True)
class _LibraryOptions(ExportOptions):
    """Options of functions that are to run in any runtime, and call each other."""

    @property
    def profile(self) -> Profile:
        """Profile of portable files whose functions stay."""
        return _PROFILE


@dataclass(frozen=True)
class Compiled:
    """A function, and the functions that it calls.

    Attributes
    ----------
    entry
        The entry.
    dtype
        Dtype of the domain.
    function
        The function.
    called
        Functions that it calls, directly or through others.
    """

    entry: Entry
    dtype: str
    function: FunctionProto
    called: tuple[FunctionProto, ...]


def domain_of(dtype: str) -> str:
    """Return the domain of the functions of a dtype.

    Examples
    --------
    >>> domain_of("float32")
    'pytensor.prob.float32'
    """
    return f"{DOMAIN}.{dtype}"


def graph_of(entry: Entry, dtype: str) -> tuple[list[Any], list[Any]]:
    """Return the operands and the results of an entry as variables.

    Operands are vectors of one length for elementwise functions and draws, whose state is a
    generator; others have one axis before the core axes if they are batched.
    """
    operands: list[Any] = []
    for x in entry.inputs:
        if entry.kind == "random" and x.name in ("state", "shape"):
            continue
        batch = 0 if entry.kind == "plain" or not x.is_batched else 1
        core = (int(axis) if axis.isdigit() else None for axis in x.core)
        shape = (*(None,) * batch, *core)
        operands.append(pt.tensor(x.name, dtype=x.dtype_in(dtype), shape=shape))
    if entry.kind == "random":
        if not _is_elementwise(entry):
            operands.insert(0, pt.lscalar("size"))
        operands.insert(0, random_generator_type("rng"))
    # Numbers of formulas are those of the dtype, and none is rounded to float32.
    with pytensor.config.change_flags(floatX=dtype), autocast_float_as(dtype):
        made: Any = entry.make(*operands)
    results: list[Any] = list(made) if isinstance(made, list | tuple) else [made]
    if entry.kind == "elementwise":
        # Results that do not depend on all operands have the shape of all, too.
        results = [
            pt.second(_sum_of_zeros(operands), y) if y.type.ndim == 0 else y for y in results
        ]
    pairs = zip(entry.outputs, results, strict=False)
    results = [
        y if y.type.dtype == x.dtype_in(dtype) else y.astype(x.dtype_in(dtype)) for x, y in pairs
    ]
    return operands, [pt.tensor_copy(y) if y in operands else y for y in results]


def _sum_of_zeros(operands: Sequence[Any]) -> Any:
    return sum(pt.zeros_like(x) for x in operands)


def compile_entry(entry: Entry, dtype: str, domain: str | None = None) -> Compiled:
    """Return the function of an entry for a dtype, in the domain of the dtype or in another."""
    operands, results = graph_of(entry, dtype)
    for x, y in zip(entry.outputs, results, strict=False):
        y.name = f"{x.name}_result"
    with pytensor.config.change_flags(floatX=dtype):
        # Functions of other domains have the bits of their parts in float64.
        precision = "float32" if dtype == "float32" and domain is None else None
        options = _LibraryOptions(target="portable", verify=False, precision=precision)
        program = export_graph(operands, results, options)
    model: onnx.ModelProto = program.proto
    body = _Body(model.graph)
    domains = {"": OPSET, **{n.domain: 1 for n in _all_nodes(body.nodes) if n.domain}}
    inputs = [x.name for x in entry.inputs]
    outputs = [x.name for x in entry.outputs]
    if entry.kind == "random":
        domains[domain_of(dtype)] = 1
        nodes = list(_around_draws(entry, dtype, body))
    elif entry.kind == "core":
        nodes = list(_around_batches(entry, body))
    elif entry.kind == "elementwise" and not body.is_of_any_rank(model.functions):
        nodes = list(_around_vectors(entry, body))
    else:
        if entry.kind == "elementwise":
            body.use_numbers()
        body.rename(dict(zip(body.outputs, outputs, strict=True)))
        nodes = body.nodes
    function = helper.make_function(
        domain or domain_of(dtype),
        entry.name,
        inputs,
        outputs,
        nodes,
        [helper.make_opsetid(domain, version) for domain, version in domains.items()],
    )
    function.doc_string = entry.document(dtype)
    return Compiled(entry, dtype, function, tuple(map(_lean, model.functions)))


def _lean(function: FunctionProto) -> FunctionProto:
    """Return a function without the provenance of its nodes."""
    for node in function.node:
        node.ClearField("metadata_props")
    return function


class _Body:
    """The nodes of an exported graph, with its constants as nodes."""

    def __init__(self, graph: GraphProto) -> None:
        self.inputs = [x.name for x in graph.input]
        self.outputs = [x.name for x in graph.output]
        self.nodes: list[NodeProto] = []
        for tensor in graph.initializer:
            value = onnx.TensorProto()
            value.CopyFrom(tensor)
            value.name = ""
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=value))
        self.nodes += graph.node
        for node in self.nodes:
            node.ClearField("metadata_props")
            node.ClearField("name")
        taken = {name for node in self.nodes for name in (*node.input, *node.output)}
        identifiers: dict[str, str] = {}
        for name in taken:
            plain = re.sub(r"\W", "_", name)
            if plain != name:
                while plain in taken or plain in identifiers.values():
                    plain += "_"
                identifiers[name] = plain
        self.rename(identifiers)

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename values, also in bodies of operators."""
        for node in _all_nodes(self.nodes):
            node.input[:] = [names.get(x, x) for x in node.input]
            node.output[:] = [names.get(x, x) for x in node.output]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    for value in (*attribute.g.output, *attribute.g.input):
                        value.name = names.get(value.name, value.name)
        self.inputs = [names.get(x, x) for x in self.inputs]
        self.outputs = [names.get(x, x) for x in self.outputs]

    def is_of_any_rank(self, functions: Iterable[FunctionProto]) -> bool:
        """Return whether operators and functions work on operands of any rank."""
        return not any(_OF_BATCH.search(f.name) for f in functions) and all(
            node.domain or node.op_type in _ANY_RANK for node in self.nodes
        )

    def use_numbers(self) -> None:
        """Take the axis from constants of one element, so that numbers give numbers."""
        for node in self.nodes:
            if node.op_type == "Constant":
                array = numpy_helper.to_array(node.attribute[0].t)
                if array.shape == (1,):
                    node.attribute[0].t.CopyFrom(numpy_helper.from_array(array.reshape(())))


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g.node)


def _node(op_type: str, inputs: Sequence[str], output: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs, [output], **attributes)


def _integers(name: str, *numbers: int) -> NodeProto:
    return _node("Constant", [], name, value=numpy_helper.from_array(np.array(numbers, "int64")))


_OUTER = (
    "state",
    "shape",
    "batch",
    "size",
    "end",
    "zero",
    "one",
    "minus_one",
    "next_state",
    "core",
    "sizes",
)


def _flat(entry: Entry, body: _Body, inputs: Sequence[Argument]) -> None:
    """Rename the operands of a body, and values with names that nodes around it give."""
    names = {name: f"{name}_of_vectors" for name in (*_OUTER, *(x.name for x in entry.outputs))}
    body.rename(names | {x.name: f"flat_{x.name}" for x in inputs})


def _around_vectors(entry: Entry, body: _Body) -> Iterator[NodeProto]:
    """Yield the nodes of a function of vectors for operands of any shapes that broadcast."""
    names = [x.name for x in entry.inputs]
    _flat(entry, body, entry.inputs)
    yield _integers("minus_one", -1)
    if len(names) == 1:
        yield _node("Shape", names, "shape")
        yield _node("Reshape", [names[0], "minus_one"], body.inputs[0])
    else:
        widest = names[0]
        for name in names[1:]:
            yield _node("Shape", [name], f"shape_of_{name}")
            yield _node("Expand", [widest, f"shape_of_{name}"], f"with_{name}")
            widest = f"with_{name}"
        yield _node("Shape", [widest], "shape")
        for name, flat in zip(names, body.inputs, strict=True):
            yield _node("Expand", [name, "shape"], f"expanded_{name}")
            yield _node("Reshape", [f"expanded_{name}", "minus_one"], flat)
    yield from body.nodes
    for x, flat in zip(entry.outputs, body.outputs, strict=True):
        yield _node("Reshape", [flat, "shape"], x.name, allowzero=1)


def _is_elementwise(entry: Entry) -> bool:
    """Whether draws have parameters of their own, as numbers have and vectors have not."""
    return all(x.is_batched for x in entry.inputs[2:])


def _around_draws(entry: Entry, dtype: str, body: _Body) -> Iterator[NodeProto]:
    """Yield the nodes of a function of a state, a shape and parameters."""
    parameters = entry.inputs[2:]
    if not _is_elementwise(entry):
        yield from _around_drawn_vectors(entry, dtype, body)
        return
    _flat(entry, body, parameters)
    yield helper.make_node(
        NEXT_KEY, ["state"], ["next_state", body.inputs[0]], domain=domain_of(dtype)
    )
    yield _integers("minus_one", -1)
    for x in parameters:
        yield _node("Expand", [x.name, "shape"], f"expanded_{x.name}")
        yield _node("Reshape", [f"expanded_{x.name}", "minus_one"], f"flat_{x.name}")
    yield from body.nodes
    yield _node("Reshape", [body.outputs[0], "shape"], entry.outputs[0].name, allowzero=1)


def _around_drawn_vectors(entry: Entry, dtype: str, body: _Body) -> Iterator[NodeProto]:
    """Yield the nodes of draws of vectors or matrices, which share their parameters."""
    names = {name: f"{name}_of_vectors" for name in (*_OUTER, *(x.name for x in entry.outputs))}
    body.rename(names)
    key, size = body.inputs[:2]
    yield helper.make_node(NEXT_KEY, ["state"], ["next_state", key], domain=domain_of(dtype))
    yield _node("ReduceProd", ["shape"], size, keepdims=0)
    yield from body.nodes
    yield _node("Shape", [body.outputs[0]], "core", start=1)
    yield _node("Concat", ["shape", "core"], "sizes", axis=0)
    yield _node("Reshape", [body.outputs[0], "sizes"], entry.outputs[0].name, allowzero=1)


def _around_batches(entry: Entry, body: _Body) -> Iterator[NodeProto]:
    """Yield the nodes of a function of one batch axis for any axes before the core axes."""
    batched = [x for x in entry.inputs if x.is_batched]
    _flat(entry, body, batched)
    flat = {x.name: name for x, name in zip(entry.inputs, body.inputs, strict=True)}
    yield _integers("zero", 0)
    yield _integers("one", 1)
    batches = [f"batch_of_{x.name}" for x in batched] if len(batched) > 1 else ["batch"]
    for x, batch in zip(batched, batches, strict=True):
        end = {"end": -len(x.core)} if x.core else {}
        yield _node("Shape", [x.name], batch, start=0, **end)
    if len(batched) > 1:
        yield from _common_batch(batches)
    yield _node("ReduceProd", ["batch"], "size", keepdims=1)
    for x in batched:
        given, sizes = x.name, "size"
        if x.core:
            sizes = f"sizes_of_{x.name}"
            yield _node("Shape", [x.name], f"core_of_{x.name}", start=-len(x.core))
            yield _node("Concat", ["size", f"core_of_{x.name}"], sizes, axis=0)
        if len(batched) > 1:
            given = f"expanded_{x.name}"
            yield _node("Concat", ["batch", f"core_of_{x.name}"], f"whole_{x.name}", axis=0)
            yield _node("Expand", [x.name, f"whole_{x.name}"], given)
        yield _node("Reshape", [given, sizes], flat[x.name], allowzero=1)
    yield from body.nodes
    for x, result in zip(entry.outputs, body.outputs, strict=True):
        if x.core:
            yield _node("Shape", [result], f"core_of_{x.name}_", start=1)
            yield _node("Concat", ["batch", f"core_of_{x.name}_"], f"sizes_of_{x.name}_", axis=0)
            yield _node("Reshape", [result, f"sizes_of_{x.name}_"], x.name, allowzero=1)
        else:
            yield _node("Reshape", [result, "batch"], x.name, allowzero=1)


def _common_batch(batches: Sequence[str]) -> Iterator[NodeProto]:
    """Yield the nodes of the shape that batches broadcast to: that of arrays of nothing but it."""
    widest = "of_nothing"
    yield _node("Constant", [], widest, value=numpy_helper.from_array(np.array(False)))
    for batch in batches:
        yield _node("Expand", [widest, batch], f"{widest}_{batch}")
        widest = f"{widest}_{batch}"
    yield _node("Shape", [widest], "batch")
