"""Operators of ONNX that PyTensor computes by several operations, as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.rewriting.shape import ShapeFeature
from pytensor.tensor.shape import Shape_i

from pytensor_onnx.graph.dims import Dim
from pytensor_onnx.ops.networks.network_op import NetworkOp

if TYPE_CHECKING:
    from pytensor_onnx.graph.builder import Builder

type Attributes = tuple[tuple[str, Any], ...]


class KeptOperator(NetworkOp):
    """Operator of a model with its PyTensor expression as inner graph.

    Other modes compute the expression; an export has the operator again.

    Parameters
    ----------
    operator, attributes
        The operator of the standard, and its attributes in the model.
    since
        First opset with this meaning of the operator.
    operands
        The operands in order: a position in the inputs, the array of a constant, or None.
    inputs, outputs
        The expression.
    """

    __props__ = ("operator", "attributes", "since")

    def __init__(
        self,
        operator: str,
        attributes: Attributes,
        since: int,
        operands: Sequence[int | np.ndarray | None],
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
    ) -> None:
        self.operator, self.attributes, self.since = operator, attributes, since
        self.operands = tuple(operands)
        OpFromGraph.__init__(self, list(inputs), list(outputs), name=operator)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply to inputs of the types of the inner graph."""
        return OpFromGraph.__call__(self, *inputs, **options)

    def build_inner_graph(self, *inputs: Variable) -> list[Variable]:
        """Return the expression for other inputs."""
        inner = self.fgraph.unfreeze()
        return clone_replace(list(inner.outputs), dict(zip(inner.inputs, inputs, strict=True)))

    def emit(self, build: Builder, *inputs: ir.Value) -> Sequence[ir.Value] | None:
        """Emit the operator, where the opset has it with the same meaning."""
        if not _has_meaning(self.operator, build.scope.opset_version, self.since):
            return None
        operands = [inputs[v] if isinstance(v, int) else v for v in self.operands]
        types = [v.type for v in self.fgraph.outputs]
        found = build.op(self.operator, *operands, outputs=len(types), **dict(self.attributes))
        values = [found] if isinstance(found, ir.Value) else list(found)
        for position, (value, type_) in enumerate(zip(values, types, strict=True)):
            if value.shape is None:
                value.shape = ir.Shape(self._dims(build, position, inputs))
            value.dtype = ir.DataType.from_numpy(np.dtype(type_.dtype))
        return values

    def _dims(self, build: Builder, position: int, inputs: Sequence[ir.Value]) -> list[Dim]:
        """Return the dimensions of a result: sizes, names of those of the inputs, or new names."""
        inner = self.fgraph.unfreeze()
        result = inner.outputs[position]
        dims: list[Dim] = list(result.type.shape)
        if None in dims:
            for axis, size in enumerate(ShapeFeature().shape_tuple(result)):
                owner = size.owner
                is_size = owner is not None and isinstance(owner.op, Shape_i)
                if dims[axis] is None and is_size and owner.inputs[0] in inner.inputs:
                    source = inner.inputs.index(owner.inputs[0])
                    dims[axis] = build.dims(inputs[source])[owner.op.i]
        return [build.scope.computed_dim(self.operator.lower()) if d is None else d for d in dims]

    def inner_operands(self, operands: Sequence[ir.Value | None]) -> list[ir.Value]:
        """Return the operands that are inputs of the inner graph."""
        places = {v: i for i, v in enumerate(self.operands) if isinstance(v, int)}
        found = [operands[places[position]] for position in range(len(self.fgraph.inputs))]
        return [v for v in found if v is not None]

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.attributes)
        return f"{self.operator}{{{options}}}"


def _has_meaning(operator: str, opset: int, since: int) -> bool:
    import onnx

    try:
        return bool(onnx.defs.get_schema(operator, opset, "").since_version == since)
    except onnx.defs.SchemaError:
        return False
