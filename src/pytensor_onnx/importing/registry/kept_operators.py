"""Operators that PyTensor has no operation for stay operators, with their expression inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import walk
from pytensor.scan.op import Scan
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry import operator_types
from pytensor_onnx.ops.networks.kept_operator import KeptOperator

type Rebuild = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Variable]]

_MOST = 1000
"""Nodes beyond which an expression is no formula of one operator."""
_FREE = (DimShuffle, MakeVector, Reshape, Shape, Shape_i, SpecifyShape)
_WHOLE = (IfElse, OpFromGraph, RandomVariable, Scan)
"""Operations that are exported as one, or not at all."""
_DECOMPOSED = frozenset({"Clip", "Gemm", "Max", "Mean", "Min", "Pow", "Shape", "Size", "Sum"})
"""Operators whose expressions the exporter joins, or merges with those around them."""
_DIFFERENT = {"Resize": ("coordinate_transformation_mode", "align_corners")}
"""Operators, attributes and values for which ONNX Runtime deviates from the standard."""


def kept(
    node: ir.Node,
    opset: int,
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    results: Sequence[Variable],
    rebuild: Rebuild,
) -> Sequence[Variable]:
    """Return the results of a node, as those of a `KeptOperator` if they take many operations.

    Parameters
    ----------
    node, opset
        The node, and its version of the standard.
    operands, attributes
        Its operands and attributes as the import takes them.
    results
        The results of the import.
    rebuild
        Function of operands and attributes that returns the results.
    """
    if node.domain not in ("", "ai.onnx") or node.op_type in _DECOMPOSED:
        return results
    name, value = _DIFFERENT.get(node.op_type, ("", None))
    if name in attributes and attributes[name] == value:
        return results
    given = [v for v in operands if v is not None and not isinstance(v, Constant)]
    if len(set(given)) < len(given) or not all(isinstance(v, TensorVariable) for v in results):
        return results
    settings = {k: v for k, v in attributes.items() if k in node.attributes}
    if not all(isinstance(v, int | float | str | tuple) for v in settings.values()):
        return results
    if not given or not _is_formula(given, results):
        return results
    schema = operator_types.schema_of("", node.op_type, opset)
    assert schema is not None
    own = iter([v.type() for v in given])
    inner = [v if v is None or isinstance(v, Constant) else next(own) for v in operands]
    inputs = [v for v in inner if v is not None and not isinstance(v, Constant)]
    positions = iter(range(len(inputs)))
    operator = KeptOperator(
        node.op_type,
        tuple(settings.items()),
        schema.since_version,
        [
            None if v is None else v.data if isinstance(v, Constant) else next(positions)
            for v in inner
        ],
        inputs,
        [_as_known(v, known) for v, known in zip(rebuild(inner, attributes), results, strict=True)],
    )
    return operator(*given, return_list=True)


def _as_known(result: Any, known: Any) -> Variable:
    """Return a result with the sizes that were known outside of the operator."""
    shape = known.type.shape
    return result if result.type.shape == shape else pt.specify_shape(result, shape)


def _is_formula(operands: Sequence[Variable], results: Sequence[Variable]) -> bool:
    """Return whether results take two or more operations on operands, and nothing else."""
    vectors = [v.owner.inputs for v in operands if v.owner and isinstance(v.owner.op, MakeVector)]
    known, seen, heavy = {*operands, *chain(*vectors)}, 0, 0
    nodes: set[Apply] = set()

    def expand(variable: Variable) -> Sequence[Variable] | None:
        return None if variable in known or variable.owner is None else variable.owner.inputs

    for variable in walk(results, expand):
        seen += 1
        if seen > _MOST:
            return False
        if variable in known or isinstance(variable, Constant):
            continue
        owner = variable.owner
        if owner is None or isinstance(owner.op, _WHOLE):
            return False
        if owner not in nodes and not _is_free(owner):
            heavy += 1
        nodes.add(owner)
    return heavy > 1


def _is_free(node: Apply) -> bool:
    """Return whether a node only arranges elements, or reads a size."""
    source = node.inputs[0].owner if node.inputs else None
    of_shape = source is not None and isinstance(source.op, Shape)
    return isinstance(node.op, _FREE) or of_shape
