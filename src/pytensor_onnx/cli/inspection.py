"""The command `inspect`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytensor_onnx.errors import (
    ArgumentError,
    PyTensorONNXError,
    UnsupportedOpError,
    UnsupportedTypeError,
    did_you_mean,
)
from pytensor_onnx.exporting.verification.file_vectors import METADATA, Vectors
from pytensor_onnx.late_names import installs

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class Inspection:
    """Contents of an ONNX file.

    Attributes
    ----------
    file, file_bytes
        Its name and size.
    inputs, defaults, outputs
        Name, dtype and shape of the inputs without and with a default, and of the outputs.
    state
        Name of the output with the next value, for each input of the state.
    operator_sets, ir_version, producer
        Operator sets, IR version and producer in the file.
    nodes, constants, constant_bytes
        Numbers of nodes and constants, and the size of the constants.
    operators, functions
        Number of nodes of each operator, and number of nodes in each function.
    test_vectors
        Names, dtypes and shapes of the arrays of its test vectors, if it has some.
    metadata
        Further metadata of the file.
    """

    file: str
    file_bytes: int
    inputs: list[str]
    defaults: list[str]
    outputs: list[str]
    state: dict[str, str]
    operator_sets: dict[str, int]
    ir_version: int
    producer: str
    nodes: int
    constants: int
    constant_bytes: int
    operators: dict[str, int]
    functions: dict[str, int]
    test_vectors: list[str]
    metadata: dict[str, str]


def inspect_file(file: Path) -> Inspection:
    """Return the contents of an ONNX file.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model.
    """
    from pytensor_onnx.exporting.requests.descriptions import describe
    from pytensor_onnx.graph.model_reading import read_model
    from pytensor_onnx.graph.traversal import function_sizes, operator_counts
    from pytensor_onnx.graph.weights import weight_bytes

    model = read_model(file)
    graph = model.graph
    counts = operator_counts(model)
    metadata = {str(key): str(value) for key, value in model.metadata_props.items()}
    return Inspection(
        file=str(file),
        file_bytes=file.stat().st_size,
        inputs=[describe(v) for v in graph.inputs if v.name not in graph.initializers],
        defaults=[describe(v) for v in graph.inputs if v.is_initializer()],
        outputs=[describe(v) for v in graph.outputs],
        state=_state_pairs(metadata.pop("state", "")),
        operator_sets={domain or "onnx": v for domain, v in graph.opset_imports.items()},
        ir_version=model.ir_version,
        producer=f"{model.producer_name or '?'} {model.producer_version or ''}".strip(),
        nodes=counts.total(),
        constants=len(graph.initializers),
        constant_bytes=weight_bytes(model),
        operators=dict(counts.most_common()),
        functions=dict(function_sizes(model)),
        test_vectors=_described_vectors(metadata.pop(METADATA, "")),
        metadata=metadata,
    )


def _described_vectors(text: str) -> list[str]:
    """Return a line for each array of test vectors; none for other metadata."""
    try:
        vectors = Vectors.of_text(text)
    except PyTensorONNXError:
        return []
    return [
        f"{name}: {array.dtype}{list(array.shape)}"
        for name, array in {**vectors.inputs, **vectors.outputs}.items()
    ]


def _state_pairs(text: str) -> dict[str, str]:
    """Return the state pairs in the metadata of a model, empty for other metadata."""
    try:
        pairs: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(pairs, dict):
        return {}
    return {name: after for name, after in pairs.items() if isinstance(after, str)}


@dataclass(frozen=True)
class Obstacle:
    """Parts of a file of one kind that cannot be imported, for one reason.

    Attributes
    ----------
    kind
        The operator, or the type of an input.
    count
        Number of nodes or inputs.
    reason, instead
        Why, and a way out if one is known.
    """

    kind: str
    count: int
    reason: str
    instead: str


@dataclass(frozen=True)
class ImportInspection:
    """What `from_onnx` makes of a file.

    Attributes
    ----------
    file
        Its name.
    inputs, outputs
        Name, dtype and shape of the variables; none if the file cannot be imported.
    obstacles
        All that stops the import.
    call
        Call with values and sizes with which the file is imported, empty if none was found or
        needed.
    """

    file: str
    inputs: list[str]
    outputs: list[str]
    obstacles: list[Obstacle]
    call: str


def inspect_import(file: Path) -> ImportInspection:
    """Import a file, and return the variables, or all that stops it.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model.
    """
    from pytensor_onnx import from_onnx

    try:
        graph = from_onnx(file)
    except (UnsupportedOpError, UnsupportedTypeError) as error:
        counts: dict[tuple[str, str, str], int] = {}
        for problem in error.problems:
            kind, _, many = problem.subject.partition(", ")
            count = int(many.split()[0]) if many.endswith(" nodes") else 1
            key = kind.split()[0], problem.reason, problem.hint
            counts[key] = counts.get(key, 0) + count
        found = [Obstacle(kind, n, reason, hint) for (kind, reason, hint), n in counts.items()]
        found.sort(key=lambda x: -x.count)
        return ImportInspection(str(file), [], [], found, error.way_out)
    inputs, outputs = (
        [f"{v.name}: {v.type}" for v in part] for part in (graph.inputs, graph.outputs)
    )
    return ImportInspection(str(file), inputs, outputs, [], "")


_PACKAGES = ("pytensor", "pytensor_ml", "pytensor_onnx")


def named_object(name: str) -> Any:
    """Return an object from its name, such as ``package.module:model``.

    Modules of the present folder are found, too.

    Raises
    ------
    ArgumentError
        If the name has another form, the import fails, or the module has no such object.

    Examples
    --------
    >>> named_object("math:pi")
    3.141592653589793
    """
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise ArgumentError(f"{name!r} is no name of an object: write package.module:name")
    value = _module(module)
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            hint = did_you_mean(part, dir(value), "write package.module:name")
            raise ArgumentError(f"{module} has no object {path!r}: {hint}") from error
    return value


def _module(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # The module may compile functions in mode ONNX.
    import_module("pytensor_onnx.registered_mode")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        advice = installs(str(error.name))
        text = f"{name} cannot be imported, {error}{f': {advice}' if advice else ''}"
        raise ArgumentError(text) from error
    # A user's module may raise anything, and end the program.
    except (Exception, SystemExit) as error:
        where = _line_of(error)
        raise ArgumentError(
            f"{name} cannot be imported, {type(error).__name__}: {error}{where}"
        ) from error


def _line_of(error: BaseException) -> str:
    """Return the last line of code that an error passed, as text to append to a message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""


