"""The registry of lowerings, and types of values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import singledispatch

import onnx_ir as ir
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.printing import Print
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.extra_ops import CpuContiguous
from pytensor.tensor.type import DenseTensorType, TensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.encodings import encoding_for, encoding_of
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.functions.registry import definition_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.named_dims import is_named, is_tensor
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.rewriting.engine.walkers import core_op

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


class UnsupportedType(UnsupportedCase):
    """Raised for a variable whose type no ONNX tensor can hold."""

    def __init__(self, type_: Type, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.type = type_


def check_type(type_: Type) -> None:
    """Raise `UnsupportedCase` for a type that no ONNX tensor can hold."""
    if type(type_) is TensorType or isinstance(type_, NoneTypeT) or encoding_of(type_):
        return
    if not (is_named(type_) or isinstance(type_, DenseTensorType | ScalarType)):
        raise UnsupportedType(
            type_,
            "only dense tensors and scalars have a counterpart in ONNX",
            "take a matrix of format csr or csc"
            if hasattr(type_, "format")
            else "give the values that it stands for as tensor inputs",
        )


def check_operands(node: Apply) -> None:
    """Raise `UnsupportedCase` for an Op on arrays with an encoding, which has no rewrite for them.

    Its lowering would take their tensors for the arrays themselves.
    """
    if isinstance(node.op, Decode | Encode):
        return
    encoding = encoding_for(node)
    if encoding is None:
        return
    if encoding.advice and type(node.op).__module__.startswith("pytensor."):
        raise UnsupportedCase(
            f"no formula of tensors is known for this operation on {encoding.name} values",
            encoding.advice,
        )
    for variable in (*node.inputs, *node.outputs):
        numbers = encoding_of(variable.type)
        if numbers is not None and is_array(variable.type):
            raise UnsupportedCase(
                f"no formula of real parts is known for this operation on {numbers.name} numbers",
                "compute it from the real and the imaginary part: pytensor.tensor.real and imag",
            )


def is_array(type_: Type) -> bool:
    """Return whether values of a type are arrays or numbers."""
    return is_tensor(type_) or isinstance(type_, ScalarType)


def is_supported(variable: Variable) -> bool:
    """Return whether a variable has a type that ONNX can hold."""
    try:
        check_type(variable.type)
    except UnsupportedCase:
        return False
    return True


Tensors = ir.Value | Sequence[ir.Value]


@onnx_funcify.register(Decode)
def lower_decode(op: Decode, node: Apply, build: Builder, *tensors: ir.Value) -> list[Tensors]:
    """Return the tensors as one value, which an Op without a rewrite takes."""
    return [tensors if len(tensors) > 1 else tensors[0]]


@onnx_funcify.register(Encode)
def lower_encode(op: Encode, node: Apply, build: Builder, value: Tensors) -> Sequence[ir.Value]:
    """Return the tensors that encode the value."""
    return [value] if isinstance(value, ir.Value) else value
