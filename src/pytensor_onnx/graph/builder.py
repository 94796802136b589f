"""The builder that lowerings emit operators through."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.emitter import Operand
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.subgraphs import Body, Described, Meaning, SubgraphBuilder, define
from pytensor_onnx.graph.traversal import STANDARD_DOMAIN
from pytensor_onnx.operators.dims import Dim, Dims, dims_of, sizes_in

__all__ = ["Body", "Builder", "Described", "Meaning", "ModelScope", "Operand"]


class Builder(SubgraphBuilder):
    """Emits the nodes of one graph, subgraph or function body.

    Every standard operator is a method: ``build.Gather(x, index, axis=0)``. Python numbers become
    constants in the dtype of the operand they meet. The values returned know their dtype and, where
    it can be told, their shape. Operators of several outputs take ``outputs=``.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> build = Builder(ModelScope(opset_version=21))
    >>> x = ir.val("x", dtype=ir.DataType.DOUBLE, shape=("n", 3))
    >>> y = build.Mul(build.Add(x, 1), 0.5)
    >>> y.dtype, build.Less(y, x).dtype
    (DOUBLE, BOOL)
    >>> [node.op_type for node in build.nodes]
    ['Add', 'Mul', 'Less']
    """

    def call(
        self,
        name: str,
        body: Body,
        *operands: ir.Value,
        variant: str | None = None,
        key: Hashable = None,
        shapes: Sequence[Dims] | None = None,
        described: Described | None = None,
    ) -> Any:
        """Call a model-local function, which is defined on its first use.

        Parameters
        ----------
        name
            Name of the function.
        body
            Receives a builder and one value for each operand, with its dtype but no shape, and
            returns the result or the list of results.
        operands
            Arguments.
        variant
            Tells apart definitions of the same name, and is part of it; by default the dtypes of
            the operands. (ONNX has overloads for this, but runtimes do not find an overloaded
            function that another function calls.)
        key
            Identity of the definition, its full name unless given. Other ``shapes`` make another
            definition.
        shapes
            Dimensions of the operands that the definition may rely on; without them it must serve
            every rank.
        described
            Documentation of the function, names of its parameters, dtypes of its results, and the
            operation that it computes; by default the one called ``name``.

        Returns
        -------
        onnx_ir.Value or list of onnx_ir.Value
            Results of the body for these operands.
        """
        if variant is None:
            variant = "_".join(dict.fromkeys(_dtype_name(x) for x in operands))
        dtype = _dtype_name(operands[0]) if operands else ""
        described = described or Described(meaning=Meaning(name, dtype))
        name = f"{name}_{variant}" if variant else name
        key = key or name, None if shapes is None else tuple(map(tuple, shapes))
        local = self.scope.functions.get(key)
        if local is None and self._calls_kernel(name, described):
            types = [ir.TensorType(ir.DataType.from_numpy(np.dtype(x))) for x in described.dtypes]
            results = [ir.Value(type=type_) for type_ in types]
            self._emit(name, operands, results, domain=STANDARD_DOMAIN)
            return results
        if local is None:
            inner = Builder(self.scope, in_function=True, shaped=shapes is not None)
            local = define(inner, name, body, operands, shapes, described)
            self.scope.functions[key] = local
        values = [ir.Value(type=out.type) for out in local.function.outputs]
        self._emit(local.function.name, operands, values, domain=local.function.domain)
        return values if local.returns_list else values[0]

    def _calls_kernel(self, name: str, described: Described) -> bool:
        """Return whether a call needs no body: within functions, types follow from bodies alone."""
        is_known = described.is_standard and bool(described.dtypes)
        return is_known and not self.in_function and self.scope.calls_kernel(name)


def _dtype_name(value: ir.Value) -> str:
    return "" if value.dtype is None else str(value.dtype.numpy())


def drop_checks_of_inputs(build: Builder, inputs: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    """Drop checks that two sizes of inputs are equal if other nodes require the same.

    The inputs then have one name for both sizes, and every call compares sizes of one name.

    Parameters
    ----------
    build
        Builder of the nodes.
    inputs
        Inputs of the model.

    Returns
    -------
    dict
        The checked value for each result of a check that was dropped.
    """
    scope = build.scope
    given = {dim for value in inputs for dim in dims_of(value) or () if isinstance(dim, str)}
    kept: dict[ir.Value, ir.Value] = {}
    for node in build.nodes:
        checked = _checked_sizes(node)
        if checked <= given and len({scope.dims.canonical(dim) for dim in checked}) == 1:
            (copy,) = node.attributes["then_branch"].as_graph()
            value = copy.inputs[0]
            assert value is not None
            kept[node.outputs[0]] = value
            ir.convenience.replace_all_uses_with(node.outputs[0], value)
    return kept


def _checked_sizes(node: ir.Node) -> set[Dim]:
    """Return the two dimensions whose equality a node checks, or an empty set."""
    if node.op_type != "If" or node.domain or node.inputs[0] is None:
        return set()
    failed = node.attributes["else_branch"].as_graph()
    condition = node.inputs[0].producer()
    if condition is None or condition.op_type != "Equal":
        return set()
    if not any(map(is_check, failed)):
        return set()
    sizes = [sizes_in(value) for value in condition.inputs]
    return {dim for known in sizes if known is not None and len(known) == 1 for dim in known}


CHECK = "pytensor.check"
"""Metadata of a node that fails where a check does: type and message of the error."""

NO_BROADCAST = (
    "Runtime broadcasting not allowed: an axis of an operand has one element, and its type does "
    "not say so"
)
"""Message of a Reshape that compares a computed size with that of another operand."""

_LONGEST_NAME = 60


def name_failure(build: Builder, value: ir.Value, error: Exception) -> None:
    """Record the exception for the failure of a node, and name the node after it.

    Parameters
    ----------
    build
        Builder that emitted the node.
    value
        Result of the node.
    error
        Raised in place of the runtime's error.
    """
    producer = value.producer()
    if producer is None:
        return
    text = _text(error)
    words = re.sub(r"\W+", "_", f"check {error}")[:_LONGEST_NAME].strip("_")
    producer.name = build.scope.names.unique(words)
    producer.metadata_props[CHECK] = text
    build.scope.failures[text] = error


def index_of(error: Exception) -> int:
    """Return an out-of-range index that identifies the failed check by its error message.

    ONNX Runtime drops the names of nodes in a branch whose condition it knows; its message has
    the index.
    """
    return _index(_text(error))


def fails_by(node: ir.Node, index: int) -> bool:
    """Return whether a node is a check that fails by an index."""
    text = node.metadata_props.get(CHECK)
    return text is not None and _index(text) == index


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _index(text: str) -> int:
    return 2**32 + crc32(text.encode())


def is_check(node: ir.Node) -> bool:
    """Return whether a node has an exception for its failure."""
    return CHECK in node.metadata_props


# Attach fallbacks to nodes: other operators for targets that cannot run them.
#
# A fallback belongs to one node and is emitted inline; it is no definition of an Op, which is a
# function of the model.

Fallback = Callable[..., ir.Value | Sequence[ir.Value]]

_KEY = "fallback"


def carry_fallback(node: ir.Node | None, fallback: Fallback) -> None:
    """Attach a function to a node that emits it in operators of every target.

    Parameters
    ----------
    node
        Node of an operator.
    fallback
        Receives a builder and the operands of the node, and returns its results.
    """
    if node is None:
        raise TypeError("only a node can carry a fallback")
    node.meta[_KEY] = fallback


def has_fallback(node: ir.Node) -> bool:
    """Return whether a node has a fallback."""
    return _KEY in node.meta


def fallback_of(node: ir.Node) -> Fallback | None:
    """Return the fallback of a node, None without one."""
    fallback: Fallback | None = node.meta.get(_KEY)
    return fallback


def convert_fallback(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Emit the fallback of a node."""
    results = node.meta[_KEY](build, *node.inputs)
    return [results] if isinstance(results, ir.Value) else list(results)
