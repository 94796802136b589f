"""Operators that stay operators, and norms that files write out in single ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

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
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

import pytensor_onnx.rewriting.query.encode_values  # noqa: F401  (for other modes)
from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.bodies import GUARDED, BodyFailure
from pytensor_onnx.importing.registry.known_values import MOST_FOLDED, folded, known
from pytensor_onnx.importing.registry.narrow_types import (
    is_narrow,
    marked,
    narrow_type,
    result_type,
)
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING, OperatorImport
from pytensor_onnx.importing.registry.sequences import VariableSequence
from pytensor_onnx.operators.inference import schema_of
from pytensor_onnx.operators.reductions import LONGEST_SHORT_SUM, REDUCTIONS
from pytensor_onnx.ops.elementwise import BitsAs
from pytensor_onnx.ops.networks.kept_operator import (
    MICROSOFT,
    UNCHANGED_SINCE,
    ImportedNode,
    KeptOperator,
    note_origin,
)

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
_WHOLE = (
    _RECURRENT
    | _QUANTISED
    | {"ArgMax", "ArgMin", "Attention", "CausalConvWithState", "Einsum", "LinearAttention"}
    | {"Pad", "ReduceLogSumExp", "RotaryEmbedding", "Tile"}
)
"""Operators that are kept whatever their expressions are."""
_ONE_HOT = frozenset(
    {
        ("float32", "float32", "float32"),
        ("float32", "int64", "int64"),
        ("int32", "int32", "float32"),
    }
    | {("int32", "float32", "float32"), ("int64", "float32", "float32")}
    | {("int64", "float32", "int32"), ("int64", "int32", "float32")}
    | {("int64", "int64", "float32"), ("int64", "int64", "int64")}
)
"""Dtypes of indices, depth and values for which ONNX Runtime has a kernel of OneHot."""
_OF_SCHEMAS = {"float32": "float", "float64": "double"}
_NEW_OPSET = 27
"""First opset that the promised version of ONNX Runtime does not know."""
_ALONE = (
    _QUANTISED
    | _RECURRENT
    | {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "Einsum", "MatMulInteger"}
    | {"MatMulIntegerToFloat"}
    | {"Pad", "ReduceMean", "Tile"}
)
"""Operators that are kept whatever surrounds them."""
_STORED = frozenset({"float16", "int8", "uint8"})
"""Dtypes in which files store weights that they cast to floats."""
_READING = frozenset({"Cast", "DequantizeLinear", "GatherBlockQuantized"})
"""Operators that make wider numbers of those of few bits."""
_OF_GRAPHICS = frozenset({"BiasAdd", "BiasSplitGelu", "GroupNorm", "SkipGroupNorm"})
"""Operators that ONNX Runtime has on graphics processors only."""
_WINDOWS = frozenset({"AveragePool", "Conv", "MaxPool"})
_SHIFTING = frozenset({"Mul", "Sub"})
_OF_RUNTIME = frozenset({"bool", "float32", "int32", "int64", "int8", "uint8"})
"""Dtypes of the kernels that ONNX Runtime has on processors for operators of its own domain."""
_SCALING = frozenset({"DynamicQuantizeLinear"})
_SHARED: WeakValueDictionary[Any, KeptOperator] = WeakValueDictionary()
"""Operations that many nodes of networks have, such as the quantisation of each layer."""
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
    found: OperatorImport | None = None,
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
    found
        The import of the operator, if it has one.
    """
    if any(isinstance(v, VariableSequence) for v in operands):
        return build(operands, attributes)
    given = [v for v in operands if v is not None and not isinstance(v, Constant)]
    if is_narrow(node, operands, opset):
        results = build(operands, attributes)
        if _reads_few_bits(node, operands, opset):
            stored = given or [v for v in operands[:1] if v is not None]
            return _kept(node, opset, operands, attributes, build, stored, results) or results
        return results
    if _is_estimator(node, operands):
        # Large expressions, which nothing around them changes, are built once.
        whole = _kept(node, opset, operands, attributes, build, given)
        return build(operands, attributes) if whole is None else whole
    if _is_kept_alone(node, given, operands, attributes):
        with suppress(BodyFailure, UnsupportedCase):  # it depends on values that are known outside
            types = (
                None
                if found is None or found.types is None
                else found.types(*operands, **attributes)
            )
            if found is not None and types is not None:
                return _kept_unbuilt(node, opset, operands, attributes, found, types, given)
            whole = _kept(node, opset, operands, attributes, build, given)
            if whole is not None:
                return whole
    results = build(operands, attributes)
    if any(isinstance(v, VariableSequence) for v in results) or list(results) == [None]:
        return results
    weights = _weights(node, operands, results)
    if not weights:
        results = folded(results, operands)
        if not _is_kept(node, operands, attributes, results):
            _mark(node, operands, results)
            return results
    with suppress(BodyFailure, UnsupportedCase):  # it depends on sizes that are known outside
        whole = _kept(node, opset, operands, attributes, build, weights or given, results)
        if whole is not None:
            return whole
    return results


