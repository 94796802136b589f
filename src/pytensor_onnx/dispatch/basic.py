"""`onnx_funcify`, the conversion of a graph node by node, and the graph ops that wrap values."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import reduce, singledispatch
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import AbstractFunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.printing import Print
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import DenseTensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import CHECKED, Dim, dims_of, same_sizes
from pytensor_onnx.dispatch.written import (
    core_op,
    nested_problems_as_written,
    problem_as_written,
)
from pytensor_onnx.errors import Problem, UnsupportedCase
from pytensor_onnx.failures import name_failure
from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.named_dims import is_named, is_tensor
from pytensor_onnx.origins import LINE, LOOP, NODE, OP, VARIABLE
from pytensor_onnx.rewriting.loop_checks import loop_of_index
from pytensor_onnx.user_code import user_line

Lowered = ir.Value | Sequence[ir.Value]


@singledispatch
def onnx_funcify(op: Op, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Lower an Op to ONNX: emit its nodes and return its values.

    Register a lowering for an Op of your own with ``@onnx_funcify.register(MyOp)``.

    Parameters
    ----------
    op
        The Op; its class selects the lowering.
    node
        The Apply node: the types of the inputs and outputs, and the constants among them.
    onnx
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
    ... def double(op, node, onnx, x):
    ...     return onnx.Mul(x, 2)
    >>> x = pt.vector("x")
    >>> compile_onnx([x], [Double()(x)])(np.array([1.0, 2.0]))
    [array([2., 4.])]
    """
    raise UnsupportedCase(
        f"no lowering is registered for {type(op).__module__}.{type(op).__qualname__}",
        "write the expression with supported operations, or register a lowering of your own with "
        f"@pytensor_onnx.onnx_funcify.register({type(op).__name__})",
    )


def works_on_last_axes[F: Callable](lowering: F) -> F:
    """Declare that a lowering takes operands with any axes before those of its Op.

    A batch of the Op is then lowered at once, and not by a loop over its elements.
    """
    lowering.works_on_last_axes = True  # type: ignore[attr-defined]
    return lowering


def has_no_lowering(op: Op) -> bool:
    """Return whether an Op, without the Blockwise around it, has no lowering and no definition."""
    kind = type(core_op(op))
    return kind not in DEFINITIONS and onnx_funcify.dispatch(kind) is onnx_funcify.dispatch(Op)


