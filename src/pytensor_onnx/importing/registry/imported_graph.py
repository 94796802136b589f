"""The PyTensor graph of an ONNX model, and how it is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import graph_inputs, walk
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import (
    ArgumentError,
    Problem,
    UnsupportedCase,
    UnsupportedOpError,
    UnsupportedTypeError,
    did_you_mean,
)
from pytensor_onnx.graph.file_parts import LABELS, MAPS, ElementsOf
from pytensor_onnx.importing.registry.axis_sizes import name_axes
from pytensor_onnx.importing.registry.import_problems import (
    helpful_arguments,
    numbers_of_strings,
    unknown_operators,
)
from pytensor_onnx.importing.registry.imported_strings import (
    StringEncoder,
    numbered_labels,
    without_strings,
)
from pytensor_onnx.importing.registry.known_values import not_known
from pytensor_onnx.importing.registry.model_source import ModelSource, Trainable
from pytensor_onnx.importing.registry.model_walk import ModelWalk, tensor_type
from pytensor_onnx.importing.registry.narrow_types import NARROW, marked, wide_array
from pytensor_onnx.importing.registry.reading import check_names, cut, in_training, read_model
from pytensor_onnx.importing.registry.sequences import (
    DividedList,
    StackedList,
    VariableList,
    VariableSequence,
    flat,
)
from pytensor_onnx.operators.dims import AS_IN_FILE, BROADCASTS, ENCODER
from pytensor_onnx.progress import working
from pytensor_onnx.user_code import trace_of_caller

_MOST_VARIABLES = 100
"""Elements of a sequence up to which an output is a list of variables."""


@working("importing")
def from_onnx(
    model: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    trainable: Trainable = False,
    training: bool = False,
    shapes: Mapping[str, Any] | None = None,
) -> ImportedGraph:
    """Import an ONNX model as a PyTensor graph.

    The graph is one of PyTensor's own operations, and of `pytensor_onnx.nn`: it is differentiated,
    compiled by every mode, part of PyMC models, and exported again.

    Parameters
    ----------
    model
        Path of a file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or an
        `ONNXProgram`.
    inputs
        Values or variables in place of inputs, by name. A graph of PyTensor knows its axes and
        ranks: where an operator takes axes or another number as an input that decides these, its
        value is given here, and so is the list of variables of a sequence, or one variable with its
        elements along the first axis, or None for an optional value that is missing. A variable
        makes the graph one of it. A name of a value within the file, as of the result of a layer,
        cuts the graph there: what computes it is left out.
    outputs
        Names of the outputs, which may be values within the file. Nodes that they do not need are
        left out. All outputs of the file if None.
    trainable
        Which weights become shared variables: all arrays of floats with at least one axis, but
        running statistics of BatchNormalization; the arrays whose names match patterns, such as
        ``["head.*", "*bias"]``, where ``"!conv1.*"`` freezes arrays, and later patterns overrule
        earlier ones; or a function of name and array that returns whether an array is trained.
    training
        Whether layers of BatchNormalization take the statistics of the batch. Their running
        statistics are then shared variables, whose next values are in ``updates``, and
        ``graph.inference()`` is the graph that takes them.
    shapes
        Sizes of axes that the file leaves open: by name of the axis, ``{"batch": 1}``, or of the
        input, ``{"x": (1, None)}``. Axes broadcast only if their size is known to be one.

    Returns
    -------
    ImportedGraph
        With ``inputs``, ``outputs``, ``weights`` and ``state``; a call applies it to other
        variables. An output that is a sequence is a list of variables, or one variable with the
        elements along its first axis if their number is open.

    Raises
    ------
    UnsupportedOpError
        If nodes cannot be imported; the message lists all of them with the reasons.
    ArgumentError
        If a name is not one of the model, or a variable does not fit its input.
    PyTensorONNXError
        If the file is no ONNX model, or parts of it are missing.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, from_onnx
    >>> x = pt.vector("x", dtype="float32")
    >>> graph = from_onnx(export_onnx([x], pt.tanh(x) * 2, output_names=["y"]))
    >>> graph.inputs, graph.outputs
    ([x], [y])
    >>> graph.outputs[0].eval({graph.inputs[0]: np.float32([0, 1])})
    array([0.       , 1.5231884], dtype=float32)
    """
    if isinstance(outputs, str):
        raise ArgumentError(f"outputs is a text: give a list, [{outputs!r}]")
    fixed = dict(inputs or {})
    part = cut(read_model(model), fixed, outputs)
    part, labels = numbered_labels(part)
    part, encoder = without_strings(part, fixed, outputs)
    part.meta[LABELS] = labels
    source = ModelSource(in_training(part) if training else part, trainable, dict(shapes or {}))
    built = build_graph(source, fixed, has_advice=True)
    source.check_patterns()
    graph = ImportedGraph(
        built.inputs,
        built.outputs,
        source.weights,
        source.state,
        built.updates,
        built.dynamic_axes,
        source,
        fixed,
        encoder,
    )
    graph._written, graph.labels = part, labels
    return graph


@dataclass
class ImportedGraph:
    """A PyTensor graph made from an ONNX model; see `from_onnx`.

    Attributes
    ----------
    inputs, outputs
        Variables with the names, dtypes and sizes of the file. Inputs that were given variables
        or values are not listed.
    weights
        The constants of the file by name: constants, or shared variables where they are trainable.
    state
        Shared variables for the state of a file that `pytensor_onnx.export_onnx` wrote with
        updates, by name.
    updates
        Their next values, and those of the generators of random operators.
    dynamic_axes
        Names of the axes whose sizes are open, as `pytensor_onnx.export_onnx` takes them.
    labels
        Labels of classifiers that are strings in the file, by output, which has their positions.
    """

    inputs: list[TensorVariable]
    outputs: list[TensorVariable]
    weights: dict[str, Variable]
    state: dict[str, SharedVariable]
    updates: dict[SharedVariable, Variable]
    dynamic_axes: dict[str, dict[int, str]]
    _source: ModelSource = field(repr=False)
    _fixed: dict[str, Any] = field(repr=False)
    _encoder: StringEncoder | None = field(default=None, repr=False)
    _written: ir.Model | None = field(default=None, repr=False)
    labels: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [] if self._encoder is None else self._encoder.outputs
        for variable in self.inputs:
            if variable.name in numbers:
                setattr(variable.tag, ENCODER, self._encoder)

    def inference(self) -> ImportedGraph:
        """Return the graph as the file has it, with the weights and statistics of this one.

        Examples
        --------
        >>> import numpy as np, onnx
        >>> from onnx import numpy_helper
        >>> text = (
        ...     '<ir_version: 10, opset_import: ["": 21]> m (float[n, 2] x) => (float[n, 2] y) '
        ...     "{ y = BatchNormalization(x, scale, bias, mean, var) }"
        ... )
        >>> model = onnx.parser.parse_model(text)
        >>> numbers = {"scale": 1, "bias": 0, "mean": 0, "var": 1}
        >>> arrays = {name: np.full(2, number, "float32") for name, number in numbers.items()}
        >>> model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
        >>> graph = from_onnx(model, trainable=["scale", "bias"], training=True)
        >>> list(graph.state), graph.inference().updates
        (['mean', 'var'], {})
        """
        if self._written is None or self._written is self._source.model:
            return self
        source = ModelSource(
            self._written,
            self._source.trainable,
            self._source.shapes,
            {**self._source.weights, **self._source.state},
        )
        built = build_graph(source, self._fixed)
        return ImportedGraph(
            built.inputs,
            built.outputs,
            source.weights,
            source.state,
            built.updates,
            built.dynamic_axes,
            source,
            self._fixed,
            self._encoder,
            self._written,
            self.labels,
        )

    def encode(self, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the numbers that the file makes of columns of strings, by name of the input.

        Parameters
        ----------
        columns
            Strings by name of the input of the file, such as the columns of a table.

        Raises
        ------
        ArgumentError
            If the file takes no strings, or a column is missing.

        Examples
        --------
        >>> import onnx, warnings
        >>> keys = 'keys_strings=["Oslo", "Rome"], values_floats=[1.5, 2.5]'
        >>> head = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>'
        >>> body = "(string[n] city) => (float[n] y) {"
        >>> body += f"place = ai.onnx.ml.LabelEncoder <{keys}>(city) y = Neg(place) }}"
        >>> with warnings.catch_warnings(action="ignore"):
        ...     graph = from_onnx(onnx.parser.parse_model(f"{head} m {body}"))
        >>> graph.inputs, graph.encode({"city": ["Rome", "Oslo"]})
        ([place], {'place': array([2.5, 1.5], dtype=float32)})
        """
        if self._encoder is None:
            raise ArgumentError("the file takes no strings that are encoded")
        return self._encoder(columns)

    def __call__(
        self, *arguments: Any, vectorize: bool = False, **named: Any
    ) -> TensorVariable | list[TensorVariable]:
        """Return the outputs for other variables or values, with the same weights.

        Parameters
        ----------
        arguments, named
            Variables or arrays in place of the inputs, in order or by name.
        vectorize
            Whether arguments may have further axes in front, over which the graph is applied.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx, from_onnx
        >>> x = pt.vector("x")
        >>> total = from_onnx(export_onnx([x], x.sum()))
        >>> total(x=pt.constant([1.0, 2.0])).eval()
        array(3.)
        >>> total(pt.constant([[1.0, 2.0], [3.0, 4.0]]), vectorize=True).eval()
        array([3., 7.])
        """
        given = self._by_name(arguments, named)
        if vectorize:
            by_name = {str(v.name): v for v in self.inputs}
            outputs = vectorize_graph(
                self.outputs, {by_name[name]: pt.as_tensor(v) for name, v in given.items()}
            )
        else:
            outputs = build_graph(self._source, {**self._fixed, **given}).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def _by_name(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = [str(v.name) for v in self.inputs]
        if len(arguments) > len(names):
            raise ArgumentError(f"the graph has {len(names)} inputs; got {len(arguments)}")
        given = dict(zip(names, arguments, strict=False))
        for name, value in named.items():
            if name not in names:
                raise ArgumentError(
                    f"the graph has no input {name}: "
                    + did_you_mean(name, names, f"it has {', '.join(names)}")
                )
            if name in given:
                raise ArgumentError(f"the input {name} is given twice")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentError(f"no value is given for the inputs {', '.join(missing)}")
        return given


@dataclass(frozen=True)
class BuiltGraph:
    """A graph for some inputs; see `ImportedGraph`."""

    inputs: list[TensorVariable]
    outputs: list[TensorVariable]
    updates: dict[SharedVariable, Variable]
    dynamic_axes: dict[str, dict[int, str]]


def build_graph(
    source: ModelSource, given: Mapping[str, Any], *, has_advice: bool = False
) -> BuiltGraph:
    """Import the nodes of a model, with variables or values in place of some inputs.

    Parameters
    ----------
    source, given
        The model, and the variables and values by name of the input.
    has_advice
        Whether an error tells values and sizes with which the model is imported, if it can.

    Raises
    ------
    UnsupportedOpError, UnsupportedTypeError
        If nodes or inputs cannot be imported.
    ArgumentError
        If there is no such input or axis, or a variable does not fit.
    """
    graph = source.model.graph
    check_names(given, [str(v.name) for v in graph.inputs], "input")
    check_names(source.shapes, _names_of_sizes(graph), "input or axis")
    problems: list[Problem] = []
    environment: dict[Any, Variable] = {}
    inputs: list[TensorVariable] = []
    free: list[ir.Value] = []
    for value in graph.inputs:
        name = str(value.name)
        try:
            if name in given:
                environment[value] = marked(_given(value, given[name]), _declared(value))
            elif name in source.state_outputs:
                environment[value] = _state(source, value)
            elif not value.is_initializer():
                variable = marked(_input_type(value, source.shapes)(name), _declared(value))
                setattr(variable.tag, BROADCASTS, True)
                environment[value] = variable
                inputs.append(variable)
                free.append(value)
        except UnsupportedCase as problem:
            type_ = str(value.type or "no type")
            hint = problem.hint
            if value.dtype == ir.DataType.STRING and (numbers := numbers_of_strings(graph)):
                given_values = ", ".join(f"{number!r}: variable" for number in numbers)
                hint = f"give the numbers of the strings: from_onnx(model, {{{given_values}}})"
            problems.append(Problem(type_, name, "", problem.reason, hint, is_type=True))
    name_axes(
        [
            (v, [getattr(d, "value", None) for d in f.shape or ()])
            for v, f in zip(inputs, free, strict=True)
        ]
    )
    model_walk = ModelWalk(
        source.model.functions, source.constant, problems, source.model.opset_imports
    )
    with pytensor.config.change_flags(cxx="", traceback__limit=0):
        results = model_walk.run(graph, environment)
    _set_traces([v for v in flat(results) if isinstance(v, Variable)])
    unknown = []
    if problems or model_walk.unknown:
        unknown = unknown_operators(source.model, model_walk.unknown)
    way_out = ""
    if has_advice and problems and not unknown:
        way_out = _helpful_arguments(source, given, any("from_onnx(" in p.hint for p in problems))
    _raise([*unknown, *problems, *_divided(graph, results)], way_out)
    owner = {output: name for name, output in source.state_outputs.items()}
    outputs: list[Any] = []
    updates: dict[SharedVariable, Variable] = {}
    for value, result in zip(graph.outputs, results, strict=True):
        if str(value.name) in owner:
            updates[source.state[owner[str(value.name)]]] = result
        else:
            outputs.append(_named(result, str(value.name), inputs))
    updates.update(_generators(flat(results)))
    if not any(isinstance(v, Variable) for v in given.values()):
        meta = source.model.meta
        _note_file(outputs, {**meta.get(MAPS, {}), **meta.get(LABELS, {})}, graph)
    return BuiltGraph(inputs, outputs, updates, _dynamic_axes(free))


def _divided(graph: ir.Graph, results: Sequence[Any]) -> list[Problem]:
    """Return the outputs that are sequences of parts, which may have other sizes."""
    found = []
    for value, result in zip(graph.outputs, results, strict=True):
        if isinstance(result, DividedList):
            reason = "it is a sequence of parts whose number must be known at import"
            case = not_known(reason, result.array.shape[result.axis], result.ends)
            found.append(Problem("output", str(value.name), "", case.reason, case.hint))
    return found


def _note_file(outputs: Sequence[Any], maps: Mapping[str, Any], graph: ir.Graph) -> None:
    """Note that outputs are those of a file, with the nodes that make maps or strings of them."""
    sequences = {str(v.name) for v in graph.outputs if isinstance(v.type, ir.SequenceType)}
    for variable in outputs:
        if isinstance(variable, Variable):
            name = str(variable.name)
            part = ElementsOf(name) if name in sequences else maps.get(name, True)
            setattr(variable.tag, AS_IN_FILE, part)
        elif isinstance(variable, list):
            for i, element in enumerate(variable):
                name = str(element.name).removesuffix(f"_{i}")
                setattr(element.tag, AS_IN_FILE, ElementsOf(name, i, len(variable)))


def _set_traces(results: Sequence[Variable]) -> None:
    """Give all new variables the trace of the user's call, which the walk does not look up."""
    trace = trace_of_caller()

    def expand(variable: Variable) -> Sequence[Variable] | None:
        if variable.owner is None or getattr(variable.tag, "trace", None):
            return None
        variable.tag.trace = trace
        return variable.owner.inputs

    for _ in walk(results, expand):
        pass


def _names_of_sizes(graph: ir.Graph) -> list[str]:
    names = [str(v.name) for v in graph.inputs]
    dims = [d.value for v in graph.inputs for d in (v.shape or ()) if isinstance(d, ir.SymbolicDim)]
    return [*names, *dict.fromkeys(d for d in dims if d)]


def _given(value: ir.Value, variable: Any) -> Any:
    """Return a variable or value in place of an input, in its dtype."""
    name, type_ = str(value.name), None
    if variable is None and isinstance(value.type, ir.OptionalType):
        return None
    declared = value.type.elem_type if isinstance(value.type, ir.OptionalType) else value.type
    if isinstance(declared, ir.SequenceType):
        if isinstance(variable, Variable):
            return StackedList(variable)
        return VariableList(tuple(map(pt.as_tensor, variable)))
    if isinstance(value.type, ir.OptionalType):
        value = ir.Value(name=name, type=declared, shape=value.shape)
    if value.type is not None and value.shape is not None:
        type_ = tensor_type(value)
    if isinstance(variable, Variable) and _declared(value) is not None:
        variable = pt.tensor_copy(variable)  # the mark of its type is not one of the user's
    if not isinstance(variable, Variable):
        dtype = None if type_ is None else type_.dtype
        array = wide_array(np.asarray(variable))
        if dtype and array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ArgumentError(f"the input {name} is of {dtype}; got an array of {array.dtype}")
        variable = pt.constant(array.astype(dtype) if dtype else array, name=name)
    if type_ is None:
        return variable
    if variable.type.ndim != type_.ndim:
        raise ArgumentError(
            f"the input {name} has {type_.ndim} axes; got {variable.type}: graph(..., "
            "vectorize=True) applies a graph over further axes"
        )
    for axis, (known, own) in enumerate(zip(type_.shape, variable.type.shape, strict=True)):
        if known is not None and own is not None and known != own:
            raise ArgumentError(f"axis {axis} of the input {name} has the size {known}, not {own}")
    return variable if variable.type.dtype == type_.dtype else variable.astype(type_.dtype)


def _state(source: ModelSource, value: ir.Value) -> SharedVariable:
    name = str(value.name)
    if name not in source.state:
        if value.const_value is None:
            raise UnsupportedCase(
                "the file has no value of this state", "give it, in from_onnx(model, inputs=...)"
            )
        array = np.array(value.const_value.numpy())
        source.state[name] = pytensor.shared(array, name=name)
    return source.state[name]


def _declared(value: ir.Value) -> ir.DataType | None:
    """Return the type of few bits of an input, None for other types."""
    dtype = value.type.dtype if isinstance(value.type, ir.TensorType) else None
    return dtype if dtype in NARROW else None


def _input_type(value: ir.Value, shapes: Mapping[str, Any]) -> TensorType:
    """Return the type of an input with the sizes that the user gave."""
    type_ = tensor_type(value)
    dims = value.shape or ()
    sizes = [
        shapes.get(d.value) if isinstance(d, ir.SymbolicDim) and d.value else known
        for d, known in zip(dims, type_.shape, strict=True)
    ]
    given = shapes.get(str(value.name))
    if given is not None:
        if len(given) != len(sizes):
            raise ArgumentError(f"the input {value.name} has {len(sizes)} axes; got {given}")
        sizes = [own if size is None else size for own, size in zip(sizes, given, strict=True)]
    return TensorType(type_.dtype, tuple(sizes))


def _named(result: Any, name: str, inputs: Sequence[Variable]) -> Any:
    """Return an output under its name; a copy where a variable has another name.

    A sequence of an open number of elements is the array of them.
    """
    if isinstance(result, VariableList):
        return [_named(v, f"{name}_{i}", inputs) for i, v in enumerate(result.items)]
    if isinstance(result, VariableSequence):
        rows, count = result.stacked().rows, result.count
        if isinstance(count, int) and count <= _MOST_VARIABLES:
            return [_named(rows[i], f"{name}_{i}", inputs) for i in range(count)]
        result = rows
    if result is None:
        return None
    if result.name not in (None, name) or result in inputs or result.owner is None:
        result = pt.tensor_copy(result)
    result.name = name
    return result


def _dynamic_axes(values: Sequence[ir.Value]) -> dict[str, dict[int, str]]:
    named = {
        str(v.name): {
            axis: d.value
            for axis, d in enumerate(v.shape or ())
            if isinstance(d, ir.SymbolicDim) and d.value
        }
        for v in values
    }
    return {name: axes for name, axes in named.items() if axes}


def _generators(outputs: Sequence[Variable]) -> dict[SharedVariable, Variable]:
    """Return the next states of the generators that random operators made."""
    return {
        v: v.default_update
        for v in graph_inputs(outputs)
        if isinstance(v, SharedVariable) and getattr(v, "default_update", None) is not None
    }


def _helpful_arguments(source: ModelSource, given: Mapping[str, Any], with_sizes: bool) -> str:
    """Return a call with which the model is imported, empty if none is found."""

    def is_imported(inputs: dict[str, Any], shapes: dict[str, Any]) -> bool:
        try:
            build_graph(ModelSource(source.model, False, shapes), inputs)
        except Exception:
            return False
        return True

    return helpful_arguments(source.model, given, source.shapes, is_imported, with_sizes=with_sizes)


def _raise(problems: Sequence[Problem], way_out: str) -> None:
    if not problems:
        return
    unique = list(dict.fromkeys(problems))
    error = UnsupportedTypeError if all(p.is_type for p in unique) else UnsupportedOpError
    count = "1 part" if len(unique) == 1 else f"{len(unique)} parts"
    listing = "\n".join(map(str, unique))
    advice = f"\nIt is imported for such values and sizes: {way_out}" if way_out else ""
    raised = error(f"{count} of the model cannot be imported to PyTensor:\n{listing}{advice}")
    raised.problems, raised.way_out = tuple(unique), way_out
    raise raised