def _kept(
    node: ir.Node,
    opset: int,
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    build: Rebuild,
    given: Sequence[Variable],
    results: Sequence[Any] | None = None,
) -> Sequence[Variable] | None:
    """Return the results of a node as those of one operation, None where it cannot be one.

    Results of the expression on the operands tell more sizes than the expression alone.
    """
    settings = {k: v for k, v in attributes.items() if k in node.attributes}
    if not all(isinstance(v, _SETTINGS) for v in settings.values()):
        return None
    key = _shared_key(node, opset, operands) if results is None and not settings else None
    shared = None if key is None else _SHARED.get(key)
    if shared is not None:
        return shared(*given, return_list=True)
    inner = _inner_operands(operands, given)
    expression = build(inner, attributes)
    if results is None and any(v in inner for v in expression if v is not None):
        return None  # it changes nothing
    found = [None] * len(expression) if results is None else results
    names = [v.name for v in node.outputs[: len(found)]]
    positions = tuple(i for i, name in enumerate(names) if name != "")
    arrays = [v[i] for v in (expression, results or expression) for i in positions]
    if not positions or not all(isinstance(v, TensorVariable) for v in arrays):
        return None
    operator = KeptOperator(
        _node(node, opset, operands, inner, settings, positions),
        [v for v, of in zip(inner, operands, strict=True) if v is not of],
        [
            expression[i] if results is None else _as_known(expression[i], results[i])
            for i in positions
        ],
    )
    if key is not None:
        _SHARED[key] = operator
    return _applied(operator, operands, given, found)


def _reads_few_bits(node: ir.Node, operands: Sequence[Variable | None], opset: int) -> bool:
    """Return whether a node makes wider numbers of constants of few bits, which files store."""
    if node.op_type not in _READING or result_type(node, operands, opset, 0) is not None:
        return False
    is_stored = all(isinstance(v, Constant) for v in operands if narrow_type(v) is not None)
    has_input = any(v is not None and not isinstance(v, Constant) for v in operands)
    return is_stored and has_input == (node.op_type == "GatherBlockQuantized")


def _kept_unbuilt(
    node: ir.Node,
    opset: int,
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    found: OperatorImport,
    types: Sequence[TensorType],
    given: Sequence[Variable],
) -> Sequence[Variable | None]:
    """Return the results of a node as those of one operation, whose expression is built later."""
    types = types[: len(node.outputs)]
    positions = tuple(i for i, v in enumerate(node.outputs[: len(types)]) if v.name != "")
    settings = {k: v for k, v in attributes.items() if k in node.attributes}
    inner = _inner_operands(operands, given)
    operator = KeptOperator(
        _node(node, opset, operands, inner, settings, positions),
        [v for v, of in zip(inner, operands, strict=True) if v is not of],
        partial(_chosen, found.function, inner, dict(attributes), positions),
        [types[i] for i in positions],
    )
    return _applied(operator, operands, given, [None] * len(types))


def _applied(
    operator: KeptOperator,
    operands: Sequence[Variable | None],
    given: Sequence[Variable],
    results: Sequence[Any],
) -> list[Any]:
    """Return results, with those of an operation in the place of the ones that a file names."""
    is_input = {id(v) for v in given}
    outputs = operator(*[v for v in operands if id(v) in is_input], return_list=True)
    whole = list(results)
    for position, value in zip(operator.imported.results, outputs, strict=True):
        whole[position] = value
    return whole


