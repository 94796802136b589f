"""The library of functions: all of the catalogue or a choice, as one file, and models of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import onnx
from onnx import FunctionProto, ModelProto, helper

from pytensor_onnx._version import __version__
from pytensor_onnx.catalogue.compile_entry import (
    NEXT_KEY,
    OPSET,
    Compiled,
    compile_entry,
    domain_of,
)
from pytensor_onnx.catalogue.distribution_entries import distribution_entries
from pytensor_onnx.catalogue.draft import DRAFT_DTYPES, draft_functions
from pytensor_onnx.catalogue.entry import Argument, Entry
from pytensor_onnx.catalogue.other_entries import (
    bijector_entries,
    matrix_entries,
    random_entries,
    special_entries,
)
from pytensor_onnx.catalogue.vector_entries import vector_entries
from pytensor_onnx.conversion import IR_VERSION
from pytensor_onnx.errors import ArgumentError, did_you_mean

DTYPES = ("float32", "float64")
DRAFT = "draft"
"""Name of the operators of the ONNX draft, which have a domain of their own."""

FAMILIES = {
    "continuous": "Continuous distributions",
    "discrete": "Discrete distributions",
    "vectors": "Distributions of vectors, matrices and series",
    "bijectors": "Bijectors",
    "special": "Special functions",
    "matrices": "Matrices",
    "states": "Random states",
}


def entries(only: Iterable[str] = ()) -> list[Entry]:
    """Return the functions of the catalogue.

    Parameters
    ----------
    only
        Names of distributions, bijectors, families or functions, in any case; all if empty.

    Raises
    ------
    ArgumentError
        If nothing has one of the names.

    Examples
    --------
    >>> [entry.name for entry in entries(["poisson"])][:3]
    ['PoissonLogProb', 'PoissonCdf', 'PoissonLogCdf']
    """
    every = [
        *distribution_entries(),
        *vector_entries(),
        *bijector_entries(),
        *special_entries(),
        *matrix_entries(),
        *random_entries(),
    ]
    wanted = {name.strip().lower() for name in only}
    if not wanted:
        return every
    known = {name.lower() for entry in every for name in _names_of(entry)}
    for name in sorted(wanted - known):
        hint = did_you_mean(name, sorted(known), "the page of the catalogue has all names")
        raise ArgumentError(f"the catalogue has no {name!r}: {hint}")
    return [entry for entry in every if wanted & {name.lower() for name in _names_of(entry)}]


def _names_of(entry: Entry) -> tuple[str, str, str]:
    return entry.name, entry.subject, entry.family


def compiled(only: Iterable[str] = (), dtypes: Sequence[str] = DTYPES) -> Iterator[Compiled]:
    """Yield the functions of `entries`, each for all dtypes; ``draft`` has the ONNX draft's."""
    names = [name.strip().lower() for name in only]
    rest = [name for name in names if name != DRAFT]
    for entry in entries(rest) if rest or not names else ():
        for dtype in dtypes:
            yield compile_entry(entry, dtype)
    if DRAFT in names:
        for dtype in DRAFT_DTYPES if tuple(dtypes) == DTYPES else dtypes:
            yield from draft_functions(dtype)


def build_catalogue(only: Iterable[str] = (), *, dtypes: Sequence[str] = DTYPES) -> ModelProto:
    """Return a model that is a library of functions, with an empty graph.

    Parameters
    ----------
    only
        As in `entries`.
    dtypes
        Dtypes of the functions: ``"float32"``, ``"float64"``. Each is a domain of its own,
        ``pytensor.prob.float32`` and ``pytensor.prob.float64``, with the same names.

    Returns
    -------
    ModelProto
        The library. A model that calls its functions takes them over by
        ``model.functions.extend(library.functions)``, or by ``onnx.compose``.

    Examples
    --------
    >>> library = build_catalogue(["laplace"], dtypes=["float32"])
    >>> library.functions[0].name, len(library.functions[0].node)
    ('LaplaceLogProb', 8)
    """
    return library_of(compiled(only, dtypes))


def library_of(made: Iterable[Compiled]) -> ModelProto:
    """Return the model that holds functions, and the functions that they call."""
    functions = Functions()
    for one in made:
        if one.entry.kind == "random":
            functions.add(_next_key(one.dtype))
        functions.add(one)
    graph = helper.make_graph([], "catalogue", [], [])
    return _model(graph, functions.all)


@cache
def _next_key(dtype: str) -> Compiled:
    (entry,) = (entry for entry in random_entries() if entry.name == NEXT_KEY)
    return compile_entry(entry, dtype)


def model_of(one: Compiled, ranks: Sequence[int] = ()) -> ModelProto:
    """Return a model whose graph is one call of a function.

    Parameters
    ----------
    one
        The function.
    ranks
        Rank of each operand; those of the examples if empty.
    """
    entry = one.entry
    ranks = list(ranks) or [np.ndim(x.example) for x in entry.inputs]
    batches = [r - len(x.core) for r, x in zip(ranks, entry.inputs, strict=True) if x.is_batched]
    batch = max(batches, default=0)
    if entry.kind == "random":
        batch = np.size(entry.inputs[1].example)
    node = helper.make_node(
        entry.name,
        [x.name for x in entry.inputs],
        [x.name for x in entry.outputs],
        domain=domain_of(one.dtype),
    )
    outputs = [batch * x.is_batched + len(x.core) for x in entry.outputs]
    graph = helper.make_graph(
        [node],
        entry.name,
        [_value(x, one.dtype, rank) for x, rank in zip(entry.inputs, ranks, strict=True)],
        [_value(x, one.dtype, rank) for x, rank in zip(entry.outputs, outputs, strict=True)],
    )
    return _model(graph, library_of([one]).functions)


def _value(argument: Argument, dtype: str, rank: int) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(argument.dtype_in(dtype)))
    return helper.make_tensor_value_info(argument.name, element, [None] * rank)


def _model(graph: onnx.GraphProto, functions: Iterable[FunctionProto]) -> ModelProto:
    functions = list(functions)
    domains = sorted({f.domain for f in functions})
    opsets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(
        graph,
        functions=functions,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="pytensor-onnx",
        producer_version=__version__,
    )


class Functions:
    """Functions of one file: equal ones once, and different ones of a name with numbers."""

    def __init__(self) -> None:
        self.all: list[FunctionProto] = []
        self._contents: dict[tuple[str, str], dict[bytes, str]] = {}

    def add(self, one: Compiled) -> None:
        """Add a function before the functions that it calls."""
        renamed: dict[tuple[str, str], str] = {}
        for function in (*one.called, one.function):
            self._add(function, renamed)

    def _add(self, function: FunctionProto, renamed: dict[tuple[str, str], str]) -> None:
        copy = FunctionProto()
        copy.CopyFrom(function)
        for node in _nodes(copy.node):
            node.op_type = renamed.get((node.domain, node.op_type), node.op_type)
        key = function.domain, function.name
        content = copy.SerializeToString(deterministic=True)
        names = self._contents.setdefault(key, {})
        if content in names:
            if names[content] != function.name:
                renamed[key] = names[content]
            return
        if names:
            copy.name = f"{function.name}_{len(names)}"
            renamed[key] = copy.name
        names[content] = copy.name
        self.all.append(copy)


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g.node)
