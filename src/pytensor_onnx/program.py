"""`ONNXProgram`: an exported model that can be called, saved, verified and reported on."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import ScalarType
from pytensor.scan.op import Scan

from pytensor_onnx.errors import InputError
from pytensor_onnx.inference import dims_of
from pytensor_onnx.origins import Lines
from pytensor_onnx.paths import check_file
from pytensor_onnx.random import state_of
from pytensor_onnx.session import Session, SessionOptions
from pytensor_onnx.state_files import write_state

if TYPE_CHECKING:
    from pytensor.compile.debug.profiling import ProfileStats

EXTERNAL_DATA_THRESHOLD = 2**31 - 2**20


@dataclass
class State:
    """A shared variable that the graph updates: an input with a default, and an output.

    Attributes
    ----------
    name, next_name
        Names of the input and of the output.
    value
        Value at export.
    """

    name: str
    next_name: str
    value: np.ndarray


class ONNXProgram:
    """An exported model.

    Called with one array for each input, in order or by name, it returns what the PyTensor function
    would, and keeps the state that the graph updates. `export_onnx` makes it.

    Several threads may call it. A copy, or a pickle, has a state of its own, and opens a session of
    its own when it is first called.

    Attributes
    ----------
    model : onnx_ir.Model
        The model.
    state : dict of str to ndarray
        Present values of the variables that the graph updates.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        reference: FunctionGraph,
        rewritten: FunctionGraph,
        states: Sequence[State],
        returns_single: bool,
        failures: Mapping[str, Exception],
        owners: Mapping[str, Apply],
        lines: Lines,
        values: Mapping[Variable, ir.Value],
        changes: Sequence[str],
        target: str,
        providers: str | Sequence[str] = "cpu",
        session_options: SessionOptions | None = None,
    ) -> None:
        self.model = model
        self.state = {s.name: s.value for s in states}
        self.verification = "not verified"
        self.changes = list(changes)
        self.target = target
        self.providers = providers
        self.session_options = session_options
        self._reference = reference
        self._rewritten = rewritten
        self._states = list(states)
        self._returns_single = returns_single
        self._failures = dict(failures)
        self._lines = dict(lines)
        self._owners = dict(owners)
        self._values = dict(values)
        results = reference.outputs[: len(reference.outputs) - len(states)]
        self._scalars = [i for i, v in enumerate(results) if isinstance(v.type, ScalarType)]
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: neither the session nor values of the model itself."""
        own = (
            "session",
            "model",
            "state",
            "_reference",
            "_rewritten",
            "_values",
            "_owners",
            "_lock",
        )
        with self._lock:
            values = dict(self.state)
        names = {variable: value.name for variable, value in self._values.items()}
        buffer = io.BytesIO()
        _GraphPickler(buffer).dump((self._reference, self._rewritten, self._owners, names))
        return {
            **{k: v for k, v in vars(self).items() if k not in own},
            "state": values,
            "model": self.proto.SerializeToString(),
            "graphs": buffer.getvalue(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes of another program."""
        self._reference, self._rewritten, self._owners, names = pickle.loads(state.pop("graphs"))
        vars(self).update(state)
        self.model = ir.from_proto(onnx.ModelProto.FromString(state["model"]))
        graph = self.model.graph
        named = {v.name: v for v in (*graph.inputs, *graph.initializers.values())}
        named.update((v.name, v) for node in graph for v in node.outputs)
        self._values = {v: named[name] for v, name in names.items() if name in named}
        self._lock = threading.Lock()

    @property
    def proto(self) -> onnx.ModelProto:
        """The model as a protobuf message."""
        return ir.to_proto(self.model)

    @cached_property
    def session(self) -> Session:
        """The model loaded into ONNX Runtime."""
        return self._open_session(self.session_options)

    def _open_session(self, options: SessionOptions | None) -> Session:
        return Session(
            self.model,
            providers=self.providers,
            options=options,
            failures=self._failures,
            lines=self._lines,
        )

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs that a caller gives, without the state."""
        return [v for v in self.model.graph.inputs if v.name not in self.state]

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the model.

        Parameters
        ----------
        arguments
            One array, or what converts to one without loss, for each input in order.
        named
            The same by the names of the inputs, after those given in order.

        Returns
        -------
        ndarray or list of ndarray
            The outputs; the array itself where a single variable was exported.

        Raises
        ------
        InputError
            If an argument does not fit its input, is missing, or is given twice.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import compile_onnx
        >>> x, y = pt.vector("x"), pt.scalar("y")
        >>> program = compile_onnx([x, y], x * y)
        >>> program([1.0, 2.0], y=3.0)
        array([3., 6.])
        """
        feed = self._feed(arguments, named)
        if self._states:
            with self._lock:
                return self._run(feed)
        return self._run(feed)

    def _run(self, feed: Mapping[str, np.ndarray]) -> Any:
        results = self.session.run({**feed, **self.state})
        n_results = len(results) - len(self._states)
        for state, value in zip(self._states, results[n_results:], strict=True):
            self.state[state.name] = value
        for i in self._scalars:
            results[i] = results[i][()]
        return results[0] if self._returns_single else results[:n_results]

    def profile(self, /, *arguments: Any, calls: int = 10, **named: Any) -> ProfileStats:
        """Run the model some times, and return the time of each node of the PyTensor graph.

        The state stays as it is. `SessionOptions` with ``profile_prefix`` makes the runtime write
        the times of its own nodes instead, when `Session.runtime` calls ``end_profiling()``.

        Parameters
        ----------
        arguments, named
            As in a call.
        calls
            Number of runs, after one that is not counted.

        Returns
        -------
        pytensor.compile.debug.profiling.ProfileStats
            PyTensor's statistics, as of a function compiled with ``profile=True``: ``summary()``
            prints tables by class, operation and node, ``op_time()`` returns seconds.

        Examples
        --------
        >>> import numpy as np, pytensor.tensor as pt
        >>> from pytensor_onnx import compile_onnx
        >>> x = pt.matrix("x")
        >>> program = compile_onnx([x], pt.tanh(x @ x).sum())
        >>> stats = program.profile(np.ones((50, 50)), calls=3)
        >>> sorted(f"{op}: {count}" for op, count in stats.op_callcount().items())
        ['Dot: 3', 'Sum{axes=None}: 3', 'Tanh: 3']
        """
        from pytensor_onnx.profiling import profile_runs

        feed = {**self._feed(arguments, named), **self.state}
        return profile_runs(
            self._open_session, self.session_options, self._rewritten, self._owners, feed, calls
        )

    def _feed(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if named:
            arguments = self._in_order(arguments, named)
        return dict(zip((str(v.name) for v in self.inputs), self._check(arguments), strict=True))

    def _in_order(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return all arguments in the order of the inputs."""
        inputs = self.inputs
        names = [str(v.name) for v in inputs]
        problems = [
            f"{name} is a part of the state: set program.state[{name!r}]"
            if name in self.state
            else f"there is no input {name!r}"
            for name in named
            if name not in names
        ]
        problems += [f"{n} is given twice" for n in names[: len(arguments)] if n in named]
        problems += [f"{n} is missing" for n in names[len(arguments) :] if n not in named]
        if problems or len(arguments) > len(names):
            listing = ", ".join(map(describe, inputs)) or "none"
            problems = problems or [f"{len(arguments)} were given in order"]
            raise InputError(f"{'; '.join(problems)} (the inputs are {listing})")
        return (*arguments, *(named[name] for name in names[len(arguments) :]))

    def _check(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """Return the arguments as arrays of the inputs' types, or raise for all that do not fit."""
        inputs = self.inputs
        if len(arguments) != len(inputs):
            raise InputError(
                f"{len(inputs)} inputs are expected ({', '.join(map(describe, inputs))}), "
                f"{len(arguments)} were given"
            )
        arrays, problems = [], []
        sizes: dict[str, tuple[int, str]] = {}
        for value, variable, argument in zip(
            inputs, self._reference.inputs, arguments, strict=False
        ):
            if isinstance(argument, np.random.Generator):
                argument = state_of(argument)  # noqa: PLW2901
            try:
                array = variable.type.filter(argument, allow_downcast=None)
            except (TypeError, ValueError):
                problems.append(f"input {describe(value)} was given {_describe_given(argument)}")
                continue
            arrays.append(np.asarray(array))
            for dim, size in zip(dims_of(value) or (), arrays[-1].shape, strict=True):
                if isinstance(dim, int) and dim != size:
                    given = _describe_given(array)
                    problems.append(f"input {describe(value)} was given {given}")
                elif isinstance(dim, str):
                    known, owner = sizes.setdefault(dim, (size, str(value.name)))
                    if known != size:
                        problems.append(
                            f"dimension {dim!r} is {known} in {owner} and {size} in {value.name}"
                        )
        if problems:
            raise InputError("; ".join(problems))
        return arrays

    def save(self, path: str | os.PathLike) -> Path:
        """Write the model to a file, which appears complete or not at all.

        Weights of a model above 2 GB go to a second file beside it, ``<name>.data``.

        Returns
        -------
        pathlib.Path
            The file written.

        Examples
        --------
        >>> import tempfile, pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx([x], x + 1).save(folder + "/model.onnx").name
        'model.onnx'
        """
        check_file(path)
        target = Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            file = Path(folder) / target.name
            data = f"{target.name}.data"
            if weight_bytes(self.model) > EXTERNAL_DATA_THRESHOLD:
                ir.save(self.model, file, external_data=data)
                os.replace(file.with_name(data), target.with_name(data))
            else:
                ir.save(self.model, file)
            os.replace(file, target)
        return target

    def save_state(self, path: str | os.PathLike) -> Path:
        """Write the present values of the state to a file of their own.

        Parameters
        ----------
        path
            A file ending in ``.npz``, which NumPy reads, or in ``.onnx``: a model without inputs
            whose outputs are the values, which any ONNX runtime reads, in a browser too.

        Returns
        -------
        pathlib.Path
            The file written.
        """
        with self._lock:
            state = dict(self.state)
        return write_state(path, state, self.model.graph.opset_imports[""])

    def verify(
        self,
        inputs: Sequence[Any] | None = None,
        *,
        state: Mapping[str, np.ndarray] | None = None,
    ) -> ONNXProgram:
        """Check the model, load it, and compare what it computes with PyTensor.

        Parameters
        ----------
        inputs
            One array for each input; sampled unless given.
        state
            Values of the state by name, where other than those at export.

        Raises
        ------
        VerificationError
            If the model is not valid or its results differ; the message names the first node that
            diverges.

        Returns
        -------
        ONNXProgram
            This program; `report` says what was verified.
        """
        from pytensor_onnx.verification import verify_program

        self.verification = verify_program(self, inputs, state)
        return self

    def report(self) -> str:
        """Return a description of the model in Markdown."""
        from pytensor_onnx.report import report_program

        return report_program(self)

    def __repr__(self) -> str:
        inputs = ", ".join(map(describe, self.inputs))
        outputs = ", ".join(map(describe, self.model.graph.outputs))
        return f"ONNXProgram({inputs} -> {outputs})"


class _GraphPickler(pickle.Pickler):
    """Pickles graphs without the functions that loops were compiled to, which have no pickles."""

    def reducer_override(self, value: Any) -> Any:
        """Return what a loop is made of again, and leave the rest to `pickle`."""
        if not isinstance(value, Scan):
            return NotImplemented
        make, arguments, state, *_ = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return make, arguments, {**state, "_fn": None}


def weight_bytes(model: ir.Model) -> int:
    """Return the size of the constants of a model, in bytes."""
    return sum(
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    )


def describe(value: ir.Value) -> str:
    """Return name, dtype and shape of a value.

    Examples
    --------
    >>> describe(ir.val("x", dtype=ir.DataType.FLOAT, shape=("batch", 3)))
    'x: float32[batch, 3]'
    """
    dtype = "?" if value.dtype is None else str(value.dtype.numpy())
    dims = dims_of(value)
    shape = "" if dims is None else ", ".join("?" if d is None else str(d) for d in dims)
    return f"{value.name}: {dtype}[{shape}]"


def _describe_given(argument: Any) -> str:
    try:
        array = np.asarray(argument)
    except ValueError:
        return f"a {type(argument).__name__} that is no array"
    return f"{array.dtype}{list(array.shape)}"