class GraphConverter:
    """Converts the nodes of PyTensor graphs into one builder, and collects all that cannot be.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    typed
        Whether the values take names, ranks and static dimensions of the PyTensor variables; off
        for the body of a function that serves several ranks.
    """

    def __init__(self, onnx: Builder, *, typed: bool = True) -> None:
        self.onnx = onnx
        self.typed = typed and onnx.shaped
        self.values: dict[Variable, Any] = {}
        self.problems: list[Problem] = []
        self._lines: dict[Variable, str] = {}
        self._outer_line = onnx.provenance.get(LINE, "")

    def add_value(self, variable: Variable, value: ir.Value) -> None:
        """Let a value stand for a variable."""
        self.values[variable] = value

    def convert(self, nodes: Iterable[Apply]) -> None:
        """Lower the nodes, which must be in topological order."""
        for node in nodes:
            self._convert_node(node)

    def value_of(self, variable: Variable) -> Any:
        """Return what stands for a variable; for a constant, its initializer.

        Raises
        ------
        UnsupportedCase
            If the type of the variable has no counterpart in ONNX.
        """
        if variable in self.values:
            return self.values[variable]
        if not isinstance(variable, Constant):
            raise KeyError(variable)
        value = self._constant(variable)
        self.values[variable] = value
        return value

    def _constant(self, variable: Constant) -> Any:
        if not _is_array(variable.type):
            return variable.data
        check_type(variable.type)
        data = np.asarray(variable.data, dtype=variable.type.dtype)
        return self.onnx.constant(data, name=variable.name)

    def _convert_node(self, node: Apply) -> None:
        line = self._line(node)
        self.onnx.provenance = _provenance(node, line)
        self.onnx.peek = self.values.get
        if any(not _is_supported(v) and not isinstance(v, Constant) for v in node.inputs):
            # Their problem is known, and no value of their type stands for them.
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        try:
            for variable in node.outputs:
                check_type(variable.type)
            inputs = [self.value_of(variable) for variable in node.inputs]
            lowered = onnx_funcify(node.op, node, self.onnx, *inputs)
        except UnsupportedCase as case:
            self._add_problem(node, case, line)
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        except NestedProblems as nested:
            self.problems += nested_problems_as_written(
                node, nested.problems, line, has_no_lowering
            )
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        values = [lowered] if isinstance(lowered, ir.Value) else list(lowered or [])
        if len(values) != len(node.outputs):
            raise TypeError(f"the lowering of {node.op} returned {len(values)} values for {node}")
        for variable, value in zip(node.outputs, values, strict=True):
            if isinstance(value, ir.Value) and _is_array(variable.type):
                self._adopt(variable, value)
            self.values[variable] = value

    def _line(self, node: Apply) -> str:
        """Return the user's line for a node: that of an operand where a gradient has none.

        Nodes of inner graphs have none at all, and take that of the Op.
        """
        if not node.outputs:
            return self._outer_line
        before = (self._lines[v] for v in node.inputs if v in self._lines)
        line = user_line(node.outputs[0]) or next(before, "") or self._outer_line
        if line:
            self._lines.update(dict.fromkeys(node.outputs, line))
        return line

    def _add_problem(self, node: Apply, case: UnsupportedCase, line: str) -> None:
        variable = node.outputs[0]
        if isinstance(case, _UnsupportedType):
            self.problems.append(
                Problem(
                    subject=str(case.type),
                    variable=variable.name or str(variable),
                    where=line,
                    reason=case.reason,
                    hint=case.hint,
                    is_type=True,
                )
            )
        else:
            self.problems.append(problem_as_written(node, case, line, has_no_lowering))

    def _adopt(self, variable: Variable, value: ir.Value) -> None:
        """Give a value the type and name of the variable that it computes.

        A size of zero in PyTensor's type says nothing: a reshape has it for every size that is not
        known, where another size is zero.
        """
        wanted = ir.DataType.from_numpy(np.dtype(variable.type.dtype))
        if value.dtype is None:
            value.dtype = wanted
        if value.dtype != wanted:
            raise TypeError(
                f"the lowering of {variable.owner.op} returned {value.dtype} for {variable}, "
                f"which is {wanted}"
            )
        if not self.typed or value.producer() is None:
            return
        static = getattr(variable.type, "shape", ())
        known = dims_of(value)
        if known is not None and len(known) != len(static):
            raise TypeError(
                f"the lowering of {variable.owner.op} returned rank {len(known)} for {variable}, "
                f"which has rank {len(static)}"
            )
        dims: list[Dim] = [
            s or k for s, k in zip(static, known or (None,) * len(static), strict=True)
        ]
        value.shape = ir.Shape(dims)
        if variable.name and value.name is None and not self.onnx.in_function:
            value.name = self.onnx.scope.names.unique(variable.name)
        if not self.onnx.in_function:
            self.onnx.scope.name_dims(value)


class NestedProblems(Exception):  # noqa: N818  (control flow between converters)
    """Carries the problems found in an inner graph to the converter of the outer one."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("inner graph cannot be converted")
        self.problems = problems


class _UnsupportedType(UnsupportedCase):
    def __init__(self, type_: Type, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.type = type_


def check_type(type_: Type) -> None:
    """Raise `UnsupportedCase` for a type that no ONNX tensor can hold."""
    if isinstance(type_, NoneTypeT | RandomType):
        return
    if not (is_named(type_) or isinstance(type_, DenseTensorType | ScalarType)):
        raise _UnsupportedType(
            type_,
            "only dense tensors and scalars have a counterpart in ONNX",
            "give the values that it stands for as tensor inputs",
        )
    if type_.dtype.startswith("complex"):
        raise _UnsupportedType(
            type_,
            "ONNX runtimes do not compute with complex numbers",
            "carry the real and the imaginary part as two real tensors",
        )


def _is_array(type_: Type) -> bool:
    return is_tensor(type_) or isinstance(type_, ScalarType)


def _is_supported(variable: Variable) -> bool:
    """Return whether a variable has a type that ONNX can hold."""
    try:
        check_type(variable.type)
    except UnsupportedCase:
        return False
    return True


def convert_inner(
    fgraph: AbstractFunctionGraph, onnx: Builder, inputs: Sequence[ir.Value], *, typed: bool = True
) -> list[ir.Value]:
    """Convert an inner graph into a builder and return the values of its outputs.

    Parameters
    ----------
    fgraph
        Inner graph of an Op.
    onnx
        Builder that receives the nodes.
    inputs
        One value for each input of the inner graph.
    typed
        Whether the types of the inner variables are those of the values.
    """
    converter = GraphConverter(onnx, typed=typed)
    for variable, value in zip(fgraph.inputs, inputs, strict=True):
        converter.add_value(variable, value)
    converter.convert(fgraph.toposort())
    if converter.problems:
        raise NestedProblems(converter.problems)
    return [converter.value_of(variable) for variable in fgraph.outputs]


def _provenance(node: Apply, line: str) -> dict[str, str]:
    provenance = {OP: str(node.op), NODE: str(id(node))}
    names = [variable.name for variable in node.outputs if variable.name]
    if names:
        provenance[VARIABLE] = ", ".join(names)
    if line:
        provenance[LINE] = line
    loop = loop_of_index(node)
    if loop is not None:
        provenance[LOOP] = loop
    return provenance


def _placeholder(variable: Variable) -> ir.Value:
    dtype = getattr(variable.type, "dtype", None)
    if isinstance(variable.type, RandomType):
        dtype = "uint32"
    if dtype is None or not _is_supported(variable):
        return ir.Value(type=ir.TensorType(ir.DataType.FLOAT))
    shape = getattr(variable.type, "shape", ())
    return ir.Value(
        type=ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype))), shape=ir.Shape(shape)
    )


@onnx_funcify.register(DeepCopyOp)
@onnx_funcify.register(TypeCastingOp)
def lower_identity(op: Op, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the input: values in ONNX are never changed in place."""
    return x