def _chosen(
    function: Callable[..., Any],
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
    positions: Sequence[int],
) -> list[Any]:
    """Return the results of a function at positions."""
    made = function(*operands, **attributes)
    results = made if isinstance(made, list | tuple) else [made]
    return [results[i] for i in positions]


def _inner_operands(
    operands: Sequence[Variable | None], given: Sequence[Variable]
) -> list[Variable | None]:
    """Return the operands with new variables in place of the given ones."""
    is_input = {id(v) for v in given}
    return [
        v if v is None or id(v) not in is_input else marked(v.type(), narrow_type(v))
        for v in operands
    ]


def _node(
    node: ir.Node,
    opset: int,
    operands: Sequence[Variable | None],
    inner: Sequence[Variable | None],
    attributes: dict[str, Any],
    positions: tuple[int, ...],
) -> ImportedNode:
    """Return the record of a node, from its operands and those of its expression."""
    places = iter(range(len(operands)))
    stored: tuple[int | Constant | None, ...] = tuple(
        next(places) if v is not of else v for v, of in zip(inner, operands, strict=True)
    )
    since = _since(node, opset, operands)
    narrow = tuple(map(narrow_type, operands))
    if node.op_type in REDUCTIONS and not node.domain and "axes" in attributes:
        # Axes are operands since: the files that are written have no older operators.
        axes = np.asarray(attributes.pop("axes"), dtype="int64")
        stored, since = (*stored, pt.constant(axes)), 13 if node.op_type == "ReduceSum" else 18
        narrow = (*narrow, None)
    return ImportedNode(
        node.domain,
        node.op_type,
        since,
        attributes,
        stored,
        len(node.outputs),
        positions,
        GUARDED in node.meta,
        narrow,
    )


def _shared_key(node: ir.Node, opset: int, operands: Sequence[Variable | None]) -> Any:
    """Return what determines an operation without constants and attributes, None for others."""
    is_plain = all(v is not None and not isinstance(v, Constant) for v in operands)
    if not is_plain or not all(v.name != "" for v in node.outputs):
        return None
    types = tuple(v.type for v in operands if v is not None)
    return node.domain, node.op_type, opset, types, len(node.outputs), GUARDED in node.meta


def _since(node: ir.Node, opset: int, operands: Sequence[Variable | None]) -> int:
    """Return the first version of an operator; for new ones, an older one that takes the operands.

    Few runtimes have kernels of the newest versions.
    """
    schema = schema_of(node.op_type, opset, node.domain)
    if schema is None:
        return opset
    newest = schema.since_version
    if node.domain not in ("", "ai.onnx") or newest < _NEW_OPSET:
        return newest
    older = range(UNCHANGED_SINCE.get(("", node.op_type), newest), newest)
    return next((v for v in older if _takes(node, v, operands)), newest)


def _takes(node: ir.Node, version: int, operands: Sequence[Variable | None]) -> bool:
    """Return whether an operator takes attributes and operands in a version."""
    schema = schema_of(node.op_type, version, "")
    if schema is None or not node.attributes.keys() <= schema.attributes.keys():
        return False
    last = len(schema.inputs) - 1
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for position, variable in enumerate(operands):
        if variable is None:
            continue
        name = schema.inputs[min(position, last)].type_str
        dtype = variable.type.dtype
        if f"tensor({_OF_SCHEMAS.get(dtype, dtype)})" not in allowed.get(name, [name]):
            return False
    return True


