"""`onnx_funcify`, and the Ops that return their input."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import singledispatch

import onnx_ir as ir
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.printing import Print
from pytensor.tensor.extra_ops import CpuContiguous

from pytensor_onnx.encodings import encoding_for
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.functions.registry import definition_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.rewriting.engine.inner_graphs import core_op

Lowered = ir.Value | Sequence[ir.Value]


@singledispatch
def onnx_funcify(op: Op, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Lower an Op to ONNX: emit its nodes and return its values.

    Register a lowering for an Op of your own with ``@onnx_funcify.register(MyOp)``.

    Parameters
    ----------
    op
        The Op; its class selects the lowering.
    node
        The Apply node: the types of the inputs and outputs, and the constants among them.
    build
        Builder to emit nodes with.
    inputs
        One value for each input of the node.

    Returns
    -------
    onnx_ir.Value or sequence of onnx_ir.Value
        One value for each output, of the dtype and rank of the PyTensor variable.

    Raises
    ------
    UnsupportedCase
        If the case cannot be expressed; ``raise onnx.unsupported(reason, hint)``.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor.graph import Apply, Op
    >>> from pytensor_onnx import compile_onnx, onnx_funcify
    >>> class Double(Op):
    ...     __props__ = ()
    ...     def make_node(self, x):
    ...         return Apply(self, [x], [x.type()])
    ...     def perform(self, node, inputs, outputs):
    ...         outputs[0][0] = 2 * inputs[0]
    >>> @onnx_funcify.register(Double)
    ... def double(op, node, build, x):
    ...     return build.Mul(x, 2)
    >>> x = pt.vector("x")
    >>> compile_onnx([x], [Double()(x)])(np.array([1.0, 2.0]))
    [array([2., 4.])]
    """
    encoding = encoding_for(node)
    advice = (encoding and encoding.advice) or "write the expression with supported operations"
    raise UnsupportedCase(
        f"no lowering is registered for {type(op).__module__}.{type(op).__qualname__}",
        f"{advice}, or register a lowering of your own with "
        f"@pytensor_onnx.onnx_funcify.register({type(op).__name__})",
    )


def has_no_lowering(op: Op) -> bool:
    """Return whether an Op, without the Blockwise around it, has no lowering and no definition."""
    kind = type(core_op(op))
    is_general = onnx_funcify.dispatch(kind) is onnx_funcify.dispatch(Op)
    return is_general and definition_of(kind) is None


@onnx_funcify.register(CpuContiguous)
@onnx_funcify.register(DeepCopyOp)
@onnx_funcify.register(TypeCastingOp)
def lower_identity(op: Op, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the input: values in ONNX are contiguous, and never changed in place."""
    return x


@onnx_funcify.register(Print)
def lower_print(op: Print, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the input, with a warning: ONNX cannot print."""
    warnings.warn(f"ONNX cannot print: {op.message or op} is left out", UserWarning, stacklevel=2)
    return x
