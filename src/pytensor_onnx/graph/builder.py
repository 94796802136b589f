"""A typed builder over onnx_ir's Tape: operators, constants, subgraphs, functions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.dims import Dims
from pytensor_onnx.graph.domains import STANDARD_DOMAIN
from pytensor_onnx.graph.emitter import Operand
from pytensor_onnx.graph.model_functions import Described, define
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.subgraphs import Body, SubgraphBuilder

__all__ = ["Body", "Builder", "Described", "ModelScope", "Operand"]


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
            Documentation of the function, names of its parameters, dtypes of its results.

        Returns
        -------
        onnx_ir.Value or list of onnx_ir.Value
            Results of the body for these operands.
        """
        if variant is None:
            variant = "_".join(dict.fromkeys(_dtype_name(x) for x in operands))
        name = f"{name}_{variant}" if variant else name
        key = key or name, None if shapes is None else tuple(map(tuple, shapes))
        described = described or Described()
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