def _is_kept_alone(
    node: ir.Node,
    given: Sequence[Variable],
    operands: Sequence[Variable | None],
    attributes: Mapping[str, Any],
) -> bool:
    """Return whether a node is kept, and its expression depends on the types of operands alone."""
    if not given or not (node.op_type in _ALONE or _is_padded_by_size(node, given[0], attributes)):
        return False
    if node.domain == MICROSOFT:
        return all(v.type.dtype in _OF_RUNTIME for v in given)
    if node.domain not in ("", "ai.onnx") or not _has_kernel(node, operands, attributes):
        return False
    if node.op_type in ("Pad", "ReduceMean", "Tile") and len(given) > 1:
        return False  # axes or numbers may be known outside
    # Layers that are trained share the steps of the result and of its gradient.
    return not (node.op_type in _RECURRENT and any(isinstance(v, SharedVariable) for v in given))


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
    is_weight = node.op_type == "Cast" and given[0].type.dtype in _STORED
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
    if node.domain == MICROSOFT:
        # ONNX Runtime has packed keys and values on graphics processors only.
        is_packed = node.op_type == "MultiHeadAttention" and any(v.type.ndim == 5 for v in given)
        if is_packed or node.op_type in _OF_GRAPHICS:
            return False
        return all(v.type.dtype in _OF_RUNTIME for v in given)
    if node.domain not in ("", "ai.onnx") or node.op_type in _DECOMPOSED:
        return False
    if not _has_kernel(node, operands, attributes):
        return False
    if node.op_type == "BitCast":
        return any(v.owner is not None and isinstance(v.owner.op, BitsAs) for v in results)
    if _is_product_of_scales(node, given) or _is_scaled_weight(node, given):
        return True
    if _is_padded_by_size(node, given[0], attributes):
        return True
    if node.op_type == "ReduceSum" and _is_long_sum(given):
        return True
    if is_whole(node):
        # Layers that are trained share the steps of the result and of its gradient.
        is_trained = any(isinstance(v, SharedVariable) for v in given)
        return not (is_trained and node.op_type in _RECURRENT)
    return len(set(given)) == len(given) and _is_formula(given, results)


def _has_kernel(
    node: ir.Node, operands: Sequence[Variable | None], attributes: Mapping[str, Any]
) -> bool:
    """Return whether ONNX Runtime computes this case of an operator that is kept."""
    if node.op_type in _RECURRENT:
        return not attributes.get("layout")  # it has no batches in front
    if node.op_type == "Attention":
        # It returns other scores beside past keys, and takes no lengths with some masks.
        has_scores = len(node.outputs) > 3 and node.outputs[3].name != ""
        return not has_scores and not any(node.inputs[6:7])
    if node.op_type == "Einsum":
        # It rounds large integers.
        return all(v is not None and v.type.dtype in ("float32", "float64") for v in operands)
    if node.op_type == "OneHot":
        return tuple(v.type.dtype for v in operands if v is not None) in _ONE_HOT
    if node.op_type == "MaxUnpool":
        return not any(node.inputs[2:3])  # it writes to other places of a given shape
    return attributes.get("coordinate_transformation_mode") != "align_corners"


def _is_padded_by_size(node: ir.Node, x: Variable, attributes: Mapping[str, Any]) -> bool:
    """Return whether the padding of windows depends on sizes that are not known."""
    is_same = str(attributes.get("auto_pad", "")).startswith("SAME")
    return is_same and node.op_type in _WINDOWS and None in x.type.shape[2:]


def _is_long_sum(given: Sequence[Variable]) -> bool:
    """Return whether PyTensor's sum of float32 would be one of float64, as it may be long."""
    shape = given[0].type.shape
    is_short = None not in shape and np.prod(shape, dtype="int64") <= LONGEST_SHORT_SUM
    return len(given) == 1 and given[0].type.dtype == "float32" and not is_short


def _is_product_of_scales(node: ir.Node, given: Sequence[Variable]) -> bool:
    """Return whether a node makes the scale of a quantised product, which runtimes fuse with it.

    PyTensor's arithmetic would multiply the product by one scale after the other.
    """
    makers = [v.owner.op for v in given if v.owner is not None]
    is_scale = any(isinstance(op, KeptOperator) and op.operator in _SCALING for op in makers)
    return node.op_type == "Mul" and is_scale and all(n == 1 for v in given for n in v.type.shape)


def _is_scaled_weight(node: ir.Node, given: Sequence[Variable]) -> bool:
    """Return whether a node shifts or scales a quantised weight.

    Axes that a batch adds to it would go into the product, and runtimes multiply stacks of
    matrices slower than matrices.
    """
    return node.op_type in _SHIFTING and all(map(_is_weight, given))


def _is_weight(variable: Variable) -> bool:
    node = variable.owner
    is_kept = node is not None and isinstance(node.op, KeptOperator)
    return isinstance(variable, Constant) or (is_kept and all(map(_is_weight, node.inputs)))


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


