"""Operators that PyTensor computes by many operations stay operators: see `KeptOperator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import walk
from pytensor.scan.op import Scan
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.variable import TensorVariable

import pytensor_onnx.rewriting.networks.opened_operators  # noqa: F401  (for other modes)
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry import operator_types
from pytensor_onnx.importing.registry.bodies import BodyFailure
from pytensor_onnx.importing.registry.known_values import MOST_FOLDED, folded
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING
from pytensor_onnx.importing.registry.own_functions import GUARDED
from pytensor_onnx.ops.networks.kept_operator import ImportedNode, KeptOperator, note_origin

type Rebuild = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Variable]]

_MOST = 1000
"""Nodes beyond which an expression is no formula of one operator."""
_FREE = (DimShuffle, MakeVector, Reshape, Shape, Shape_i, SpecifyShape)
_ONE = (IfElse, OpFromGraph, RandomVariable, Scan)
"""Operations that are exported as one, or not at all."""
_DECOMPOSED = frozenset({"Clip", "Gemm", "Max", "Mean", "Min", "Pow", "Shape", "Size", "Sum"})
"""Operators whose expressions the exporter joins, or merges with those around them."""
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_QUANTISED = frozenset(
    {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear"}
    | {"QLinearConv", "QLinearMatMul", "QuantizeLinear"}
)
_WHOLE = _RECURRENT | _QUANTISED | {"ArgMax", "ArgMin", "Attention", "Pad", "RotaryEmbedding"}
"""Operators that are kept whatever their expressions are."""
_SCALING = frozenset({"DynamicQuantizeLinear"})
_SETTINGS = (int, float, str, tuple, np.ndarray)
_NUMBERS = frozenset({"float32", "float64", "int32", "int64"})
_ESTIMATORS = {
    "ArrayFeatureExtractor": _NUMBERS,
    "Binarizer": {"float32"},
    "FeatureVectorizer": _NUMBERS,
    "Imputer": {"float32", "int64"},
    "LabelEncoder": {"float32", "float64", "int64"},
    "LinearClassifier": _NUMBERS,
    "LinearRegressor": {"float32"},
    "Normalizer": _NUMBERS,
    "OneHotEncoder": {"float32", "float64", "int64"},
    "SVMClassifier": _NUMBERS,
    "SVMRegressor": {"float32"},
    "Scaler": _NUMBERS,
    "TreeEnsemble": {"float32", "float64"},
    "TreeEnsembleClassifier": _NUMBERS,
    "TreeEnsembleRegressor": {"float32", "float64"},
}
"""Dtypes of the first operand for which ONNX Runtime has a kernel of ai.onnx.ml."""


def imported(
    node: ir.Node,
    opset: int,
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    build: Rebuild,
) -> Sequence[Variable]:
    """Return the results of a node, as those of a `KeptOperator` if they take many operations.

    Parameters
    ----------
    node, opset
        The node, and its version of the standard.
    operands, attributes
        Its operands and attributes as the import takes them.
    build
        Function of operands and attributes that returns the results.
    """
    weights: list[Variable] = []
    if is_estimator := _is_estimator(node, operands):
        # Large expressions, which nothing around them changes, are built once.
        results: Sequence[Any] = [None] * len(node.outputs)
    else:
        results = build(operands, attributes)
        weights = _weights(node, operands, results)
        if not weights:
            results = folded(results, operands)
            if not _is_kept(node, operands, attributes, results):
                _mark(node, operands, results)
                return results
    given = weights or [v for v in operands if v is not None and not isinstance(v, Constant)]
    settings = {k: v for k, v in attributes.items() if k in node.attributes}
    names = [v.name for v in node.outputs[: len(results)]]
    positions = tuple(i for i, name in enumerate(names) if name != "")
    if not is_estimator and not all(isinstance(results[i], TensorVariable) for i in positions):
        return results
    if not positions or not all(isinstance(v, _SETTINGS) for v in settings.values()):
        return build(operands, attributes) if is_estimator else results
    schema = operator_types.schema_of(node.domain, node.op_type, opset)
    since = opset if schema is None else schema.since_version
    is_input = {id(v) for v in given}
    inner = [v if v is None or id(v) not in is_input else v.type() for v in operands]
    try:
        expression = build(inner, attributes)
    except (BodyFailure, UnsupportedCase):
        if is_estimator:
            raise
        return results  # it depends on sizes that are known outside
    if not all(isinstance(expression[i], TensorVariable) for i in positions):
        return results
    places = iter(range(len(operands)))
    stored = tuple(
        next(places) if v is not of else v for v, of in zip(inner, operands, strict=True)
    )
    operator = KeptOperator(
        ImportedNode(
            node.domain,
            node.op_type,
            since,
            settings,
            stored,
            len(node.outputs),
            positions,
            GUARDED in node.meta,
        ),
        [v for v, of in zip(inner, operands, strict=True) if v is not of],
        [
            expression[i] if is_estimator else _as_known(expression[i], results[i])
            for i in positions
        ],
    )
    whole = list(results)
    outputs = operator(*[v for v in operands if id(v) in is_input], return_list=True)
    for position, value in zip(positions, outputs, strict=True):
        whole[position] = value
    return whole


def _is_estimator(node: ir.Node, operands: Sequence[Variable | None]) -> bool:
    """Return whether a node is one of ai.onnx.ml that ONNX Runtime has a kernel for."""
    if node.domain != MACHINE_LEARNING or not any(node.outputs):
        return False
    if operands[0] is None or all(v is None or isinstance(v, Constant) for v in operands):
        return False
    return operands[0].type.dtype in _ESTIMATORS.get(node.op_type, ())


def _mark(node: ir.Node, operands: Sequence[Variable | None], results: Sequence[Variable]) -> None:
    """Note that operations of networks are those of an imported model."""
    for result in results:
        if isinstance(result, Variable) and result not in operands and GUARDED not in node.meta:
            note_origin(result, imported=True)


def is_whole(node: ir.Node) -> bool:
    """Return whether a node of the standard is kept, whatever its expression is."""
    return node.domain in ("", "ai.onnx") and node.op_type in _WHOLE


def _weights(
    node: ir.Node, operands: Sequence[Variable | None], results: Sequence[Variable]
) -> list[Variable]:
    """Return the quantised constant of a node of constants: its result is no constant."""
    given = [v for v in operands if v is not None]
    if node.domain not in ("", "ai.onnx") or not all(isinstance(v, Constant) for v in given):
        return []
    if node.op_type == "DequantizeLinear":
        return given[:1]
    is_weight = node.op_type == "Cast" and given[0].type.dtype in ("int8", "uint8")
    is_wide = results[0].type.dtype.startswith("float")
    return given[:1] if is_weight and is_wide and given[0].data.size > MOST_FOLDED else []


def _is_kept(
    node: ir.Node,
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    results: Sequence[Variable],
) -> bool:
    """Return whether a node becomes one operation."""
    given = [v for v in operands if v is not None and not isinstance(v, Constant)]
    if not given or all(isinstance(v, Constant) or v in given for v in results):
        return False
    if node.domain not in ("", "ai.onnx") or node.op_type in _DECOMPOSED:
        return False
    if not _has_kernel(node, attributes):
        return False
    if _is_product_of_scales(node, given):
        return True
    if is_whole(node):
        # Layers that are trained share the steps of the result and of its gradient.
        is_trained = any(isinstance(v, SharedVariable) for v in given)
        return not (is_trained and node.op_type in _RECURRENT)
    return len(set(given)) == len(given) and _is_formula(given, results)


def _has_kernel(node: ir.Node, attributes: Mapping[str, Any]) -> bool:
    """Return whether ONNX Runtime computes this case of an operator that is kept."""
    if node.op_type in _RECURRENT:
        return not attributes.get("layout")  # it has no batches in front
    if node.op_type == "Attention":
        # It returns other scores beside past keys, and takes no lengths with some masks.
        has_scores = len(node.outputs) > 3 and node.outputs[3].name != ""
        return not has_scores and not any(node.inputs[6:7])
    if node.op_type == "MaxUnpool":
        return not any(node.inputs[2:3])  # it writes to other places of a given shape
    return attributes.get("coordinate_transformation_mode") != "align_corners"


def _is_product_of_scales(node: ir.Node, given: Sequence[Variable]) -> bool:
    """Return whether a node makes the scale of a quantised product, which runtimes fuse with it.

    PyTensor's arithmetic would multiply the product by one scale after the other.
    """
    makers = [v.owner.op for v in given if v.owner is not None]
    is_scale = any(isinstance(op, KeptOperator) and op.operator in _SCALING for op in makers)
    return node.op_type == "Mul" and is_scale and all(n == 1 for v in given for n in v.type.shape)


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
        if owner is None or isinstance(owner.op, _ONE):
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
