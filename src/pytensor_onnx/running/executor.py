"""The functions that the mode compiles: calls from several threads, and little cost a call."""

import copyreg
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker

from pytensor_onnx.compat.pytensor import pickle_function
from pytensor_onnx.encodings import is_encoded
from pytensor_onnx.named_dims import is_tensor

Run = Callable[[dict[str, Any]], list[np.ndarray]]


class ONNXFunction(Function):
    """A compiled function that several threads may call.

    A call of the usual kind goes straight to the session: it passes through no storage that two
    calls could share, and costs less. A call that updates shared variables, or needs anything else
    of `pytensor.compile.executor.Function`, waits for the one before it.
    """

    __slots__ = ("_direct_call", "_lock")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.RLock()
        self._direct_call = _direct_call(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the function; see `pytensor.compile.executor.Function`."""
        direct = self._direct_call
        if direct is not None and not kwargs and not self.profile:
            feed = direct.feed(args, self.trust_input)
            if feed is not None:
                outputs = direct.run(feed)
                return outputs[0] if self.unpack_single else outputs
        with self._lock:
            return super().__call__(*args, **kwargs)


copyreg.pickle(ONNXFunction, pickle_function)


class ONNXFunctionMaker(FunctionMaker):
    """Makes functions that several threads may call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("function_class", ONNXFunction)
        super().__init__(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class _Argument:
    """An input of the session that the caller gives."""

    name: str
    filter: Callable[..., np.ndarray]
    options: dict[str, Any]
    dtype: np.dtype
    ndim: int
    any_size: bool


@dataclass(frozen=True, slots=True)
class _DirectCall:
    """The way from arguments to the session, past the storage of the function."""

    run_all: Run
    arguments: Sequence[_Argument]
    stored: Sequence[tuple[str, list[Any]]]

    def feed(self, args: Sequence[Any], trusted: bool) -> dict[str, Any] | None:
        """Return the arrays for the session, None where an argument does not fit."""
        if len(args) != len(self.arguments):
            return None
        feed = {}
        for argument, value in zip(self.arguments, args):  # noqa: B905  (on the hot path)
            # `TensorType.filter` would return a value that passes here as it is.
            if not trusted and not (
                type(value) is np.ndarray
                and value.dtype is argument.dtype
                and value.ndim == argument.ndim
                and argument.any_size
                and value.flags.aligned
            ):
                try:
                    value = argument.filter(value, **argument.options)  # noqa: PLW2901
                except Exception:  # PyTensor's own error describes it
                    return None
            feed[argument.name] = value
        return feed

    def run(self, feed: dict[str, Any]) -> list[np.ndarray]:
        """Run the session for the arguments of a call."""
        for name, storage in self.stored:
            feed[name] = storage[0]
        return self.run_all(feed)


def _direct_call(function: Function) -> _DirectCall | None:
    """Return a callable that skips PyTensor's storage, or None if the function needs it."""
    session = getattr(function.vm, "jit_fn", None)
    encoded = any(map(is_encoded, function.maker.fgraph.inputs))
    if session is None or function._has_updates or encoded:
        return None
    names = {id(s): n for n, s in zip(session.input_names, function.vm.inputs, strict=True)}
    required = [c.required and not c.implicit for c in function.input_storage]
    given = function.input_storage[: sum(required)]
    if not all(required[: len(given)]) or not all(is_tensor(c.type) for c in given):
        return None
    arguments = [
        _Argument(
            name=names.pop(id(c.storage)),
            filter=c.type.filter,
            options={"strict": c.strict, "allow_downcast": c.allow_downcast},
            dtype=c.type.numpy_dtype,
            ndim=c.type.ndim,
            any_size=all(size is None for size in c.type.shape),
        )
        for c in given
    ]
    stored = [(names[id(s)], s) for s in function.vm.inputs if id(s) in names]
    return _DirectCall(function.vm.run, arguments, stored)