# Recognise layer norms and other norms that files write out in single operators.
#
# PyTorch before opset 17, tf2onnx and Paddle write a layer norm as ReduceMean, Sub, Pow,
# ReduceMean, Add, Sqrt, Div, Mul and Add. Runtimes fuse these nodes, but not the nodes of
# PyTensor's mean.

type VariableOf = Callable[[ir.Value], Any]


class _Norm(NamedTuple):
    """The operands of a norm: the array, its scale, the number of axes, epsilon, and the kind."""

    x: TensorVariable
    scale: TensorVariable
    axes: int
    epsilon: float
    is_centred: bool


def written_norm(node: ir.Node, variable_of: VariableOf) -> TensorVariable | None:
    """Return the norm that ends in a node, or None.

    Parameters
    ----------
    node
        Node of the standard domain.
    variable_of
        Function of the operands of nodes that returns their variables.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, g, two, e = (ir.val(name) for name in ("x", "g", "two", "e"))
    >>> square = ir.node("Pow", [x, two]).outputs[0]
    >>> mean = ir.node("ReduceMean", [square], {"axes": [-1]})
    >>> root = ir.node("Sqrt", [ir.node("Add", [mean.outputs[0], e]).outputs[0]])
    >>> node = ir.node("Mul", [ir.node("Div", [x, root.outputs[0]]).outputs[0], g])
    >>> values = {
    ...     x: pt.fmatrix("x", shape=(None, 3)),
    ...     square: pt.fmatrix(),
    ...     g: pt.fvector("g", shape=(3,)),
    ...     two: pt.constant(2.0),
    ...     e: pt.constant(1e-5),
    ... }
    >>> print(written_norm(node, values.get).owner.op)
    RMSNorm{n_axes=1, epsilon=1e-05}
    """
    if node.op_type == "Mul":
        if any(_norm_with_shift(use.node, variable_of) for use in node.outputs[0].uses()):
            return None  # the shift ends the norm
        norm = _scaled(node, variable_of)
        if norm is None:
            return None
        if norm.is_centred:
            return nn.layer_norm(norm.x, norm.scale, None, -norm.axes, norm.epsilon)
        return nn.rms_norm(norm.x, norm.scale, -norm.axes, norm.epsilon)
    shifted = _norm_with_shift(node, variable_of) if node.op_type == "Add" else None
    if shifted is None:
        return None
    norm, shift = shifted
    return nn.layer_norm(norm.x, norm.scale, shift, -norm.axes, norm.epsilon)


def _norm_with_shift(node: ir.Node, variable_of: VariableOf) -> tuple[_Norm, TensorVariable] | None:
    if node.op_type != "Add" or node.domain not in ("", "ai.onnx"):
        return None
    for scaled, shift in _orders(node):
        product = _made_by(scaled, "Mul")
        norm = _scaled(product, variable_of) if product is not None else None
        if norm is not None and norm.is_centred:
            beta = variable_of(shift)
            return (norm, beta) if _is_parameter(beta, norm.x, norm.axes) else None
    return None


def _scaled(node: ir.Node, variable_of: VariableOf) -> _Norm | None:
    """Return the norm whose scale a product applies."""
    for value, scale in _orders(node):
        found = _standardised(value, variable_of)
        if found is not None:
            x, axes, epsilon, is_centred = found
            gamma = variable_of(scale)
            if _is_parameter(gamma, x, axes):
                return _Norm(x, gamma, axes, epsilon, is_centred)
    return None


def _standardised(
    value: ir.Value | None, variable_of: VariableOf
) -> tuple[TensorVariable, int, float, bool] | None:
    """Return array, number of axes and epsilon of ``d / sqrt(mean(d ** 2) + epsilon)``."""
    for dividend, divisor in _quotients(value, variable_of):
        root = _made_by(divisor, "Sqrt")
        total = None if root is None else _made_by(root.inputs[0], "Add")
        for mean, added in [] if total is None else _orders(total):
            epsilon = _number(added, variable_of)
            square = None if epsilon is None else _mean_of(mean, variable_of)
            if square is None or not epsilon:
                continue
            squared, axes = square
            base = _base(squared, variable_of)
            x = None if base is None else _array(dividend, base, axes, variable_of)
            if x is not None:
                variable = variable_of(x)
                if isinstance(variable, TensorVariable) and variable.type.dtype == "float32":
                    return variable, axes, epsilon, x is not dividend
    return None


