"""Bind stored arrays to a session once, for functions of many shared variables.

A run of a session converts each of its inputs, which a binding does once for an array: with 200
shared variables a call takes a third of the time. One binding serves one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pytensor_onnx.running.session import Session

FEWEST_STORED = 50
"""Number of stored arrays from which on a binding is faster than a run."""

Stored = Sequence[tuple[str, list[Any]]]
"""Names of inputs, each with the storage of its array: a list of one element."""


def bound_run(session: Session, stored: Stored) -> Callable[[dict[str, Any]], list[np.ndarray]]:
    """Return a function that runs a session for the inputs that are not stored.

    A call that fails, or whose sizes do not agree, runs again as `Session.run` does.

    Parameters
    ----------
    session
        Session on the CPU.
    stored
        Inputs that are stored between calls.
    """
    bindings = threading.local()
    names = {name for name, _ in stored}

    def run(given: dict[str, Any]) -> list[np.ndarray]:
        if session.work is not None:
            read = any(name in names for _, name, _ in session.work.axes)
            arrays = {name: storage[0] for name, storage in stored} if read else {}
            session.fit_threads({**arrays, **given})
        binding = getattr(bindings, "binding", None)
        if binding is None or binding.runtime is not session.runtime:
            binding = bindings.binding = _Binding(session, stored)
        results = binding.run(given)
        if results is None:
            return session.run({**given, **{name: storage[0] for name, storage in stored}})
        return results

    return run


class _Binding:
    """The inputs and outputs of a session in one thread."""

    def __init__(self, session: Session, stored: Stored) -> None:
        from onnxruntime.capi import _pybind_state as runtime

        self._session = session
        self.runtime = session.runtime
        self._inner = session.runtime._sess
        self._binding = runtime.SessionIOBinding(self._inner)
        self._device = runtime.OrtDevice(
            runtime.OrtDevice.cpu(), runtime.OrtDevice.default_memory(), 0
        )
        # The runtime reads the arrays where they are, so those bound must be kept alive.
        self._stored = [(name, storage, [None]) for name, storage in stored]
        names = {name for name, _ in stored}
        self._stored_axes = [axis for axis in session.equal_sizes.axes if axis[1] in names]
        self._given_axes = [axis for axis in session.equal_sizes.axes if axis[1] not in names]
        self._stored_sizes: dict[str, int] = {}

    def run(self, given: Mapping[str, Any]) -> list[np.ndarray] | None:
        """Return the results, None if something fails."""
        try:
            self._bind_stored()
            if not _agree(self._given_axes, given, dict(self._stored_sizes)):
                return None
            for name, value in given.items():
                self._binding.bind_input(name, value)
            for name in self._session.output_names:
                # The next run would overwrite an output that is not bound again.
                self._binding.bind_output(name, self._device)
            self._inner.run_with_iobinding(self._binding, None)
            results = [value.numpy() for value in self._binding.get_outputs()]
            self._binding.clear_binding_outputs()
        except Exception:
            return None
        return self._session.own_types(results)

    def _bind_stored(self) -> None:
        """Bind the stored arrays that others have replaced."""
        is_changed = False
        for name, storage, bound in self._stored:
            array = storage[0]
            if array is not bound[0]:
                bound[0] = None
                self._binding.bind_input(name, array)
                # The runtime copies other arrays, and would miss changes in place.
                bound[0] = array if array.flags.c_contiguous else None
                is_changed = True
        if is_changed:
            arrays = {name: storage[0] for name, storage, _ in self._stored}
            self._stored_sizes = {}
            if not _agree(self._stored_axes, arrays, self._stored_sizes):
                self._stored[0][2][0] = None
                raise ValueError("stored arrays disagree in a size")


def _agree(
    axes: Sequence[tuple[str, str, int]], arrays: Mapping[str, Any], sizes: dict[str, int]
) -> bool:
    """Return whether axes with one name have one size, and add the sizes of the names."""
    for dim, name, axis in axes:
        size = arrays[name].shape[axis]
        if sizes.setdefault(dim, size) != size:
            return False
    return True
