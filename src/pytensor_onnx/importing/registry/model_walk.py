"""The walk over the nodes of a model, which imports one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import applys_between, graph_inputs
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import Problem, UnsupportedCase, did_you_mean
from pytensor_onnx.importing.registry import bodies, kept_operators, operator_imports
from pytensor_onnx.importing.registry.bodies import (
    Body,
    BodyFailure,
    Environment,
    default_attributes,
    standard_body,
)
from pytensor_onnx.importing.registry.kept_operators import written_norm
from pytensor_onnx.importing.registry.narrow_types import (
    as_results,
    marked_as,
    narrow_type,
    wide_array,
)
from pytensor_onnx.importing.registry.operator_imports import (
    OperatorImport,
    dtype_name,
    import_of,
    result_dtypes,
)
from pytensor_onnx.importing.registry.sequences import VariableSequence
from pytensor_onnx.importing.registry.size_chains import size_result
from pytensor_onnx.operators.dims import dims_of

_FEWEST = 2
"""Nodes from which a model-local function is one operation."""


class _Failed:
    """Stand-in for the result of a node that cannot be imported."""


FAILED: Any = _Failed()


@dataclass
class ModelWalk:
    """Imports the nodes of a model, and collects all problems.

    Attributes
    ----------
    functions
        The model-local functions.
    constant_of
        Function of the name and the tensor of a constant that returns its variable.
    problems
        The nodes that cannot be imported.
    unknown
        The nodes whose operators have no import.
    """

    functions: Mapping[Any, ir.Function]
    constant_of: Callable[[str, ir.TensorProtocol], Variable]
    problems: list[Problem] = field(default_factory=list)
    opsets: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, ir.Attr] = field(default_factory=dict)
    path: str = ""
    unknown: list[ir.Node] = field(default_factory=list)

    def run(self, graph: ir.Graph, environment: Environment) -> list[Variable]:
        """Import the nodes of a graph; return its results."""
        for value in graph.initializers.values():
            if value not in environment and value.const_value is not None:
                environment[value] = _Late(self, value)
        for node in graph:
            self._import(node, environment)
        return [self._operand(value, environment) for value in graph.outputs]

    def _run_body(self, graph: ir.Graph, environment: Environment) -> list[Variable]:
        results = self.run(graph, environment)
        if any(isinstance(v, _Failed) for v in results):
            raise BodyFailure
        return results

    def _try_body(self, graph: ir.Graph, environment: Environment) -> list[Variable]:
        return replace(self, problems=[], unknown=[])._run_body(graph, environment)

    def run_function(
        self,
        function: ir.Function,
        operands: Sequence[Variable | None],
        attributes: Mapping[str, ir.Attr],
    ) -> list[Variable]:
        """Import the nodes of a function in place of a call."""
        environment = dict(zip(function.inputs, operands, strict=False))
        environment.update((v, None) for v in function.inputs[len(operands) :])
        inner = ModelWalk(
            self.functions,
            self.constant_of,
            self.problems,
            {**self.opsets, **function.opset_imports},
            {**function.attributes, **attributes},
            f"{self.path}{function.name}/",
            self.unknown,
        )
        for node in function:
            inner._import(node, environment)
        return [inner._operand(value, environment) for value in function.outputs]

    def _called(
        self,
        function: ir.Function,
        operands: Sequence[Any],
        attributes: Mapping[str, ir.Attr],
    ) -> list[Variable]:
        """Return the results of a model-local function, as one operation where it can be."""
        if any(isinstance(v, VariableSequence) for v in operands):
            return self.run_function(function, operands, attributes)
        isolated = ModelWalk(self.functions, self.constant_of, [], self.opsets, path=self.path)
        own = [v if v is None or isinstance(v, Constant) else v.type() for v in operands]
        marked_as(own, operands)
        results = isolated.run_function(function, own, attributes)
        inputs = [v for v in own if v is not None and not isinstance(v, Constant)]
        are_arrays = all(isinstance(v, Variable) for v in results)
        is_whole = are_arrays and not (isolated.problems or isolated.unknown)
        nodes = list(applys_between(inputs, results)) if is_whole else None
        if not nodes or len(nodes) < _FEWEST or _has_shared(results):
            return self.run_function(function, operands, attributes)
        given = [v for v in operands if v is not None and not isinstance(v, Constant)]
        call = OpFromGraph(inputs, results, name=function.name, on_unused_input="ignore")
        return marked_as(call(*given, return_list=True), results)

    def _operand(self, value: ir.Value | None, environment: Environment) -> Any:
        if value is None or (not value.name and value.producer() is None):
            return None
        if value not in environment and value.producer() is None and not value.is_graph_input():
            reason = "no node computes it, and it is neither an input nor a constant"
            self.problems.append(Problem(f"value {value.name}", "", "", reason, ""))
        found = environment.get(value, FAILED)
        if isinstance(found, _Late):
            found = environment[value] = found.variable()
        return found

    def _import(self, node: ir.Node, environment: Environment) -> None:
        operands = [self._operand(value, environment) for value in node.inputs]
        while operands and operands[-1] is None:
            operands.pop()
        results: Sequence[Any] = [FAILED] * len(node.outputs)
        if not any(isinstance(v, _Failed) for v in operands):
            try:
                results = self._results(node, operands, environment)
                results = as_results(node, operands, results, self._opset(node))
            except BodyFailure:
                pass
            except UnsupportedCase as problem:
                self._note(node, problem.reason, problem.hint)
            except (
                NotImplementedError,
                TypeError,
                ValueError,
                IndexError,
                AssertionError,
            ) as error:
                self._note(node, f"PyTensor refuses it: {_first_line(error)}", "")
        for value, result in zip(node.outputs, results, strict=False):
            environment[value] = result
            if isinstance(result, Variable) and result.name is None and value.name:
                result.name = value.name
        for value in node.outputs[len(results) :]:
            environment[value] = FAILED

    def _results(
        self, node: ir.Node, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Variable]:
        function = self.functions.get(node.op_identifier())
        if function is not None:
            operation = bodies.own_operation(function)
            if operation is not None:
                made = operation(*operands)
                return made if isinstance(made, list) else [made]
            operator = bodies.own_operator(function, node)
            if operator is not None:
                return self._results(operator, operands, environment)
            given = {name: self._resolved(attr) for name, attr in node.attributes.items()}
            return self._called(function, operands, {k: a for k, a in given.items() if a})
        opset = self._opset(node)
        found = import_of(node.domain, node.op_type, opset)
        if found is None:
            return self._defined(node, operands, opset)
        attributes = self._attributes(node, found, environment)
        is_plain = not node.domain and not any(
            isinstance(v, VariableSequence) or narrow_type(v) for v in operands
        )
        chained = size_result(node.op_type, operands, attributes) if is_plain else None
        if chained is not None:
            return [chained]
        norm = (
            written_norm(node, lambda v: self._operand(v, environment))
            if node.op_type in ("Add", "Mul") and is_plain
            else None
        )
        if norm is not None:
            return [norm]
        simple = (
            operator_imports.simplified(node.op_type, operands, attributes) if is_plain else None
        )
        if simple is not None:
            return [simple]
        if "outputs" in found.facts:
            attributes["outputs"] = len(node.outputs)
        if "kept_axes" in found.facts:
            attributes["kept_axes"] = _kept_axes(node)
        if "rank" in found.facts:
            attributes["rank"] = None if (shape := node.outputs[0].shape) is None else len(shape)

        def build(operands: Sequence[Any], attributes: Mapping[str, Any]) -> Sequence[Variable]:
            results = found.function(*operands, **attributes)
            if results is NotImplemented:
                return self._by_standard(node, operands, opset)
            listed = list(results) if isinstance(results, list | tuple) else [results]
            return _with_dtypes(node, operands, listed, opset)

        return kept_operators.imported(node, opset, operands, attributes, build, found)

    def _defined(self, node: ir.Node, operands: Sequence[Any], opset: int) -> Sequence[Variable]:
        """Import an operator by the function that the standard defines it by."""
        if not kept_operators.is_whole(node):
            return self._by_standard(node, operands, opset)
        given = {name: self._resolved(attr) for name, attr in node.attributes.items()}
        attributes = {name: self._value(attr, {}) for name, attr in given.items() if attr}

        def build(own: Sequence[Any], attributes: Mapping[str, Any]) -> Sequence[Variable]:
            # Problems of the operator on its own: it is then written out.
            walk = self if own is operands else replace(self, problems=[])
            return walk._by_standard(node, own, opset)

        return kept_operators.imported(node, opset, operands, attributes, build)

    def _opset(self, node: ir.Node) -> int:
        domain = "" if node.domain == "ai.onnx" else node.domain
        return node.version or self.opsets.get(domain, 1)

    def _by_standard(
        self, node: ir.Node, operands: Sequence[Any], opset: int
    ) -> Sequence[Variable]:
        """Import the function that the standard defines an operator by."""
        resolved = {name: self._resolved(attr) for name, attr in node.attributes.items()}
        attributes = dict(default_attributes(node.domain, node.op_type, opset))
        attributes.update((name, attr) for name, attr in resolved.items() if attr is not None)
        function = standard_body(node, operands, attributes, opset)
        if function is None:
            self.unknown.append(node)
            raise BodyFailure
        return self.run_function(function, operands, attributes)

    def _resolved(self, attribute: ir.Attr) -> ir.Attr | None:
        """Return an attribute, that of the call where a function refers to it."""
        if not attribute.is_ref():
            return attribute
        found = self.attributes.get(str(attribute.ref_attr_name))
        return None if found is None or found.value is None else found

    def _attributes(
        self, node: ir.Node, found: OperatorImport, environment: Environment
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, attribute in node.attributes.items():
            resolved = self._resolved(attribute)
            if resolved is None:
                continue
            if name not in found.attributes:
                raise UnsupportedCase(
                    f"its attribute {name} is not supported",
                    did_you_mean(name, found.attributes, ""),
                )
            values[name] = self._value(resolved, environment)
        return values

    def _value(self, attribute: ir.Attr, environment: Environment) -> Any:
        """Return the value of an attribute: a number, text, array, tuple, or a `Body`."""
        match attribute.type:
            case ir.AttributeType.GRAPH:
                graph = attribute.as_graph()
                return Body(graph, self._run_body, self._operand, environment, self._try_body)
            case ir.AttributeType.TENSOR:
                tensor = attribute.as_tensor()
                return constant_array(tensor)
            case ir.AttributeType.INTS | ir.AttributeType.FLOATS | ir.AttributeType.STRINGS:
                return tuple(attribute.value)
            case ir.AttributeType.INT | ir.AttributeType.FLOAT | ir.AttributeType.STRING:
                return attribute.value
            case ir.AttributeType.TYPE_PROTO:
                return attribute.value
        raise UnsupportedCase(f"its attribute {attribute.name} is a {attribute.type.name.lower()}")

    def _note(self, node: ir.Node, reason: str, hint: str) -> None:
        domain = f"{node.domain}." if node.domain else ""
        named = f" {self.path}{node.name}" if node.name else ""
        results = ", ".join(str(v.name) for v in node.outputs if v.name)
        self.problems.append(Problem(f"{domain}{node.op_type}{named}", results, "", reason, hint))


@dataclass
class _Late:
    """A constant of the file that no node has used yet."""

    walk: ModelWalk
    value: ir.Value

    def variable(self) -> Variable:
        tensor = self.value.const_value
        assert tensor is not None
        return self.walk.constant_of(str(self.value.name), tensor)


def _with_dtypes(
    node: ir.Node, operands: Sequence[Any], results: Sequence[Any], opset: int
) -> list[Variable]:
    """Return results in the dtypes of the operator, where it declares others than PyTensor."""
    variables = [
        v if isinstance(v, Variable | VariableSequence | _Failed) or v is None else pt.as_tensor(v)
        for v in results
    ]
    arrays = [v if isinstance(v, Variable) else None for v in operands]
    dtypes = result_dtypes(node.domain, node.op_type, opset, arrays, len(variables))
    return [
        v.astype(dtype) if dtype and isinstance(v, TensorVariable) and v.type.dtype != dtype else v
        for v, dtype in zip(variables, dtypes, strict=True)
    ]


def _kept_axes(node: ir.Node) -> frozenset[int]:
    """Return the axes, counted from the last, that the file says to have equal sizes.

    These are axes of one name in the first operand and the first result.
    """
    first = node.inputs[0]
    before, after = getattr(first, "shape", None), node.outputs[0].shape
    pairs = zip(reversed(before or ()), reversed(after or ()), strict=False)
    return frozenset(
        -1 - i
        for i, (a, b) in enumerate(pairs)
        if isinstance(a, ir.SymbolicDim) and a.value is not None and a == b
    )


def _has_shared(results: Sequence[Variable]) -> bool:
    return any(isinstance(v, SharedVariable) for v in graph_inputs(results))


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def tensor_type(value: ir.Value) -> TensorType:
    """Return the type of an input: dtype, and the sizes that the file fixes.

    Raises
    ------
    UnsupportedCase
        If it is no tensor of numbers, or its rank is unknown.

    Examples
    --------
    >>> tensor_type(ir.val("x", dtype=ir.DataType.FLOAT, shape=("batch", 3)))
    TensorType(float32, shape=(None, 3))
    """
    if isinstance(value.type, ir.SequenceType | ir.OptionalType):
        kind, given = "a sequence", "[variable, ...]"
        if isinstance(value.type, ir.OptionalType):
            kind, given = "a value that may be missing", "variable or None"
        raise UnsupportedCase(
            f"it is {kind}, and not a tensor",
            f"give it, in from_onnx(model, inputs={{{value.name!r}: {given}}})",
        )
    if not isinstance(value.type, ir.TensorType):
        kind = "a value without a type" if value.type is None else f"a {type(value.type).__name__}"
        raise UnsupportedCase(f"it is {kind}, and not a tensor")
    dtype = dtype_name(value.type.dtype)
    if value.shape is None:
        raise UnsupportedCase(
            "its rank is not known", "give a variable, in from_onnx(model, inputs={name: variable})"
        )
    return TensorType(dtype, tuple(d if isinstance(d, int) else None for d in dims_of(value) or ()))


def constant_array(tensor: ir.TensorProtocol) -> np.ndarray:
    """Return the array of a constant; that of a file of weights stays in the file."""
    dtype_name(tensor.dtype)
    return wide_array(tensor.numpy())
