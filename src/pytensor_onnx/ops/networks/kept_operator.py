"""Operators of imported models, with their PyTensor expression inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph, construct_nominal_fgraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.operators.dims import Dim
from pytensor_onnx.operators.inference import schema_of
from pytensor_onnx.ops.networks.network_op import NetworkOp

if TYPE_CHECKING:
    from pytensor_onnx.graph.builder import Builder

UNCHANGED_SINCE = {
    ("", "AveragePool"): 7,
    ("", "BitShift"): 11,
    ("", "Compress"): 11,
    ("", "Conv"): 1,
    ("", "ConvInteger"): 10,
    ("", "DequantizeLinear"): 10,
    ("", "GRU"): 7,
    ("", "LSTM"): 7,
    ("", "MaxPool"): 8,
    ("", "Mod"): 13,
    ("", "OneHot"): 11,
    ("", "Pad"): 11,
    ("", "QLinearMatMul"): 10,
    ("", "QuantizeLinear"): 10,
    ("", "RNN"): 7,
    ("", "Range"): 11,
    ("", "ReduceLogSum"): 18,
    ("", "ReduceLogSumExp"): 18,
    ("", "Resize"): 13,
    ("", "ReverseSequence"): 10,
    ("", "ScatterElements"): 11,
    ("", "ScatterND"): 11,
    ("", "Tile"): 6,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): 1,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): 1,
}
"""Versions from which on newer ones only add dtypes, operands and attributes with defaults."""

_OF_FEW_RUNTIMES = frozenset(
    {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "GRU", "LSTM", "MatMulInteger"}
    | {"BitCast", "CausalConvWithState", "LinearAttention"}
    | {"Pad", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "RNN"}
)
"""Operators of the standard that runtimes of other makers lack, or have in part."""

_LOOSE = frozenset({"ArgMax", "ArgMin", "MaxPool", "ReduceLogSumExp"})
"""Operators in which runtimes overlook NaN, or infinities."""

_SIZED_AS_FIRST = frozenset(
    {"Binarizer", "DequantizeLinear", "DynamicQuantizeLinear", "Imputer", "LabelEncoder"}
    | {"LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "QuantizeLinear"}
    | {"SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier"}
    | {"TreeEnsembleRegressor"}
)
"""Operators whose axes of unknown sizes are those of the first operand."""
_REDUCING = frozenset(
    {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"}
    | {"ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}
)

_RECURRENT = frozenset({"DynamicQuantizeLSTM", "GRU", "LSTM", "RNN"})

MICROSOFT = "com.microsoft"
"""Domain of ONNX Runtime's own operators."""

_IMPORTED = "is_imported"
_LATER: Any = object()
_LONGEST = 60
"""Characters of the attributes in the name of an operator."""


@dataclass(frozen=True, eq=False)
class ImportedNode:
    """A node of an imported model, without its values.

    Attributes
    ----------
    domain, operator
        The operator.
    since
        First version of the domain with this meaning of the operator.
    attributes
        Its attributes: numbers, texts, tuples of them, and arrays.
    operands
        The operands in order: a position in the inputs, a constant, or None.
    n_results
        Number of results in the model.
    results
        Positions of the results that the model names.
    is_guarded
        Whether the model guards the operator against a defect of runtimes.
    narrow
        Types of few bits of the operands, whose numbers stand in wider arrays; None for others.
    """

    domain: str
    operator: str
    since: int
    attributes: dict[str, Any]
    operands: tuple[int | Constant | None, ...]
    n_results: int
    results: tuple[int, ...]
    is_guarded: bool = False
    narrow: tuple[ir.DataType | None, ...] = ()

    @property
    def is_of_few_runtimes(self) -> bool:
        """Whether files for runtimes of any maker have the expression."""
        return bool(self.domain) or self.operator in _OF_FEW_RUNTIMES

    def has_meaning(self, version: int) -> bool:
        """Return whether a version of the domain has the operator with the same meaning."""
        schema = schema_of(self.operator, version, self.domain)
        if schema is None:
            # onnx has no schemas of the runtime's domain, whose only version is one.
            return self.domain == MICROSOFT and version == self.since
        if schema.since_version == self.since:
            return True
        first = UNCHANGED_SINCE.get((self.domain, self.operator), schema.since_version)
        is_newer = first <= self.since < schema.since_version
        return is_newer and self.attributes.keys() <= schema.attributes.keys()