def _array(
    dividend: ir.Value, base: ir.Value, axes: int, variable_of: VariableOf
) -> ir.Value | None:
    """Return the array whose deviations, or which itself, are divided and squared."""
    below, within = (_deviation(value, axes, variable_of) for value in (dividend, base))
    if below is not None and within is not None:
        return below if below is within else None
    return dividend if dividend is base else None


def _deviation(value: ir.Value, axes: int, variable_of: VariableOf) -> ir.Value | None:
    """Return x of ``x - mean(x)`` over the last axes."""
    node = _made_by(value, "Sub")
    found = None if node is None else _mean_of(node.inputs[1], variable_of)
    is_own = found is not None and node is not None and found == (node.inputs[0], axes)
    return found[0] if found is not None and is_own else None


def _quotients(
    value: ir.Value | None, variable_of: VariableOf
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield dividends and divisors of a quotient, or of a product with a reciprocal."""
    node = _made_by(value, "Div")
    if node is not None:
        yield from [pair for pair in _orders(node) if pair[0] is node.inputs[0]]
    node = _made_by(value, "Mul")
    for factor, other in [] if node is None else _orders(node):
        inverse = _made_by(other, "Reciprocal")
        if inverse is not None and inverse.inputs[0] is not None:
            yield factor, inverse.inputs[0]
        inverse = _made_by(other, "Div")
        one = None if inverse is None else _number(inverse.inputs[0], variable_of)
        if inverse is not None and inverse.inputs[1] is not None and one == 1:
            yield factor, inverse.inputs[1]


def _mean_of(value: ir.Value | None, variable_of: VariableOf) -> tuple[ir.Value, int] | None:
    """Return the operand of a mean over the last axes, which stay, and their number."""
    node = _made_by(value, "ReduceMean")
    if node is None or node.inputs[0] is None:
        return None
    keepdims = node.attributes.get("keepdims")
    given = node.attributes.get("axes")
    axes = None if given is None else given.value
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        array = known(variable_of(node.inputs[1]))
        axes = None if array is None else array.ravel().tolist()
    if not axes or (keepdims is not None and keepdims.value != 1):
        return None
    operand = variable_of(node.inputs[0])
    if not isinstance(operand, TensorVariable):
        return None
    rank = operand.type.ndim
    if sorted(axis % rank for axis in axes) != list(range(rank - len(axes), rank)):
        return None
    return node.inputs[0], len(axes)


def _base(value: ir.Value, variable_of: VariableOf) -> ir.Value | None:
    """Return the base of a square."""
    node = _made_by(value, "Pow")
    if node is not None:
        return node.inputs[0] if _number(node.inputs[1], variable_of) == 2 else None
    node = _made_by(value, "Mul")
    return node.inputs[0] if node is not None and node.inputs[0] is node.inputs[1] else None


def _number(value: ir.Value | None, variable_of: VariableOf) -> float | None:
    """Return the one number of a constant that adds no axes to the other operand."""
    variable = None if value is None else variable_of(value)
    array = known(variable) if isinstance(variable, Variable) else None
    is_number = array is not None and array.size == 1 and array.ndim <= 1
    return float(array.item()) if array is not None and is_number else None


def _is_parameter(parameter: Any, x: TensorVariable, axes: int) -> bool:
    """Return whether a variable has the known sizes of the last axes of an array."""
    sizes = x.type.shape[x.type.ndim - axes :]
    return (
        isinstance(parameter, TensorVariable)
        and parameter.type.dtype == x.type.dtype
        and None not in sizes
        and parameter.type.shape == sizes
    )


def _orders(node: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    a, b = node.inputs
    return [] if a is None or b is None else [(a, b), (b, a)]


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node of an operator of the standard that makes a value."""
    node = None if value is None else value.producer()
    is_standard = node is not None and node.domain in ("", "ai.onnx")
    return node if node is not None and is_standard and node.op_type == op_type else None
