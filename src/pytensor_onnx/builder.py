"""A typed builder over onnx_ir's Tape: operator calls, constants, subgraphs, functions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from inspect import Parameter, getdoc
from inspect import signature as signature_of
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from pytensor_onnx.dims import SIZE
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.inference import (
    Dims,
    bind_dtypes,
    dims_of,
    dtype_of,
    output_dims,
    output_dtypes,
    signature,
)
from pytensor_onnx.known import known_choice, known_result
from pytensor_onnx.scope import (
    LocalFunction,
    ModelScope,
    Names,
    content_key,
    live_nodes,
    name_values,
    rename_in_subgraphs,
    snake_case,
)

FUNCTION_DOMAIN = "pytensor"

Operand = ir.Value | np.ndarray | np.generic | int | float | bool | Sequence[int] | None
Body = Callable[..., ir.Value | Sequence[ir.Value]]


class Builder:
    """Emits the nodes of one graph, subgraph or function body.

    Every standard operator is a method: ``onnx.Gather(x, index, axis=0)``. Python numbers become
    constants in the dtype of the operand they meet. The values returned know their dtype and, where
    it can be told, their shape. Operators of several outputs take ``outputs=``.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> onnx = Builder(ModelScope(opset_version=21))
    >>> x = ir.val("x", dtype=ir.DataType.DOUBLE, shape=("n", 3))
    >>> y = onnx.Mul(onnx.Add(x, 1), 0.5)
    >>> y.dtype, onnx.Less(y, x).dtype
    (DOUBLE, BOOL)
    >>> [node.op_type for node in onnx.nodes]
    ['Add', 'Mul', 'Less']
    """

    def __init__(
        self,
        scope: ModelScope,
        parent: Builder | None = None,
        *,
        in_function: bool = False,
        shaped: bool = True,
    ) -> None:
        self.scope = scope
        self.in_function: bool = in_function or (parent is not None and parent.in_function)
        self.shaped: bool = shaped and (parent is None or parent.shaped)
        self.in_branch = parent is not None
        self.provenance: dict[str, str] = {}
        self.peek: Callable[[Any], Any] = {}.get
        self._tape = Tape()
        self._parent = parent
        self._sizes_read: dict[Hashable, ir.Value] = {}
        self._constants_owner: Builder = parent._constants_owner if parent is not None else self
        self._local_constants: dict[Hashable, ir.Value] = {}

    @property
    def nodes(self) -> Sequence[ir.Node]:
        """The nodes emitted so far, in order."""
        constants = [v.producer() for v in self._local_constants.values()]
        return [*(node for node in constants if node is not None), *self._tape.nodes]

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.op, op_type)

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
            Attributes of the operator; a Builder is a subgraph.

        Raises
        ------
        TypeError
            If the dtype of a Python number cannot be told from the other operands, or a float meets
            integers.
        """
        types = signature(op_type, self.scope.opset_version)
        bound = bind_dtypes(types, operands)
        inputs = [
            value
            if value is None or isinstance(value, ir.Value)
            else self._operand(op_type, value, bound.get(t) or t)
            for value, t in zip(operands, map(types.input_type, range(len(operands))), strict=True)
        ]
        if not bound:
            bound = bind_dtypes(types, inputs)
        attributes = {name: _attribute(value) for name, value in attributes.items()}
        known = known_result(op_type, inputs, attributes)
        if known is not None:
            return self.constant(known)
        choice = known_choice(op_type, inputs)
        if choice is not None:
            return choice
        dtypes = output_dtypes(op_type, types, bound, attributes)
        dtypes += [dtypes[-1] if dtypes else None] * (outputs - len(dtypes))
        values = [ir.Value(type=_tensor_type(dtype)) for dtype in dtypes[:outputs]]
        if self.shaped:
            dims = output_dims(op_type, inputs, attributes)
            if dims is not None:
                values[0].shape = ir.Shape(dims)
        self._tape.op_multi_out(
            op_type,
            inputs,
            attributes,
            outputs=values,
            metadata_props=dict(self.provenance),
        )
        return values[0] if outputs == 1 else values

    def _operand(self, op_type: str, value: Any, dtype: str | ir.DataType) -> ir.Value:
        if isinstance(value, np.ndarray | np.generic):
            return self.constant(value)
        if isinstance(dtype, str):
            if op_type in ("Gather", "GatherND", "GatherElements", "Slice", "CumSum"):
                dtype = ir.DataType.INT64
            else:
                raise TypeError(
                    f"{op_type}: no operand tells the dtype of the constant {value!r}; "
                    "pass a NumPy value"
                )
        if isinstance(value, float) and not dtype.is_floating_point():
            raise TypeError(f"{op_type}: the constant {value!r} meets operands of {dtype.numpy()}")
        return self.constant(np.asarray(value, dtype=dtype.numpy()))

    def constant(self, value: Any, name: str | None = None) -> ir.Value:
        """Return a constant; equal ones (dtype, shape and bits) are stored once.

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
        """Return the value in another dtype, itself where it has it already.

        Examples
        --------
        >>> onnx = Builder(ModelScope(21))
        >>> x = onnx.constant(np.float32(1.5))
        >>> onnx.cast(x, "float32") is x, onnx.cast(x, "float64").dtype
        (True, DOUBLE)
        """
        target = (
            dtype if isinstance(dtype, ir.DataType) else ir.DataType.from_numpy(np.dtype(dtype))
        )
        if value.dtype == target:
            return value
        if value.const_value is not None and value.const_value.size <= 1:
            return self.constant(value.const_value.numpy().astype(target.numpy()))
        return self.Cast(value, to=int(target))

    def dims(self, value: ir.Value) -> Dims:
        """Return the dimensions of a value, which must be of known rank."""
        dims = dims_of(value)
        if dims is None:
            raise TypeError(f"the rank of {value} is not known")
        return dims

    def shape(self, value: ir.Value) -> ir.Value:
        """Return the shape as a 1-d int64 value, a constant where it is static.

        Examples
        --------
        >>> onnx = Builder(ModelScope(21))
        >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 3))
        >>> onnx.shape(x) is onnx.shape(onnx.Exp(x)), onnx.sizes(x, 1, 2).const_value.numpy()
        (True, array([3]))
        """
        dims = dims_of(value)
        return self.Shape(value) if dims is None else self.sizes(value, 0, len(dims))

    def sizes(self, value: ir.Value, start: int, end: int) -> ir.Value:
        """Return the sizes of consecutive axes as a 1-d int64 value, which is read only once."""
        self.scope.name_dims(value)
        dims = self.dims(value)[start:end]
        if all(isinstance(d, int) for d in dims):
            return self.ints([d for d in dims if isinstance(d, int)])
        whole = start == 0 and end == len(self.dims(value))
        limits = {} if whole else {"start": start, "end": end}
        return self._read_once(dims, lambda: self.Shape(value, **limits))

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """Return the size of one axis as a 0-d int64 value, a constant where it is static."""
        self.scope.name_dims(value)
        dim = self.dims(value)[axis]
        if isinstance(dim, int):
            return self.constant(np.int64(dim))
        sizes = self.sizes(value, axis, axis + 1)
        return self._read_once(dim, lambda: self.Squeeze(sizes, self.ints([0])))

    def name_size(self, number: ir.Value, wanted: str) -> None:
        """Let a number that is not negative be a size, of a dimension with a name of its own.

        Examples
        --------
        >>> onnx = Builder(ModelScope(21))
        >>> n = ir.val("n", dtype=ir.DataType.INT64, shape=())
        >>> onnx.name_size(n, "steps")
        >>> dims_of(onnx.Range(0, n, 1))
        ('steps',)
        """
        dim = self.scope.computed_dim(wanted)
        number.meta[SIZE] = dim
        self._sizes_read[dim] = number
        self._sizes_read[(dim,)] = self.Unsqueeze(number, self.ints([0]))

    def _read_once(self, key: Hashable, read: Callable[[], ir.Value]) -> ir.Value:
        reader: Builder | None = self
        while reader is not None:
            if key in reader._sizes_read:
                return reader._sizes_read[key]
            reader = reader._parent
        self._sizes_read[key] = read()
        return self._sizes_read[key]

    def subgraph(self) -> Builder:
        """Return a builder for the body of an If or a loop: it sees the values of this graph."""
        inner = Builder(self.scope, parent=self)
        inner.provenance = self.provenance
        return inner

    def graph(self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> ir.Graph:
        """Close this builder as a subgraph with the given inputs and outputs."""
        results = self.own_results(outputs)
        for value in inputs:
            value.name = self.scope.names.unique(value.name or "arg")
        nodes = live_nodes(self._tape.nodes, results)
        name_values(nodes, self.scope.names)
        return ir.Graph(list(inputs), results, nodes=nodes, name="body")

    def own_results(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the values as distinct results of this graph's nodes, copied where needed."""
        own = {id(v) for node in self._tape.nodes for v in node.outputs}
        results: list[ir.Value] = []
        for value in values:
            taken = id(value) not in own or any(value is other for other in results)
            results.append(self.Identity(value) if taken else value)
        return results

    def if_else(
        self, condition: ir.Value, then_branch: ir.Graph, else_branch: ir.Graph
    ) -> list[ir.Value]:
        """Emit an If; the outputs take the types that both branches agree on."""
        values = []
        for a, b in zip(then_branch.outputs, else_branch.outputs, strict=True):
            value = ir.Value(type=a.type)
            first, second = dims_of(a), dims_of(b)
            if first is not None and second is not None and len(first) == len(second):
                value.shape = ir.Shape(
                    [x if x == y else None for x, y in zip(first, second, strict=True)]
                )
            values.append(value)
        self._tape.op_multi_out(
            "If",
            [condition],
            {"then_branch": then_branch, "else_branch": else_branch},
            outputs=values,
            metadata_props=dict(self.provenance),
        )
        return values

    def loop(
        self,
        trip_count: ir.Value | None,
        condition: ir.Value | None,
        state: Sequence[ir.Value],
        body: ir.Graph,
    ) -> list[ir.Value]:
        """Emit a Loop; the body takes step, condition and state and returns condition and state.

        Outputs of the body beyond the state are stacked along a new first axis. Without a condition
        the first step runs; where the input is left out, the standard ignores the body's condition.
        """
        n_state = len(state)
        condition = self.constant(np.True_) if condition is None else condition
        values = [ir.Value(type=x.type) for x in state]
        values += [ir.Value(type=x.type) for x in body.outputs[1 + n_state :]]
        self._tape.op_multi_out(
            "Loop",
            [trip_count, condition, *state],
            {"body": body},
            outputs=values,
            metadata_props=dict(self.provenance),
        )
        return values

    def scan(
        self, state: Sequence[ir.Value], sequences: Sequence[ir.Value], body: ir.Graph
    ) -> list[ir.Value]:
        """Emit a Scan along the first axis of sequences of one length, which must not be zero.

        The body takes the state and an element of each sequence; it returns the state, and what is
        stacked along a new first axis.
        """
        values = [ir.Value(type=x.type) for x in state]
        values += [ir.Value(type=x.type) for x in body.outputs[len(state) :]]
        self._tape.op_multi_out(
            "Scan",
            [*state, *sequences],
            {"body": body, "num_scan_inputs": len(sequences)},
            outputs=values,
            metadata_props=dict(self.provenance),
        )
        return values

    def call(
        self,
        name: str,
        body: Body,
        *operands: ir.Value,
        variant: str | None = None,
        key: Hashable = None,
        shapes: Sequence[Dims] | None = None,
        source: Callable | None = None,
        parameters: Sequence[str | None] = (),
    ) -> Any:
        """Call a model-local function, which is defined on its first use.

        Parameters
        ----------
        name
            Name of the function in the domain ``pytensor``.
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
        source
            Python function whose docstring documents the model-local function, and whose
            parameters name its parameters; the body unless given.
        parameters
            Other names for the parameters.

        Returns
        -------
        onnx_ir.Value or list of onnx_ir.Value
            What the body returned, for these operands.
        """
        if variant is None:
            variant = "_".join(dict.fromkeys(_dtype_name(x) for x in operands))
        name = f"{name}_{variant}" if variant else name
        key = key or name, None if shapes is None else tuple(map(tuple, shapes))
        local = self.scope.functions.get(key)
        if local is None:
            names = parameters or _parameter_names(source or body, len(operands))
            local = self._define(name, body, operands, shapes, names)
            local.function.doc_string = _summary(source or body)
            self.scope.functions[key] = local
        values = [ir.Value(type=out.type) for out in local.function.outputs]
        self._tape.op_multi_out(
            local.function.name,
            operands,
            outputs=values,
            domain=FUNCTION_DOMAIN,
            metadata_props=dict(self.provenance),
        )
        return values if local.returns_list else values[0]

    def _define(
        self,
        name: str,
        body: Body,
        operands: Sequence[ir.Value],
        shapes: Sequence[Dims] | None,
        parameters: Sequence[str | None],
    ) -> LocalFunction:
        inner = Builder(self.scope, in_function=True, shaped=shapes is not None)
        names = Names()
        inputs = [
            ir.Value(name=names.unique(wanted or f"x{i}"), type=x.type)
            for i, (wanted, x) in enumerate(zip(parameters, operands, strict=True))
        ]
        for value, dims in zip(inputs, shapes or (), strict=False):
            value.shape = ir.Shape(dims)
        returned = body(inner, *inputs)
        returns_list = not isinstance(returned, ir.Value)
        results = inner.own_results([returned] if isinstance(returned, ir.Value) else returned)
        for value in results:
            node = value.producer()
            if node is not None and node.name is None:
                node.name = names.unique(snake_case(node.op_type))
            value.name = names.unique("result")
        nodes = live_nodes(inner.nodes, results)
        rename_in_subgraphs(nodes, names)
        name_values(nodes, names)
        graph = ir.Graph(
            inputs,
            results,
            nodes=nodes,
            opset_imports={"": self.scope.opset_version, FUNCTION_DOMAIN: 1},
        )
        function = ir.Function(
            FUNCTION_DOMAIN, self.scope.function_names.unique(name), graph=graph, attributes=[]
        )
        return LocalFunction(function, returns_list)

    def unsupported(self, reason: str, hint: str = "") -> UnsupportedCase:
        """Return the exception to raise for a case that cannot be converted."""
        return UnsupportedCase(reason, hint)


def _parameter_names(function: Callable, count: int) -> list[str | None]:
    """Return the names of the last parameters of a function, None for those without one."""
    named = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature_of(function).parameters.values()
    names: list[str | None] = [p.name for p in parameters if p.kind in named]
    if any(p.kind == Parameter.VAR_POSITIONAL for p in parameters) or len(names) < count:
        return ["x"] if count == 1 else [None] * count
    return names[len(names) - count :]


def _summary(function: Callable) -> str | None:
    """Return the first line of a docstring."""
    return (getdoc(function) or "").partition("\n")[0] or None


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ir.tensor(value)
    return value


def _tensor_type(dtype: ir.DataType | None) -> ir.TensorType | None:
    return None if dtype is None else ir.TensorType(dtype)


def _dtype_name(value: ir.Value) -> str:
    return "" if value.dtype is None else str(value.dtype.numpy())


def _constant_name(array: np.ndarray) -> str:
    if array.ndim == 0:
        text = str(array.item())
        return f"c_{text}".replace("-", "minus_").replace("+", "")
    return "c"