@onnx_funcify.register(Print)
def lower_print(op: Print, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the input, with a warning: ONNX cannot print."""
    warnings.warn(f"ONNX cannot print: {op.message or op} is left out", UserWarning, stacklevel=2)
    return x


@onnx_funcify.register(CheckAndRaise)
def lower_check_and_raise(
    op: CheckAndRaise, node: Apply, onnx: Builder, x: ir.Value, *conditions: ir.Value
) -> ir.Value:
    """Return the value if all conditions hold, else fail in a node that carries the message."""
    return check_that(onnx, conditions, x, op.exc_type(op.msg))


def check_that(
    onnx: Builder, conditions: Sequence[ir.Value], x: ir.Value, error: Exception
) -> ir.Value:
    """Return a value if all conditions hold, else fail in a node that carries a message.

    ONNX has no operator that raises. The branch for a failed check gathers past the end of an
    array, which every runtime refuses; the node's metadata name the failed check. Conditions
    that are known to hold leave no node.

    Parameters
    ----------
    onnx
        Builder that receives the nodes.
    conditions
        Values of dtype bool and rank 0.
    x
        What is returned if they hold.
    error
        What is raised if one does not, where the model is run by this package.
    """
    open_conditions = [condition for condition in conditions if not _is_known_to_hold(condition)]
    if not open_conditions:
        return x
    valid = reduce(onnx.And, open_conditions)
    kept, failed = onnx.subgraph(), onnx.subgraph()
    past_end = failed.Add(failed.cast(valid, "int64"), 1)
    failure = failed.Gather(failed.Unsqueeze(x, [0]), past_end, axis=0)
    name_failure(failed, failure, error)
    branches = kept.graph([], [kept.Identity(x)]), failed.graph([], [failure])
    (checked,) = onnx.if_else(valid, *branches)
    checked.meta[CHECKED] = x
    return checked


def _is_known_to_hold(condition: ir.Value) -> bool:
    if condition.const_value is not None:
        return bool(condition.const_value.numpy())
    node = condition.producer()
    if node is None or node.domain or len(node.inputs) != 2:
        return False
    operands = [value for value in node.inputs if value is not None]
    if node.op_type == "Or":
        return any(map(_is_known_to_hold, operands))
    return node.op_type == "Equal" and same_sizes(*operands)


@onnx_funcify.register(OpFromGraph)
def lower_op_from_graph(op: OpFromGraph, node: Apply, onnx: Builder, *inputs: ir.Value) -> Lowered:
    """Call a model-local function; equal Ops share its definition."""

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        """Compute the inner graph of an OpFromGraph."""
        return convert_inner(op.fgraph, inner, arguments)

    return onnx.call(
        re.sub(r"\W+", "_", op.name or type(op).__name__),
        body,
        *inputs,
        variant="",
        key=op,
        shapes=[getattr(variable.type, "shape", ()) for variable in op.fgraph.inputs],
        source=body if type(op) is OpFromGraph else type(op),
        # PyTensor drops the names of the inner graph; those of the first call stand for them.
        parameters=[variable.name for variable in node.inputs],
    )
