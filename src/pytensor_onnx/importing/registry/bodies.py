"""Bodies of imported functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.functions.operation import DefinedScalarOp
from pytensor_onnx.functions.random.ciphers import graph_named
from pytensor_onnx.functions.registry import DEFINITIONS, Definition
from pytensor_onnx.graph.builder import Meaning
from pytensor_onnx.graph.traversal import DOMAINS, STANDARD_DOMAIN
from pytensor_onnx.importing.registry.sequences import VariableSequence, flat, in_form
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.operators.inference import schema_of
from pytensor_onnx.ops.networks.kept_operator import note_origin
from pytensor_onnx.ops.random.draws import (
    Draw,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
)

type Environment = dict[ir.Value, Any]


class BodyFailure(Exception):  # noqa: N818  (control flow)
    """Raised for a body with nodes that cannot be imported, which are noted."""


@dataclass(frozen=True)
class Body:
    """A graph of a node, as a function of variables.

    Attributes
    ----------
    graph
        The graph in the file.
    run
        Function that imports the nodes of a graph in an environment and returns its results.
    look_up
        Function that returns the variable of a value in an environment.
    outer
        Variables of the values around the node.
    try_run
        ``run`` without a note of the nodes that cannot be imported.
    """

    graph: ir.Graph
    run: Callable[[ir.Graph, Environment], list[Variable]]
    look_up: Callable[[ir.Value, Environment], Any]
    outer: Environment = field(repr=False)
    try_run: Callable[[ir.Graph, Environment], list[Variable]]

    @property
    def captured(self) -> list[Variable]:
        """Return the variables of the surrounding graph that the body uses, but constants."""
        return flat(self.outer[value] for value in self._captured_values())

    def _captured_values(self) -> list[ir.Value]:
        used = dict.fromkeys(
            value
            for node in self.graph.all_nodes()
            for value in node.inputs
            if value is not None and value in self.outer
        )
        used.update((v, None) for v in self.graph.outputs if v in self.outer)
        found = [(value, self.look_up(value, self.outer)) for value in used]
        return [v for v, x in found if not isinstance(x, Constant) and _has_variables(x)]

    def __call__(self, *arguments: Any, captured: Sequence[Variable] | None = None) -> list[Any]:
        """Return the results for some arguments.

        Parameters
        ----------
        arguments
            One variable for each input of the graph.
        captured
            Variables in place of those of `captured`, such as the arguments of a step of a scan.
        """
        environment = dict(self.outer)
        if captured is not None:
            values = self._captured_values()
            given = in_form([self.outer[value] for value in values], captured)
            environment.update(zip(values, given, strict=True))
        environment.update(zip(self.graph.inputs, arguments, strict=False))
        return self.run(self.graph, environment)

    def attempt(self, *arguments: Any) -> list[Any] | None:
        """Return the results for some arguments, None if a node cannot be imported."""
        try:
            given = zip(self.graph.inputs, arguments, strict=False)
            return self.try_run(self.graph, {**self.outer, **dict(given)})
        except BodyFailure:
            return None


def _has_variables(value: Any) -> bool:
    return isinstance(value, Variable | VariableSequence) and bool(flat([value]))


def standard_body(
    node: ir.Node, operands: Sequence[Any], attributes: Mapping[str, ir.Attr], opset: int
) -> ir.Function | None:
    """Return the function that the standard defines an operator by, or None.

    Parameters
    ----------
    node, operands
        The node, and the variables of its operands, whose types some functions depend on.
    attributes
        Its attributes, without references to those of a function.
    opset
        Opset of the model.
    """
    schema = schema_of(node.op_type, opset, node.domain)
    if schema is None:
        return None
    attributes = {**default_attributes(node.domain, node.op_type, opset), **attributes}
    if schema.has_function:
        return _fixed_body(node.domain, node.op_type, opset)
    if not schema.has_context_dependent_function:
        return None
    import onnx

    proto = onnx.helper.make_node(
        node.op_type,
        [f"operand_{i}" if v is not None else "" for i, v in enumerate(operands)],
        [f"result_{i}" if v.name else "" for i, v in enumerate(node.outputs)],
        domain=node.domain,
    )
    proto.attribute.extend(ir.serde.serialize_attribute(a) for a in attributes.values())
    types = [_type_proto(v).SerializeToString() if v is not None else b"" for v in operands]
    return _function(schema.get_context_dependent_function(proto.SerializeToString(), types))


@cache
def default_attributes(domain: str, operator: str, opset: int) -> Mapping[str, ir.Attr]:
    """Return the attributes of an operator that have a default."""
    schema = schema_of(operator, opset, domain)
    defaults = {} if schema is None else schema.attributes
    return {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in defaults.items()
        if attribute.default_value.name
    }


@cache
def _fixed_body(domain: str, operator: str, opset: int) -> ir.Function:
    schema = schema_of(operator, opset, domain)
    assert schema is not None
    function = _function(schema.function_body.SerializeToString())
    if not function.opset_imports:
        function.opset_imports[""] = opset
    return function


def _function(serialised: bytes) -> ir.Function:
    import onnx

    proto = onnx.FunctionProto()
    proto.ParseFromString(serialised)
    # Bodies leave out the results that a node does not use.
    computed = {*proto.input, *(name for node in proto.node for name in node.output)}
    for name in proto.output:
        if name not in computed:
            proto.node.append(onnx.helper.make_node("Constant", [], [name], value_int=0))
    return ir.serde.deserialize_function(proto)


def _type_proto(variable: Any) -> Any:
    import onnx

    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(variable.type.dtype))
    return onnx.helper.make_tensor_type_proto(dtype, variable.type.shape)


GUARDED = "guarded in the file"
"""Key of the metadata of an operator that a function of the file guards."""
_FUNCTIONS: dict[str, Callable[..., Variable]] = {
    "CumProd": partial(pt.cumprod, axis=0),
    "CumProdOrEmpty": partial(pt.cumprod, axis=0),
    "FloorDivide": pt.int_div,
    "FloorModulo": pt.mod,
    "Power": pt.pow,
}
_GUARDED_OPERATORS = {"ReduceMax", "ReduceMin", "TopK", "Unique"}


def own_operation(function: ir.Function) -> Callable[..., Variable | list[Variable]] | None:
    """Return the operation that a function of this package stands for, or None.

    A definition of the standard domain is that of an Op: elementwise, of a cipher, of a draw, or of
    linear algebra, with axes of batches before those of matrices. A guard of a runtime's operator
    returns its last operand where that operator is right, as PyTensor's is. Arithmetic with NumPy's
    rules is PyTensor's.

    Examples
    --------
    >>> function = ir.Function(
    ...     "pytensor.standard", "Erfinv_2", graph=ir.Graph([], [], nodes=[]), attributes=[]
    ... )
    >>> Meaning("Erfinv").write(function)
    >>> print(own_operation(function)(pt.fvector("x")).owner.op)
    Erfinv
    """
    meaning = Meaning.of(function) if function.domain in DOMAINS else None
    if meaning is None:
        return None
    if function.domain == STANDARD_DOMAIN:
        found = _elementwise().get(meaning.op) or graph_named(meaning.op) or _draw(meaning)
        return found or _of_matrices(meaning, len(function.inputs))
    if meaning.op in ("KeepNonFinite", "RequireNonEmpty"):
        return _last
    return _FUNCTIONS.get(meaning.op)


def own_operator(function: ir.Function, node: ir.Node) -> ir.Node | None:
    """Return the operator of the standard that a function of this package guards, or None.

    Parameters
    ----------
    function, node
        The function, and the node that calls it.
    """
    meaning = Meaning.of(function) if function.domain in DOMAINS else None
    if meaning is None or meaning.op not in _GUARDED_OPERATORS:
        return None
    return _operator(node, meaning.op, **meaning.attributes)


def _operator(node: ir.Node, op_type: str, **attributes: int) -> ir.Node:
    inputs = [None] * len(node.inputs)
    operator = ir.node(op_type, inputs, attributes, num_outputs=len(node.outputs))
    operator.meta[GUARDED] = True
    return operator


def _last(*operands: Any) -> Any:
    """Return the result that a function guards, whose operation is guarded again in exports."""
    note_origin(operands[-1], imported=False)
    return operands[-1]


@cache
def _elementwise() -> dict[str, Elemwise]:
    """Return the elementwise operations by the names of their definitions."""
    import_modules("pytensor_onnx.functions.special")
    found: dict[str, Elemwise] = {}
    for op_type, definition in DEFINITIONS.items():
        if not definition.is_elementwise or definition.keywords or not definition.is_own:
            continue
        known = vars(sys.modules[op_type.__module__]).values()
        scalars = [v.scalar_op if isinstance(v, Elemwise) else v for v in known]
        instance = next((v for v in scalars if type(v) is op_type), None)
        if issubclass(op_type, DefinedScalarOp) and op_type.nout == 1:
            instance = op_type(name=definition.expression.__name__)
        if isinstance(instance, ScalarOp):
            found[op_type.__name__] = Elemwise(instance)
    return found


def _of_matrices(meaning: Meaning, count: int) -> Blockwise | None:
    """Return an operation of linear algebra on a number of operands, None where there is none."""
    definition = _linalg().get(meaning.op)
    if definition is None:
        return None
    # Classes hand keywords on to their bases.
    bases = [base for base in definition.op_type.__mro__ if "__init__" in vars(base)]
    parameters = {name for base in bases for name in signature(vars(base)["__init__"]).parameters}
    given = {name: value for name, value in meaning.attributes.items() if name in parameters}
    try:
        op = definition.op_type(**given)
        axes = definition.for_op(op, count)
    except TypeError:
        return None  # an argument that no attribute tells
    if axes.inputs is None or axes.outputs is None or len(axes.inputs) != count:
        return None
    return Blockwise(op, signature=f"{_written(axes.inputs)}->{_written(axes.outputs)}")


def _draw(meaning: Meaning) -> Draw | None:
    """Return the Op of a draw, None for other operations."""
    kinds = (RandomBits, StandardUniform, OpenUniform, StandardNormal, NormalPairs)
    found = next((kind for kind in kinds if kind.__name__ == meaning.op), None)
    dtype = meaning.attributes.get("dtype")
    return found(dtype) if found and dtype in ("uint64", "float32", "float64") else None


def _written(axes: Sequence[Sequence[str]]) -> str:
    return ",".join(f"({','.join(names)})" for names in axes)


@cache
def _linalg() -> dict[str, Definition]:
    """Return the definitions of PyTensor's Ops of linear algebra, by the names of the Ops."""
    import_modules("pytensor_onnx.functions.linalg")
    return {
        op_type.__name__: definition
        for op_type, definition in DEFINITIONS.items()
        if definition.is_own and op_type.__module__.startswith("pytensor.tensor.linalg.")
    }