def export_object(value: Any, **options: Any) -> Any:
    """Export a graph, a compiled function, a PyMC model or a network as a program.

    Parameters
    ----------
    value
        Inputs and outputs, an output, the result of `pytensor.function`, a PyMC model, or a network
        of pytensor-ml.
    options
        Those of `pytensor_onnx.export_onnx`.

    Raises
    ------
    PyTensorONNXError
        If it is something else, or cannot be exported.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> export_object(([x], x.sum())), export_object(x.sum())
    (ONNXProgram(x: float64[x_dim0] -> output_0: float64[]), ONNXProgram(x: float64[batch] -> ...
    """
    from pytensor.compile.executor import Function

    from pytensor_onnx import export_function_onnx, export_onnx

    if any(isinstance(f, Function) for f in (value, getattr(value, "f", None))):
        return export_function_onnx(value, **options)
    pymc = sys.modules.get("pymc")
    if pymc is not None and isinstance(value, pymc.Model):
        from pytensor_onnx.pymc import export_model

        return export_model(value, **options)
    if isinstance(value, tuple | list) and len(value) == 2:
        return export_onnx(*value, **options)
    if type(value).__module__.partition(".")[0] not in _PACKAGES:
        raise ArgumentError(
            f"an object of type {type(value).__name__} has no graph: name a tuple of inputs and "
            "outputs, an output, a compiled function, a PyMC model or a network of pytensor-ml"
        )
    return export_onnx(value, **options)


@dataclass(frozen=True)
class ListedNode:
    """A node of a graph, of a subgraph or of a function.

    Attributes
    ----------
    name, operator
        Name and operator, which has its domain unless that is ONNX's own.
    inputs, outputs
        Names of the values; an input that is left out is empty.
    attributes
        Attributes as texts.
    """

    name: str
    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, str]

    def __str__(self) -> str:
        """Write the node as an assignment."""
        attributes = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        call = f"{self.operator}({', '.join(self.inputs)})"
        return f"{', '.join(self.outputs)} = {call}{f' [{attributes}]' if attributes else ''}"


@dataclass(frozen=True)
class ListedFunction:
    """A model-local function: its name, the names of its parameters and results, its nodes."""

    name: str
    inputs: list[str]
    outputs: list[str]
    nodes: list[ListedNode]

    def lines(self) -> Iterator[str]:
        """Yield the lines of a listing."""
        yield f"{self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"
        yield from (f"  {node}" for node in self.nodes)


def listed_nodes(model: ir.Model) -> list[ListedNode]:
    """Return the nodes of the main graph, in order, each before the nodes of its subgraphs.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> x = ir.val("x")
    >>> node = ir.node("LeakyRelu", [x], {"alpha": 0.5}, num_outputs=1)
    >>> node.outputs[0].name = "y"
    >>> graph = ir.Graph([x], node.outputs, nodes=[node])
    >>> [str(listed) for listed in listed_nodes(ir.Model(graph, ir_version=10))]
    ['y = LeakyRelu(x) [alpha=0.5]']
    """
    from pytensor_onnx.graph.traversal import all_nodes

    return list(map(_listed, all_nodes(model.graph)))


def listed_functions(model: ir.Model) -> list[ListedFunction]:
    """Return the model-local functions with their nodes."""
    from pytensor_onnx.graph.traversal import all_nodes

    return [
        ListedFunction(
            f"{function.domain}::{function.name}",
            _names(function.inputs),
            _names(function.outputs),
            list(map(_listed, all_nodes(function))),
        )
        for function in model.functions.values()
    ]


def _listed(node: ir.Node) -> ListedNode:
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    attributes = {str(k): _text(v) for k, v in node.attributes.items()}
    return ListedNode(
        str(node.name or ""), operator, _names(node.inputs), _names(node.outputs), attributes
    )


def _names(values: Iterable[ir.Value | None]) -> list[str]:
    return ["" if value is None else str(value.name) for value in values]


def _text(attribute: ir.Attr) -> str:
    """Return the value of an attribute; tensors and graphs by their kind alone."""
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}"
    kind = attribute.type.name
    return f"<{kind.lower()}>" if "TENSOR" in kind or "GRAPH" in kind else str(attribute.value)
