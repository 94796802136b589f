"""Write updated arrays over those of the step before the last, for functions of many updates.

A run of a session allocates each of its results and converts each array, which takes about 2 µs for
an updated variable. A training step reads the arrays of the last step, so that those of the step
before it are free, unless others hold them.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pytensor_onnx.running.session import Session

FEWEST_UPDATED = 24
"""Number of updated arrays from which on it is faster to write over arrays than to run."""

_ALONE = next(map(sys.getrefcount, [object()]))
"""Number of references, as `map` counts them, to an object that one list holds and nothing else."""

Updates = Sequence[tuple[str, int]]
"""Names of the inputs that are updated, and the outputs that they take, by index."""


def updating_run(
    session: Session, updates: Updates
) -> Callable[[Mapping[str, Any]], list[np.ndarray]]:
    """Return a function that runs a session as `Session.run` does.

    Results that update inputs are written over the arrays that they replaced two calls before, if
    the inputs are the results of the last call, and nobody else refers to the former arrays. A call
    that fails runs again in new arrays.

    Parameters
    ----------
    session
        Session on the CPU.
    updates
        The inputs that results replace before the next call.
    """
    return _UpdatingRun(session, updates).run


class _UpdatingRun:
    """The arrays of the last two steps, and the bindings that write one over the other."""

    def __init__(self, session: Session, updates: Updates) -> None:
        from onnxruntime.capi import _pybind_state as runtime

        memory = runtime.OrtDevice.default_memory()
        self._device = runtime.OrtDevice(runtime.OrtDevice.cpu(), memory, 0)
        self._session = session
        self._runtime = session.runtime
        self._names = [name for name, _ in updates]
        self._indices = [index for _, index in updates]
        indices, updated = set(self._indices), set(self._names)
        self._new = [(i, x) for i, x in enumerate(session.output_names) if i not in indices]
        self._given = [name for name in session.input_names if name not in updated]
        self._current: list[np.ndarray] = []
        self._former: list[np.ndarray] = []
        self._bindings: list[Any] = [None, None]
        self._lock = threading.Lock()

    def run(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once and return all outputs."""
        with self._lock:
            stored = map(feed.__getitem__, self._names)
            if not self._current or not all(map(operator.is_, stored, self._current)):
                self._current = []
            is_free = self._is_former_free()
            if is_free and (results := self._overwrite(feed)) is not None:
                self._current, self._former = self._former, self._current
                self._bindings.reverse()
                return results
            self._former, self._bindings = self._current, [None, None]
            results = self._session.run(feed)
            if is_free:
                # A state has another shape after each step.
                self._names, self._indices = [], []
            self._current = [results[index] for index in self._indices]
            return results

    def _is_former_free(self) -> bool:
        """Return whether this object alone refers to the arrays of the step before the last."""
        if not self._current or not self._former:
            return False
        return max(map(sys.getrefcount, self._former)) <= _ALONE

    def _overwrite(self, feed: Mapping[str, Any]) -> list[np.ndarray] | None:
        """Run in the arrays of the step before the last; return None if something fails."""
        session = self._session
        try:
            session.equal_sizes.check(feed)
            session.fit_threads(feed)
            if session.runtime is not self._runtime:
                self._runtime, self._bindings = session.runtime, [None, None]
            if self._bindings[0] is None:
                self._bindings[0] = self._bind()
            binding = self._bindings[0]
            for name in self._given:
                binding.bind_input(name, feed[name])
            for _, name in self._new:
                # The next run would overwrite an output that is not bound again.
                binding.bind_output(name, self._device)
            session.runtime._sess.run_with_iobinding(binding, None)
            values = binding.get_outputs()
            results: list[Any] = [None] * len(session.output_names)
            for index, array in zip(self._indices, self._former, strict=True):
                results[index] = array
            for index, _ in self._new:
                results[index] = values[index].numpy()
        except Exception:
            return None
        return session.own_types(results)

    def _bind(self) -> Any:
        """Return a binding that reads the arrays of the last step and writes over the others."""
        from onnxruntime.capi import _pybind_state as runtime

        binding = runtime.SessionIOBinding(self._session.runtime._sess)
        for name, array in zip(self._names, self._current, strict=True):
            binding.bind_input(name, array)
        arrays = dict(zip(self._indices, self._former, strict=True))
        for index, name in enumerate(self._session.output_names):
            if (written := arrays.get(index)) is None:
                binding.bind_output(name, self._device)
            else:
                place = written.ctypes.data
                binding.bind_output(name, self._device, written.dtype, written.shape, place)
        return binding
