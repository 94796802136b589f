"""The emission of operators, with checks of their operands."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.tape import Tape

from pytensor_onnx.digests import content_key
from pytensor_onnx.errors import LoweringError, UnsupportedCase, did_you_mean
from pytensor_onnx.graph.constant_folding import known_choice, known_result
from pytensor_onnx.graph.operator_methods import Operators
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import Dim
from pytensor_onnx.operators.entries import equal_sizes, output_dims
from pytensor_onnx.operators.inference import (
    Signature,
    bind_dtypes,
    dtype_of,
    output_dtypes,
    required_attributes,
    schema_attributes,
    schema_of,
    signature,
)

Operand = ir.Value | np.ndarray | np.generic | int | float | bool | Sequence[int] | None


class Emitter(Operators):
    """Emits the nodes of one graph: operators and constants."""

    def __init__(
        self,
        scope: ModelScope,
        parent: Emitter | None = None,
        *,
        in_function: bool = False,
        shaped: bool = True,
        always_runs: bool = False,
    ) -> None:
        self.scope = scope
        self.always_runs = always_runs
        self.in_function: bool = in_function or (parent is not None and parent.in_function)
        self.shaped: bool = shaped and (parent is None or parent.shaped)
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.provenance: dict[str, str] = {}
        self.peek: Callable[[Any], Any] = {}.get
        self._tape = Tape()
        self._parent = parent
        self._sizes_read: dict[Hashable, ir.Value] = {}
        self._constants_owner: Emitter = parent._constants_owner if parent is not None else self
        self._local_constants: dict[Hashable, ir.Value] = {}

    @property
    def nodes(self) -> Sequence[ir.Node]:
        """The nodes emitted so far, in order."""
        constants = [v.producer() for v in self._local_constants.values()]
        return [*(node for node in constants if node is not None), *self._tape.nodes]

    def op(self, op_type: str, *operands: Operand, outputs: int = 1, **attributes: Any) -> Any:
        """Emit a standard operator.

        Parameters
        ----------
        op_type
            Name of the operator.
        operands
            Values, or numbers and arrays to make constants of; None where an input is left out.
        outputs
            Number of outputs; with more than one a list is returned.
        attributes
            Attributes of the operator.

        Raises
        ------
        LoweringError
            If the opset has no such operator, or the operator does not take these operands or
            attributes; if the dtype of a Python number cannot be told from the other operands, or
            a float meets integers.
        """
        types = signature_of(op_type, self.scope.opset_version, len(operands))
        bound = bind_dtypes(types, operands)
        if op_type == "Pow" and "T" in bound:
            bound.setdefault("T1", bound["T"])
        inputs = [
            value
            if value is None or isinstance(value, ir.Value)
            else self._operand(op_type, value, bound.get(t) or t)
            for value, t in zip(operands, map(types.input_type, range(len(operands))), strict=True)
        ]
        if not bound:
            bound = bind_dtypes(types, inputs)
        attributes = {name: _attribute(value) for name, value in attributes.items()}
        check_dtypes(op_type, types, inputs)
        check_attributes(op_type, attributes, self.scope.opset_version)
        known = known_result(op_type, inputs, attributes)
        if known is not None:
            return self.constant(known)
        choice = known_choice(op_type, inputs)
        if choice is not None:
            return choice
        dtypes = output_dtypes(op_type, types, bound, attributes)
        dtypes += [dtypes[-1] if dtypes else None] * (outputs - len(dtypes))
        values = [ir.Value(type=_tensor_type(dtype)) for dtype in dtypes[:outputs]]
        self.equate_operands(op_type, inputs, attributes)
        if self.shaped:
            dims = output_dims(op_type, inputs, attributes)
            if dims is not None:
                values[0].shape = ir.Shape(dims)
        self._emit(op_type, inputs, values, attributes)
        return values[0] if outputs == 1 else values

    def foreign(
        self,
        domain: str,
        op_type: str,
        operands: Sequence[ir.Value | None],
        attributes: Mapping[str, Any],
        outputs: int,
    ) -> list[ir.Value]:
        """Emit an operator of another domain than the standard one.

        Parameters
        ----------
        domain, op_type
            The operator; see `ModelScope.uses_domain`.
        operands
            Values, None where an input is left out.
        attributes
            Its attributes.
        outputs
            Number of results, whose types the caller sets.
        """
        values = [ir.Value() for _ in range(outputs)]
        given = {name: _attribute(value) for name, value in attributes.items()}
        self._emit(op_type, operands, values, given, domain)
        return values

    def equate_operands(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
    ) -> None:
        """Record the sizes that an operator needs to be equal.

        Parameters
        ----------
        op_type
            Name of the operator.
        inputs
            Its operands, None where one is left out.
        attributes
            Its attributes.
        """
        if self.always_runs:
            pairs = list(equal_sizes(op_type, inputs, attributes))
            self.equate_sizes(pairs, [value for value in inputs if pairs and value is not None])

    def equate_sizes(
        self, pairs: Iterable[tuple[Dim, Dim]], values: Sequence[ir.Value] = ()
    ) -> None:
        """Record that sizes are equal if every run of the model needs them to be.

        Branches, bodies of loops and functions need it of some runs.

        Parameters
        ----------
        pairs
            Dimensions with equal sizes.
        values
            Values whose dimensions take the names of equal ones.
        """
        if self.always_runs:
            for first, second in pairs:
                self.scope.dims.equate(first, second)
            for value in values:
                self.scope.dims.rename_axes(value)

    def _operand(self, op_type: str, value: Any, dtype: str | ir.DataType | None) -> ir.Value:
        if isinstance(value, np.ndarray | np.generic):
            return self.constant(value)
        if not isinstance(dtype, ir.DataType):
            if op_type in ("Gather", "GatherND", "GatherElements", "Slice", "CumSum"):
                dtype = ir.DataType.INT64
            else:
                raise misuse(
                    op_type, f"no operand tells the dtype of {value!r}", "pass a NumPy value"
                )
        if isinstance(value, float) and not dtype.is_floating_point():
            raise misuse(op_type, f"the constant {value!r} meets operands of {dtype.numpy()}")
        return self.constant(np.asarray(value, dtype=dtype.numpy()))

    def _emit(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[ir.Value],
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
    ) -> None:
        self._tape.op_multi_out(
            op_type,
            inputs,
            attributes,
            outputs=outputs,
            domain=domain,
            metadata_props=dict(self.provenance),
        )

    def constant(self, value: Any, name: str | None = None) -> ir.Value:
        """Return a constant; equal constants (dtype, shape and bits) are stored once.

        Parameters
        ----------
        value
            NumPy array or scalar; its dtype is kept.
        name
            Name wanted for it.
        """
        array = np.asarray(value)
        content = content_key(array)
        key = (array.shape, content)
        if self.in_function:
            return self._constants_owner._local_constant(key, array)
        known = self.scope.initializers.get(key)
        if known is None:
            name = name or self.scope.name_of_constant(content) or _constant_name(array)
            name = self.scope.names.unique(name)
            tensor = ir.tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
            known = ir.Value(
                name=name,
                shape=ir.Shape(array.shape),
                type=ir.TensorType(tensor.dtype),
                const_value=tensor,
            )
            self.scope.initializers[key] = known
        return known

    def _local_constant(self, key: Hashable, array: np.ndarray) -> ir.Value:
        if key not in self._local_constants:
            tensor = ir.tensor(np.array(array))
            value = ir.Value(
                type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor
            )
            ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)], outputs=[value])
            self._local_constants[key] = value
        return self._local_constants[key]

    def number_like(self, value: ir.Value, number: float) -> ir.Value:
        """Return a 0-d constant in the dtype of a value."""
        return self.constant(np.asarray(number, dtype=dtype_of(value).numpy()))

    def ints(self, values: Sequence[int]) -> ir.Value:
        """Return a 1-d int64 constant: axes, shapes, indices."""
        return self.constant(np.array(values, dtype="int64").reshape(len(values)))

    def cast(self, value: ir.Value, dtype: ir.DataType | str | np.dtype) -> ir.Value:
        """Cast a value to a dtype; return the value if it has the dtype.

        Examples
        --------
        >>> from pytensor_onnx.graph.builder import Builder, ModelScope
        >>> build = Builder(ModelScope(21))
        >>> x = build.constant(np.float32(1.5))
        >>> build.cast(x, "float32") is x, build.cast(x, "float64").dtype
        (True, DOUBLE)
        """
        target = (
            dtype if isinstance(dtype, ir.DataType) else ir.DataType.from_numpy(np.dtype(dtype))
        )
        if value.dtype == target:
            return value
        if value.const_value is not None and value.const_value.size <= 1:
            return self.constant(value.const_value.numpy().astype(target.numpy()))
        # PyTensor's zeros are int8, for which runtimes have few kernels.
        filled = self._filled(value, target) if value.dtype == ir.DataType.INT8 else None
        return self.Cast(value, to=int(target)) if filled is None else filled

    def _filled(self, value: ir.Value, target: ir.DataType) -> ir.Value | None:
        """Return an array of one number in another dtype, None for other arrays."""
        node = value.producer()
        if node is not None and node.op_type == "ConstantOfShape" and "value" in node.attributes:
            number = node.attributes["value"].as_tensor().numpy().astype(target.numpy())
            return self.ConstantOfShape(*node.inputs, value=number)
        if node is None or node.op_type not in {"Squeeze", "Unsqueeze"}:
            return None
        source = node.inputs[0]
        filled = None if source is None else self._filled(source, target)
        axes = node.inputs[1:]
        return None if filled is None else getattr(self, node.op_type)(filled, *axes)

    def unsupported(self, reason: str, hint: str = "") -> UnsupportedCase:
        """Return the exception to raise for a case that cannot be converted."""
        return UnsupportedCase(reason, hint)


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ir.tensor(value)
    return value


def _tensor_type(dtype: ir.DataType | None) -> ir.TensorType | None:
    return None if dtype is None else ir.TensorType(dtype)


def _constant_name(array: np.ndarray) -> str:
    if array.ndim == 0:
        text = str(array.item())
        return f"c_{text}".replace("-", "minus_").replace("+", "")
    return "c"


_HERE = str(Path(__file__).parent)


def signature_of(op_type: str, opset_version: int, count: int) -> Signature:
    """Return the dtypes of an operator that takes a number of operands.

    Raises
    ------
    LoweringError
        If the opset has no such operator, or the operator takes another number of operands.

    Examples
    --------
    >>> signature_of("Add", 21, 2).outputs
    ('T',)
    """
    types = signature(op_type, opset_version)
    if types is None:
        raise misuse(op_type, *_unknown_operator(op_type, opset_version))
    if not types.takes(count):
        most = "or more" if types.variadic else f"to {len(types.inputs)}"
        wanted = [f"{types.required}", *([most] if types.required != len(types.inputs) else [])]
        raise misuse(op_type, f"it takes {' '.join(wanted)} operands, and was given {count}")
    return types


def check_dtypes(op_type: str, types: Signature, inputs: Sequence[ir.Value | None]) -> None:
    """Check that operands of one type variable have one dtype, and others the only one allowed.

    Dtypes that the standard lacks for an operator are left to the legaliser, which has other forms
    for them.

    Raises
    ------
    LoweringError
        If they do not.
    """
    bound: dict[str, ir.DataType] = {}
    for position, value in enumerate(inputs):
        if value is None or value.dtype is None:
            continue
        wanted = types.input_type(position)
        if isinstance(wanted, ir.DataType):
            if value.dtype != wanted:
                raise misuse(
                    op_type,
                    f"operand {position + 1} is of {_name(value.dtype)}, and must be of "
                    f"{_name(wanted)}",
                )
        elif wanted is not None and bound.setdefault(wanted, value.dtype) != value.dtype:
            listed = ", ".join("none" if x is None else _name(x.dtype) for x in inputs)
            raise misuse(
                op_type,
                f"operands of the type variable {wanted} must have one dtype; the operands have: "
                f"{listed}",
                "cast them by build.cast(x, dtype)",
            )


def check_attributes(op_type: str, attributes: Mapping[str, Any], opset_version: int) -> None:
    """Check that an operator has all given attributes, and that no required attribute is missing.

    Attributes of later opsets are left to the legaliser, which has other forms for them.

    Raises
    ------
    LoweringError
        If an attribute is unknown or missing.
    """
    if not attributes.keys() <= schema_attributes(op_type, opset_version).keys():
        known = _attributes(op_type, opset_version)
        for name in attributes.keys() - known:
            raise misuse(op_type, f"it has no attribute {name!r}", _did_you_mean(name, known))
    for name in required_attributes(op_type, opset_version):
        if attributes.get(name) is None:
            raise misuse(op_type, f"it needs the attribute {name!r}")


@cache
def _attributes(op_type: str, opset_version: int) -> frozenset[str]:
    """Return the attributes of an operator in an opset or the newest."""
    here, newest = schema_of(op_type, opset_version), onnx.defs.get_schema(op_type)
    return frozenset(here.attributes if here is not None else ()) | frozenset(newest.attributes)


def misuse(op_type: str, reason: str, hint: str = "") -> LoweringError:
    """Return the error for the use of an operator, with the line that emits the operator."""
    return LoweringError(op_type, reason, hint, _line_of_lowering())


def _line_of_lowering() -> str:
    """Return ``file:line source`` of the innermost caller outside this folder."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return f"{file}:{line}  {linecache.getline(file, line).strip()}".rstrip()


def _unknown_operator(op_type: str, opset_version: int) -> tuple[str, str]:
    schemas = [s for s in onnx.defs.get_all_schemas() if not s.domain and not s.deprecated]
    newer = {schema.name: schema.since_version for schema in schemas}
    reason = f"opset {opset_version} has no operator of that name"
    if op_type in newer:
        return reason, f"opset {newer[op_type]} has it: export with a later opset_version"
    return reason, _did_you_mean(op_type, [n for n, v in newer.items() if v <= opset_version])


def _did_you_mean(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known, f"choose from {', '.join(sorted(known))}", similarity=0.5)


def _name(dtype: ir.DataType | None) -> str:
    return "an unknown dtype" if dtype is None else str(dtype.numpy())