class KeptOperator(NetworkOp):
    """Operator of an imported model with its PyTensor expression as inner graph.

    Other modes compute the expression; an export has the operator again.

    Parameters
    ----------
    imported
        The node of the model.
    inputs
        The inputs of the expression.
    outputs
        Its results, or a function that returns them.
    types
        The types of results that a function returns.
    """

    __props__ = ("imported",)
    _frozen: Any

    def __init__(
        self,
        imported: ImportedNode,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable] | Callable[[], Sequence[Variable]],
        types: Sequence[TensorType] = (),
    ) -> None:
        self.imported = imported
        self._expression: Any = list(inputs), outputs
        OpFromGraph.__init__(
            self,
            list(inputs),
            [t() for t in types] if callable(outputs) else list(outputs),
            name=imported.operator,
            on_unused_input="ignore",
            fgraph=_LATER,
        )

    @property
    def expression(self) -> tuple[Sequence[Variable], Sequence[Variable]]:
        """The inputs of the expression and its results, which belong to this operation alone."""
        if self._expression is None or callable(self._expression[1]):
            inner = self.fgraph.unfreeze()
            inputs: list[Variable] = [t() for t in self.input_types]
            given = dict(zip(inner.inputs, inputs, strict=True))
            return inputs, clone_replace(list(inner.outputs), given)
        inputs, outputs = self._expression
        return inputs, outputs

    @property
    def fgraph(self) -> Any:
        """The inner graph, which exports and most rewrites do not need."""
        if self._frozen is _LATER:
            inputs, outputs = self._expression
            if callable(outputs):
                outputs = map(_of_type, outputs(), self.output_types)
            self._frozen = construct_nominal_fgraph(inputs, list(outputs)).freeze()
            self._expression = None
        return self._frozen

    @fgraph.setter
    def fgraph(self, frozen: Any) -> None:
        self._frozen = frozen

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """The node and its types, which determine the expression."""
        node = self.imported
        return (
            *(node.domain, node.operator, node.since, node.n_results, node.results),
            (node.is_guarded, node.narrow),
            tuple((name, _hashed(value)) for name, value in sorted(node.attributes.items())),
            tuple(v.signature() if isinstance(v, Constant) else v for v in node.operands),
            *(tuple(self.input_types), tuple(self.output_types)),
        )

    @property
    def operator(self) -> str:
        """Name of the operator."""
        return self.imported.operator

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply to inputs of the types of the inner graph."""
        return OpFromGraph.__call__(self, *inputs, **options)

    def make_node(self, *inputs: Variable) -> Apply:
        """Return the application to inputs of the types of the inner graph."""
        given = [t.filter_variable(v) for v, t in zip(inputs, self.input_types, strict=True)]
        return Apply(self, given, [t() for t in self.output_types])

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply) -> bool:
        """Keep an operator on constants: it stores them in a narrower dtype than its result."""
        return False

    def build_inner_graph(self, *inputs: Variable) -> list[Variable]:
        """Return the expression for other inputs."""
        inner = self.fgraph.unfreeze()
        return clone_replace(list(inner.outputs), dict(zip(inner.inputs, inputs, strict=True)))

    def emit(self, build: Builder, *inputs: ir.Value) -> Sequence[ir.Value] | None:
        """Emit the operator, where the version of its domain has it with the same meaning."""
        node, dtypes = self.imported, [np.dtype(t.dtype) for t in self.output_types]
        operands = [
            build.constant(v.data, v.name)
            if isinstance(v, Constant)
            else v
            if v is None
            else inputs[v]
            for v in node.operands
        ]
        for position, narrow in enumerate(node.narrow):
            operand = operands[position]
            if narrow is None or operand is None:
                continue
            if operand.const_value is None:
                return None
            array = operand.const_value.numpy().astype(narrow.numpy())
            stored = build.constant(array, operand.name)
            # The wide array, which nothing else takes, leaves its name to that of the file.
            stored.name, operand.name = operand.name, stored.name
            operands[position] = stored
        if node.domain:
            if not build.scope.uses_domain(node.domain, _versions(node)):
                return None
            values = build.foreign(
                node.domain, node.operator, operands, node.attributes, node.n_results
            )
        else:
            is_loose = node.operator in _LOOSE and not build.scope.as_imported
            if is_loose or not node.has_meaning(build.scope.opset_version):
                return None
            found = build.op(node.operator, *operands, outputs=node.n_results, **node.attributes)
            values = [found] if isinstance(found, ir.Value) else list(found)
        for position, value in enumerate(values):
            if position not in node.results:
                value.name = ""
        kept = [values[position] for position in node.results]
        for position, (value, dtype) in enumerate(zip(kept, dtypes, strict=True)):
            if value.shape is None and build.shaped:
                value.shape = ir.Shape(self._dims(build, position, inputs))
            value.dtype = ir.DataType.from_numpy(dtype)
        return kept

    def _dims(self, build: Builder, position: int, inputs: Sequence[ir.Value]) -> list[Dim]:
        """Return the dimensions of a result: sizes, names of those of the inputs, or new names."""
        dims: list[Dim] = list(self.output_types[position].shape)
        axes = self.axes_of_first(position)
        if axes is not None:
            first = build.dims(inputs[0])
            return [
                first[axis] if d is None and axis is not None else d
                for axis, d in zip(axes, dims, strict=True)
            ]
        inner = self.fgraph.unfreeze()
        result = inner.outputs[position]
        if None in dims:
            for axis, size in enumerate(ShapeFeature().shape_tuple(result)):
                owner = size.owner
                is_size = owner is not None and isinstance(owner.op, Shape_i)
                if dims[axis] is None and is_size and owner.inputs[0] in inner.inputs:
                    source = inner.inputs.index(owner.inputs[0])
                    dims[axis] = build.dims(inputs[source])[owner.op.i]
        return [build.scope.dims.computed(self.operator.lower()) if d is None else d for d in dims]

    def axes_of_first(self, position: int) -> Sequence[int | None] | None:
        """Return the axes of the first operand that open axes of a result have the size of.

        None if a result has an open axis of another size.
        """
        if self.imported.operands[:1] != (0,):
            return None
        first, result = self.input_types[0].shape, self.output_types[position].shape
        axes: Sequence[int | None] = range(len(result))
        if self.operator in _REDUCING or self.operator == "MatMulInteger":
            # Axes that are reduced have size one, and columns of a constant matrix are known.
            rest = self.imported.operands[1:2]
            is_constant = all(isinstance(v, Constant) and v.type.ndim <= 2 for v in rest)
            is_sized = len(first) == len(result) > 1 and is_constant
        elif self.operator == "Pad":
            is_sized = self._leaves_open_axes(result)
        elif self.operator in _RECURRENT:
            axes = (0, None, 1, None) if len(result) > 3 else (None, 1, None)
            is_sized = not self.imported.attributes.get("layout")
        else:
            is_sized = self.operator in _SIZED_AS_FIRST
        is_open = any(n is None and axis is None for n, axis in zip(result, axes, strict=True))
        return axes if is_sized and not is_open else None

    def _leaves_open_axes(self, result: Sequence[int | None]) -> bool:
        """Return whether numbers of a Pad are zero along the axes of unknown sizes."""
        pads = self.imported.operands[1]
        has_axes = any(v is not None for v in self.imported.operands[3:])
        if has_axes or not isinstance(pads, Constant):
            return False
        pairs = pads.data.reshape(2, -1).T
        return not any(n is None and pair.any() for n, pair in zip(result, pairs, strict=True))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the sizes of the results, without a walk over the expression where it can be."""
        axes = [self.axes_of_first(position) for position in range(len(node.outputs))]
        if None in axes:
            return super().infer_shape(node, shapes)
        return [
            tuple(
                shapes[0][axis] if size is None else pt.constant(size, dtype="int64")
                for axis, size in zip(own or (), v.type.shape, strict=True)
            )
            for own, v in zip(axes, node.outputs, strict=True)
        ]

    def inner_operands(self, operands: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Return the operands that are inputs of the inner graph."""
        places = {v: i for i, v in enumerate(self.imported.operands) if isinstance(v, int)}
        found = [operands[places[position]] for position in range(len(self.input_types))]
        return [v for v in found if v is not None]

    def results_of_node(self, results: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the results of the inner graph for all results of the emitted node."""
        filled = [results[0]] * self.imported.n_results
        for position, result in zip(self.imported.results, results, strict=True):
            filled[position] = result
        return filled

    def __str__(self) -> str:
        given = self.imported.attributes.items()
        short = {k: v for k, v in given if not isinstance(v, np.ndarray)}
        options = ", ".join(f"{name}={value}" for name, value in short.items())
        return f"{self.operator}{{{options if len(options) <= _LONGEST else '...'}}}"


def _of_type(result: Any, of: TensorType) -> TensorVariable:
    """Return a result with the dtype and the known sizes of a type."""
    value = result if result.type.dtype == of.dtype else result.astype(of.dtype)
    return value if of.is_super(value.type) else pt.specify_shape(value, of.shape)


def is_imported(node: Apply) -> bool:
    """Return whether an operation of networks is that of an imported model, without a guard."""
    is_own = isinstance(node.op, KeptOperator) and not node.op.imported.is_guarded
    return bool(getattr(node.tag, _IMPORTED, is_own))


def note_origin(variable: Variable, imported: bool) -> None:
    """Note whether the operation of networks of a variable is that of an imported model.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import nn
    >>> y = nn.relu(pt.vector("x"))
    >>> before = is_imported(y.owner)
    >>> note_origin(y, imported=True)
    >>> before, is_imported(y.owner)
    (False, True)
    """
    if variable.owner is not None and isinstance(variable.owner.op, NetworkOp):
        setattr(variable.owner.tag, _IMPORTED, imported)


def _hashed(value: Any) -> Any:
    """Return the value of an attribute as one that can be hashed and compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value), value


def _versions(node: ImportedNode) -> frozenset[int]:
    """Return the versions of another domain that have the operator with the same meaning."""
    newest = max(_newest_version(node.domain), node.since)
    return frozenset(v for v in range(1, newest + 1) if node.has_meaning(v))


@cache
def _newest_version(domain: str) -> int:
    import onnx

    schemas = onnx.defs.get_all_schemas()
    return max((s.since_version for s in schemas if s.domain == domain), default=0)
