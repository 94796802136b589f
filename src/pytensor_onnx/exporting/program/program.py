"""`ONNXProgram`: an exported model that can be called, saved, verified and reported on."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.errors import InputError
from pytensor_onnx.exporting.program.model_files import write_model
from pytensor_onnx.exporting.program.pickling import program_state, restore_program
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.requests.signature import PlainInputs, Signature
from pytensor_onnx.exporting.requests.state_files import State, write_state
from pytensor_onnx.graph.origins import Lines
from pytensor_onnx.running.session import Session, SessionOptions

if TYPE_CHECKING:
    from pytensor.compile.debug.profiling import ProfileStats

    from pytensor_onnx.exporting.verification.precision import Narrowing


class ONNXProgram:
    """An exported model.

    Called with one array for each input, in order or by name, it returns the values of the PyTensor
    function, and keeps the state that the graph updates. `export_onnx` makes it.

    Several threads may call it. A copy, or a pickle, has a state of its own, and opens a session of
    its own when it is first called.

    Attributes
    ----------
    model : onnx_ir.Model
        The model.
    state : dict of str to ndarray
        Present values of the variables that the graph updates.
    losses : list of str
        Errors that a lower precision brings, after a verification.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        reference: FunctionGraph,
        rewritten: FunctionGraph,
        states: Sequence[State],
        signature: Signature,
        failures: Mapping[str, Exception],
        owners: Mapping[str, Apply],
        lines: Lines,
        values: Mapping[Variable, ir.Value],
        changes: Sequence[str],
        target: str,
        narrowing: Narrowing | None = None,
        providers: str | Sequence[str] = "cpu",
        session_options: SessionOptions | None = None,
    ) -> None:
        self.model = model
        self.state = {s.name: s.value for s in states}
        self.verification = "not verified"
        self.changes = list(changes)
        self.losses: list[str] = []
        self.target = target
        self.providers = providers
        self.session_options = session_options
        self._reference = reference
        self._rewritten = rewritten
        self._narrowing = narrowing
        self._states = list(states)
        self._signature = signature
        self._failures = dict(failures)
        self._lines = dict(lines)
        self._owners = dict(owners)
        self._values = dict(values)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: neither the session nor values of the model itself."""
        with self._lock:
            values = dict(self.state)
        return program_state(self, values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes of another program."""
        restore_program(self, state)
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
            One array, or what converts to one, for each input in order. Numbers of another dtype
            are taken where none changes: 0.5 of float64 is a number of float32, 0.1 is none.
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
        plain = None if named else self._plain_inputs.feed(arguments)
        feed = self._feed(arguments, named) if plain is None else plain
        try:
            if self._states:
                with self._lock:
                    return self._run(feed)
            return self._run(feed)
        except InputError:
            if plain is not None:
                self._check(arguments)  # names all that does not fit
            raise

    @cached_property
    def _plain_inputs(self) -> PlainInputs:
        return PlainInputs.of(self._signature, self.inputs, self._reference.inputs)

    def _run(self, feed: Mapping[str, np.ndarray]) -> Any:
        results = self.session.run({**feed, **self.state})
        n_results = len(results) - len(self._states)
        for state, value in zip(self._states, results[n_results:], strict=True):
            self.state[state.name] = value
        return self._signature.results(results[:n_results])

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
        from pytensor_onnx.running.profiling import profile_runs

        feed = {**self._feed(arguments, named), **self.state}
        return profile_runs(
            self._open_session, self.session_options, self._rewritten, self._owners, feed, calls
        )

    def _feed(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if named:
            arguments = self._signature.in_order(arguments, named, self.inputs, self.state)
        return dict(zip((str(v.name) for v in self.inputs), self._check(arguments), strict=True))

    def _check(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """Return the arguments as arrays of the inputs' types, or raise for all that do not fit."""
        return self._signature.arrays(arguments, self.inputs, self._reference.inputs)

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
        return write_model(path, self.model)

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

    def select(self, outputs: str | Sequence[str]) -> ONNXProgram:
        """Return a program of some of the outputs, and of the inputs that these depend on.

        A call of it computes nothing else, whereas ONNX Runtime computes all outputs of a file,
        whichever it returns.

        Parameters
        ----------
        outputs
            Names of outputs, or the name of the one whose value is returned by itself.

        Raises
        ------
        ArgumentError
            If there is no such output.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import compile_onnx
        >>> x, y = pt.vector("x"), pt.scalar("y")
        >>> program = compile_onnx([x, y], {"total": x.sum(), "product": x * y})
        >>> program.select("total")
        ONNXProgram(x: float64[x_dim0] -> total: float64[])
        >>> program.select("total")([1.0, 2.0])
        array(3.)
        """
        from pytensor_onnx.exporting.program.selection import select_outputs

        return select_outputs(self, outputs)

    def verify(
        self,
        inputs: Sequence[Any] | None = None,
        *,
        state: Mapping[str, np.ndarray] | None = None,
    ) -> ONNXProgram:
        """Check the model, load it, and compare its results with PyTensor's.

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
            This program; `report` lists the checks that passed.
        """
        from pytensor_onnx.exporting.verification.verification import verify_program

        self.verification = verify_program(self, [] if inputs is None else [inputs], state)
        return self

    def report(self) -> str:
        """Return a description of the model in Markdown."""
        from pytensor_onnx.exporting.program.report import report_program

        return report_program(self)

    def __repr__(self) -> str:
        inputs = ", ".join(map(describe, self.inputs))
        outputs = ", ".join(map(describe, self.model.graph.outputs))
        return f"ONNXProgram({inputs} -> {outputs})"
