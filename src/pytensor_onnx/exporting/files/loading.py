"""Load files as programs, without the PyTensor graph that they were made of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.type import Type
from pytensor.tensor.type import TensorType

from pytensor_onnx.encodings import Boundary
from pytensor_onnx.encodings.registry import encoding_named
from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.program.weight_files import give_weights
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.requests.signature import RETURNS, Signature
from pytensor_onnx.exporting.requests.state_files import State, read_state, values_of_text
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.results import Verification
from pytensor_onnx.exporting.verification.sampling import ATTEMPTS, Sample, known_sizes, sample
from pytensor_onnx.exporting.verification.verification import checked_session
from pytensor_onnx.graph.model_reading import read_model, state_pairs, stored_mapping
from pytensor_onnx.graph.weights import is_large, weight_files
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.running.session import Session, SessionOptions
from pytensor_onnx_scoring.problems import is_interruption

_NO_GRAPH = "a file has no PyTensor graph"


def load(
    path: str | os.PathLike,
    *,
    state: str | os.PathLike | None = None,
    weights: Mapping[str, Any] | None = None,
    providers: str | Sequence[str] = "cpu",
    session_options: SessionOptions | None = None,
) -> ONNXProgram:
    """Load an ONNX file as a program.

    The program of a file that this package made takes and returns the values of the exported
    program: names, state, complex numbers, sparse matrices, generators. Files of other exporters
    are programs of arrays, if all inputs are numeric tensors, and return a single output by itself.

    Without the PyTensor graph, `ONNXProgram.verify` compares nothing: it checks the model, loads it
    and runs it on sampled inputs. `ONNXProgram.report` lacks the changes for the target, and
    `ONNXProgram.profile` is not available.

    Parameters
    ----------
    path
        An ONNX file; its weights may be in a file beside it.
    state
        A file of `ONNXProgram.save_state`, where the model has no values of its state, or to go on
        from other values.
    weights
        Arrays by name for a file of ``program.save(path, include_initializers=False)``: those of
        ``program.weights``. Others are refused, as the file may have constants computed from them.
    providers, session_options
        As in `compile_onnx`.

    Raises
    ------
    PyTensorONNXError
        If the file is no ONNX model, lacks weights or the values of its state, or has an input
        that is no tensor of numbers.

    Examples
    --------
    >>> import tempfile, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, load
    >>> x = pt.zvector("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = export_onnx([x], x * x, folder + "/square.onnx")
    ...     square = load(folder + "/square.onnx")
    >>> square([1.0, 2.0j])
    array([ 1.+0.j, -4.+0.j])
    """
    model = _read(Path(path))
    give_weights(model, weights, Path(path))
    told = stored_mapping(model.metadata_props, "encodings")
    names = state_pairs(model)
    for value in [v for v in model.graph.inputs if v.is_initializer() and v.name not in names]:
        model.graph.inputs.remove(value)
    states = _states(model, names, state, Path(path))
    inputs = [v for v in model.graph.inputs if v.name not in names]
    outputs = model.graph.outputs[: len(model.graph.outputs) - len(states)]
    input_names, given = _values(inputs, told.get("inputs", {}))
    _, returned = _values(outputs, told.get("outputs", {}))
    of_state = [v for v in model.graph.inputs if v.name in names]
    variables = [_tensor_type(value)() for value in (*inputs, *of_state)]
    graph = FunctionGraph(variables, [], clone=False)
    is_single = len(returned) == 1 and RETURNS not in model.metadata_props
    signature = Signature(Boundary(tuple(given)), Boundary(tuple(returned)), input_names, is_single)
    conversion = Conversion(model, graph, graph, signature, tuple(states))
    return LoadedProgram(conversion, providers, session_options)


class LoadedProgram(ONNXProgram):
    """A program of a file, whose PyTensor graph is not known; see `load`."""

    def verify(
        self,
        inputs: Sequence[Any] | None = None,
        *,
        state: Mapping[str, np.ndarray] | None = None,
        values: bool = False,
    ) -> ONNXProgram:
        """Check the model, load it, and run it on given or sampled inputs; compare nothing.

        Parameters and errors are those of `ONNXProgram.verify`.
        """
        if values:
            raise PyTensorONNXError(f"values cannot be compared: {_NO_GRAPH}")
        session, note = checked_session(self.model, lambda: self.session_of_file)
        states = {s.name: (state or {}).get(s.name, s.value) for s in self.conversion.states}
        sample = self._run_once(session, inputs, states)
        self.verification = Verification(
            "run only", samples=(str(sample),), omitted=_NO_GRAPH, note=note
        )
        return self

    def _run_once(
        self, session: Session, inputs: Sequence[Any] | None, states: Mapping[str, np.ndarray]
    ) -> Sample:
        if inputs is not None:
            given = Sample(self.conversion.arrays(inputs), [str(v.name) for v in self.inputs])
            session.run({**dict(zip(given.names, given.arrays, strict=True)), **states})
            return given
        sizes = known_sizes(self.conversion.state_inputs, list(states.values()))
        reason = ""
        for attempt in ATTEMPTS:
            drawn = sample(self.inputs, attempt, sizes=sizes)
            arrays = self.conversion.signature.inputs.sampled(drawn.arrays)
            try:
                session.run({**dict(zip(drawn.names, arrays, strict=True)), **states})
            except Exception as error:
                if is_interruption(error):
                    raise
                reason = reason or str(error)
            else:
                return Sample(arrays, drawn.names, drawn.values)
        raise VerificationError(f"the model runs on no sampled inputs, give inputs: {reason}")

    def profile(self, /, *arguments: Any, calls: int = 10, **named: Any) -> NoReturn:
        """Raise, as times belong to nodes of the PyTensor graph, which a file does not have."""
        raise PyTensorONNXError(
            "a loaded program has no PyTensor graph to profile: load(path, session_options="
            "SessionOptions(profile_prefix='profile')) writes the times of the runtime's nodes"
        )


def _read(file: Path) -> ir.Model:
    model = read_model(file)
    weight_files(model, file)
    return model if is_large(model) else ir.external_data.load_to_model(model)


def _states(
    model: ir.Model, names: Mapping[str, str], path: str | os.PathLike | None, file: Path
) -> list[State]:
    """Return the states in the order of the inputs, with the values of the model or of a file."""
    stored_values = model.metadata_props.get("state_values")
    values = {} if stored_values is None else values_of_text(stored_values)
    values |= {} if path is None else read_state(path)
    states, missing = [], []
    for value in model.graph.inputs:
        name = str(value.name)
        if name not in names:
            continue
        stored = value.const_value
        if name in values:
            states.append(State(name, names[name], values[name]))
        elif stored is not None:
            states.append(State(name, names[name], np.array(stored.numpy())))
        else:
            missing.append(describe(value))
    if missing:
        raise PyTensorONNXError(
            f"{file} has no values of its state ({', '.join(missing)}): give state=, the file that "
            "state_path or program.save_state wrote"
        )
    return states


def _values(tensors: Sequence[ir.Value], told: Mapping[str, Any]) -> tuple[list[str], list[Type]]:
    """Return names and types of the values that tensors stand for."""
    owner = {part: name for name, entry in told.items() for part in entry["parts"].values()}
    types: dict[str, Type] = {}
    known = {str(value.name): value for value in tensors}
    for tensor, value in known.items():
        name = owner.get(tensor)
        if name is None:
            types[tensor] = _tensor_type(value)
        elif name not in types:
            parts = {part: _tensor_type(known[t]) for part, t in told[name]["parts"].items()}
            types[name] = encoding_named(told[name]["encoding"]).type_of(parts, told[name])
    return list(types), list(types.values())


def _tensor_type(value: ir.Value) -> TensorType:
    try:
        if not isinstance(value.type, ir.TensorType):
            raise TypeError("it is no tensor")
        dims = dims_of(value)
        if dims is None:
            raise TypeError("its rank is not known")
        shape = [dim if isinstance(dim, int) else None for dim in dims]
        return TensorType(value.type.dtype.numpy().name, shape=tuple(shape))
    except TypeError as error:
        raise PyTensorONNXError(f"{value.name} cannot be given or returned: {error}") from None
