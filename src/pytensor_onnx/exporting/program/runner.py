"""A model with its session and its state, which can be called."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import InputError, RunError
from pytensor_onnx.exporting.requests.signature import PlainInputs
from pytensor_onnx.exporting.requests.state_files import write_state
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.pickling import dump_conversion, load_conversion
from pytensor_onnx.graph.model_reading import stored_mapping
from pytensor_onnx.running.session import Session, SessionOptions
from pytensor_onnx_scoring.exact_casts import exactly

if TYPE_CHECKING:
    from pytensor.compile.debug.profiling import ProfileStats

    from pytensor_onnx.running.explanation import Explanation


_SESSIONS = ("session", "session_of_file")
_FINITE_START = "finite_start"


class Runner:
    """A converted graph that runs in ONNX Runtime.

    Parameters
    ----------
    conversion
        The model and the graph.
    providers, session_options
        As in `compile_onnx`.
    """

    def __init__(
        self,
        conversion: Conversion,
        providers: str | Sequence[str] = "cpu",
        session_options: SessionOptions | None = None,
    ) -> None:
        self.conversion = conversion
        self.providers = providers
        self.session_options = session_options
        self.state = {state.name: state.value for state in conversion.states}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: no session, and the conversion as bytes."""
        kept = {k: v for k, v in vars(self).items() if k not in _SESSIONS and k != "_lock"}
        return {
            **kept,
            "state": self.present_state(),
            "conversion": dump_conversion(self.conversion),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes of another program."""
        vars(self).update({**state, "conversion": load_conversion(state["conversion"])})
        self._lock = threading.Lock()

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs that a caller gives, without the state."""
        return self.conversion.inputs

    @cached_property
    def session(self) -> Session:
        """The model loaded into ONNX Runtime."""
        verified = vars(self).pop("session_of_file", None)
        if verified is None:
            return self._open_session(self.session_options)
        verified.add_regions()
        return verified

    @cached_property
    def session_of_file(self) -> Session:
        """The model loaded without regions, as other programs load the file, to be verified."""
        known = vars(self).get("session")
        if known is not None and not known.has_regions:
            return known
        return self.conversion.open_session(self.providers, self.session_options, regions=False)

    def _open_session(self, options: SessionOptions | None) -> Session:
        return self.conversion.open_session(self.providers, options)

    def present_state(self) -> dict[str, np.ndarray]:
        """Return the values of the state after the calls that have ended."""
        with self._lock:
            return dict(self.state)

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
        return write_state(
            path, self.present_state(), self.conversion.model.graph.opset_imports[""]
        )

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
            The outputs; the array itself where a single variable was exported, alone or in a dict.

        Raises
        ------
        InputError
            If an argument does not fit its input, is missing, or is given twice.
        RunError
            If a chain of a sampler starts where its density is not finite.

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
        feed = self.feed(arguments, named) if plain is None else plain
        try:
            if self.conversion.states:
                with self._lock:
                    return self._run(feed)
            return self._run(feed)
        except InputError:
            if plain is not None:
                self.conversion.arrays(arguments)  # names all that does not fit
            raise

    @cached_property
    def _plain_inputs(self) -> PlainInputs:
        conversion = self.conversion
        return PlainInputs.of(conversion.signature, self.inputs, conversion.reference.inputs)

    def _run(self, feed: Mapping[str, np.ndarray]) -> Any:
        states = self.conversion.states
        self._fit_state()
        results = self.session.run({**feed, **self.state})
        n_results = len(results) - len(states)
        if self._start_output is not None:
            named = dict(zip(self.conversion.output_names, results, strict=False))
            _check_starts(results[self._start_output], feed, named)
        # One call of C, in which no handler of a signal runs: all values or none.
        self.state.update(zip([x.name for x in states], results[n_results:], strict=True))
        return self.conversion.signature.results(results[:n_results])

    @cached_property
    def _start_output(self) -> int | None:
        """Position of the output of a sampler that tells which chains have a finite start."""
        if "sampler" not in stored_mapping(self.conversion.model.metadata_props, "pymc"):
            return None
        names = list(self.conversion.output_names)
        return names.index(_FINITE_START) if _FINITE_START in names else None

    def _fit_state(self) -> None:
        """Convert values that a caller has set to the dtypes of the state, where none changes."""
        for state in self.conversion.states:
            value, dtype = self.state[state.name], state.value.dtype
            if type(value) is np.ndarray and value.dtype is dtype and value.flags.aligned:
                continue
            fitting = exactly(value, dtype)
            if fitting is None or fitting.dtype != dtype:
                raise InputError(f"state {state.name} is {dtype}, and was given other numbers")
            self.state[state.name] = fitting if fitting.flags.aligned else fitting.copy()

    def step(
        self,
        run: Callable[[dict[str, np.ndarray]], Mapping[str, Any]],
        /,
        *arguments: Any,
        **named: Any,
    ) -> Any:
        """Run the file once in another runtime, with the state of this program.

        Parameters
        ----------
        run
            The runtime's call: arrays by the names of all inputs of the file in, the state's among
            them, and arrays by the names of its outputs out.
        arguments, named
            As in a call.

        Returns
        -------
        ndarray or list of ndarray
            As of a call. `state` has the next values.

        Examples
        --------
        >>> import numpy as np, pytensor, pytensor.tensor as pt
        >>> from onnx.reference import ReferenceEvaluator
        >>> from pytensor_onnx import export_onnx
        >>> x, total = pt.scalar("x"), pytensor.shared(0.0, name="total")
        >>> program = export_onnx([x], total + x, updates={total: total + x}, target="portable")
        >>> other = ReferenceEvaluator(program.proto)
        >>> run = lambda feed: dict(zip(other.output_names, other.run(None, feed)))
        >>> [float(program.step(run, value)) for value in (1.0, 2.0, 3.0)]
        [1.0, 3.0, 6.0]
        """
        feed, conversion = self.feed(arguments, named), self.conversion
        with self._lock:
            self._fit_state()
            found = {k: np.asarray(v) for k, v in run({**feed, **self.state}).items()}
            self.state.update({x.name: found[x.next_name] for x in conversion.states})
        following = {state.next_name for state in conversion.states}
        names = (name for name in conversion.output_names if name not in following)
        return conversion.signature.results([found[name] for name in names])

    def feed(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the arrays of a call by the names of the model's inputs, without the state."""
        conversion, inputs = self.conversion, self.inputs
        if named:
            arguments = conversion.signature.in_order(arguments, named, inputs, self.state)
        names = (str(value.name) for value in inputs)
        return dict(zip(names, conversion.arrays(arguments), strict=True))

    def explain(self, /, *arguments: Any, calls: int = 100, **named: Any) -> Explanation:
        """Return where the time of a call goes: by region and node, with regions on.

        The state stays as it is.

        Parameters
        ----------
        arguments, named
            As in a call.
        calls
            Number of calls that are timed, after one that is not.

        Returns
        -------
        pytensor_onnx.Explanation
            Times of regions and nodes, the reasons why nodes are in no region, threads, and plans
            that are refused or made in the course of a run; its text is a table.

        Examples
        --------
        >>> import numpy as np, pytensor.tensor as pt
        >>> from pytensor_onnx import compile_onnx
        >>> x, n = pt.vector("x"), pt.lscalar("n")
        >>> program = compile_onnx([x, n], [pt.exp(x).sum(), x[:n]])
        >>> explanation = program.explain(np.ones(5), 3, calls=10)
        >>> sorted(part.reason for part in explanation.parts if part.reason)
        ['a size of Slice depends on values']
        """
        from pytensor_onnx.running.explanation import explain_call

        feed = {**self.feed(arguments, named), **self.present_state()}
        return explain_call(self.session, feed, calls)

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

        conversion = self.conversion
        return profile_runs(
            self._open_session,
            self.session_options,
            conversion.rewritten,
            conversion.owners,
            {**self.feed(arguments, named), **self.state},
            calls,
        )


def _check_starts(
    finite: np.ndarray, given: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray]
) -> None:
    """Raise for chains that do not start where the log-density and its gradient are finite.

    The error names the inputs and variables that are not finite themselves. A chain without a
    finite start stays where it is, so that its draws have the values there, or NaN by which the
    gradient of a finite log-density is not finite.
    """
    lost = np.flatnonzero(~finite)
    if not len(lost):
        return
    drawn = {
        name: x[lost]
        for name, x in results.items()
        if name not in ("lp", "energy") and x.ndim > 1 and len(x) == len(finite)
    }
    invalid = [
        name
        for name, x in {**given, **drawn}.items()
        if x.dtype.kind == "f" and not np.isfinite(x).all()
    ]
    told = "model.debug() tells the variables"
    if invalid:
        told = f"Values, or the gradient by them, are NaN or infinite in {', '.join(invalid)}"
    raise RunError(
        "the log-density or its gradient is not finite where chains start: "
        f"{', '.join(map(str, lost))}. {told}. Give other points: the input start of "
        "export_sampler(..., start=True)"
    )
