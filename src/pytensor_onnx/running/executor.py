"""The functions that the linker compiles: calls from several threads, and little cost a call."""

import copyreg
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import setitem
from textwrap import indent
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker
from pytensor.link.basic import Container

from pytensor_onnx.compat.pytensor import pickle_function
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.running.session import MOST_SIZES, Session

if TYPE_CHECKING:
    from pytensor_onnx.running.data_parts import DividedSession
    from pytensor_onnx.running.explanation import Explanation
    from pytensor_onnx.running.profiling import ProfiledSession
    from pytensor_onnx.running.python_nodes import PartedGraph

Shapes = tuple[Any, ...]
DirectCall = Callable[[Sequence[Any], bool], list[Any] | None]
"""Function from arguments, and whether to trust them, to outputs, None where PyTensor refuses."""

_exhaust, _FIRST = deque[None](maxlen=0).extend, repeat(0)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a graph's outputs from those of its inputs, by a session.

    Parameters
    ----------
    session
        The session.
    encode
        Function from the values to the session's inputs, None if they are the same.
    decode
        Function from the session's outputs and the values of the inputs to the values of the
        outputs, None if the outputs are these.
    """

    session: "Session | DividedSession | ProfiledSession | PartedGraph"
    encode: Callable[[Sequence[Any]], list[Any]] | None = None
    decode: Callable[[list[np.ndarray], Sequence[Any]], list[Any]] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether all values are the session's own."""
        return self.encode is None and self.decode is None

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of the outputs."""
        results = self.session.run(self.feed(values))
        return results if self.decode is None else self.decode(results, values)

    def feed(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the session's inputs by name."""
        arrays = values if self.encode is None else self.encode(values)
        return dict(zip(self.session.input_names, map(_native, arrays), strict=True))


def _native(value: Any) -> Any:
    """Return an array in the byte order of the machine: the runtime reads no other."""
    if isinstance(value, ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


class ONNXFunction(Function):
    """A compiled function that several threads may call.

    A call goes straight to the session: it passes through no storage that two calls could share,
    and costs less. A call that updates shared variables, or needs anything else of
    `pytensor.compile.executor.Function`, waits for the one before it.

    Attributes
    ----------
    direct_call
        The way to the session, None for a function without outputs or whose required inputs do not
        come first.
    """

    __slots__ = ("_lock", "_names", "_updated", "direct_call")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.RLock()
        times = Counter(i.name for i in self.maker.inputs)
        self._names: list[Any] = [
            i.name if times[i.name] == 1 else None for i in self.maker.inputs if not i.implicit
        ]
        inputs = zip(self.maker.inputs, self.input_storage, strict=True)
        self._updated = [c.storage for x, c in inputs if x.update is not None]
        self.direct_call = _direct_call(self, self._updated, self._lock)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the function; see `pytensor.compile.executor.Function`."""
        direct = self.direct_call
        if direct is not None and not self.profile:
            values = self._in_order(args, kwargs) if kwargs else args
            outputs = None if values is None else direct(values, self.trust_input)
            if outputs is not None:
                if self.unpack_single:
                    return outputs[0]
                return None if self.return_none else outputs
        with self._lock:
            former = [storage[0] for storage in self._updated]
            try:
                return super().__call__(*args, **kwargs)
            except BaseException:
                _exhaust(map(setitem, self._updated, _FIRST, former))
                raise

    def explain(self, /, *args: Any, calls: int = 100, **kwargs: Any) -> "Explanation":
        """Return where the time of a call goes; no shared variable is updated.

        Parameters
        ----------
        args, kwargs
            As in a call.
        calls
            Number of calls that are timed, after one that is not.

        Returns
        -------
        pytensor_onnx.Explanation
            Times of regions and nodes, with the reasons why nodes are in no region; its text is a
            table.

        Raises
        ------
        PyTensorONNXError
            If an argument is missing or does not fit, or the function was compiled with
            ``profile=True`` or has nodes that run in Python.

        Examples
        --------
        >>> import pytensor, pytensor.tensor as pt
        >>> x = pt.vector("x")
        >>> f = pytensor.function([x], pt.exp(x).sum(), mode="ONNX")
        >>> explanation = f.explain([0.0, 1.0], calls=10)
        >>> [part.operators for part in explanation.parts]
        ['2 nodes (1 Exp, 1 ReduceSum)']
        """
        from pytensor_onnx.running.explanation import explain_call

        values = self._in_order(args, kwargs)
        n_arguments = sum(c.required and not c.implicit for c in self.input_storage)
        given = None if values is None else _filtered(self.input_storage[:n_arguments], values)
        evaluate = getattr(self.vm, "evaluate", None)
        if given is None or evaluate is None:
            raise PyTensorONNXError("a call is explained for a value of each argument")
        values = [*given, *[storage[0] for storage in self.vm.inputs[n_arguments:]]]
        return explain_call(evaluate.session, evaluate.feed(values), calls)

    def _in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | None:
        """Return arguments by position, None where a name is unknown or that of two inputs."""
        names = self._names[len(args) :]
        if len(names) != len(kwargs) or kwargs.keys() != {*names}:
            return None
        return [*args, *[kwargs[name] for name in names]]


copyreg.pickle(ONNXFunction, pickle_function)


class ONNXFunctionMaker(FunctionMaker):
    """Makes functions that several threads may call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("function_class", ONNXFunction)
        super().__init__(*args, **kwargs)


def _direct_call(
    function: Function, updated: Sequence[list[Any]], lock: threading.RLock
) -> DirectCall | None:
    """Return a way past PyTensor's storage, None if the function needs it."""
    evaluate = getattr(function.vm, "evaluate", None)
    if evaluate is None:
        return None
    is_argument = [c.required and not c.implicit for c in function.input_storage]
    n_arguments = sum(is_argument)
    if not all(is_argument[:n_arguments]):
        return None
    given, stored = function.input_storage[:n_arguments], function.vm.inputs[n_arguments:]
    seen: set[Shapes] = set()
    call = _checking(evaluate, given, stored, seen)
    session = evaluate.session
    if evaluate.is_plain and hasattr(session, "written_run"):
        call = _for_seen_shapes(session, given, stored, seen, call)
    return _updating(call, updated, lock, len(function.output_storage)) if updated else call


def _checking(
    evaluate: Evaluation,
    given: Sequence[Container],
    stored: Sequence[list[Any]],
    seen: set[Shapes],
) -> DirectCall:
    """Return a call that converts and checks arguments, and remembers their shapes."""

    def call(args: Sequence[Any], is_trusted: bool) -> list[Any] | None:
        values = args if is_trusted else _filtered(given, args)
        if values is None or len(args) != len(given):
            return None
        values = [*values, *[storage[0] for storage in stored]]
        outputs = evaluate(values)
        if len(seen) < MOST_SIZES:
            seen.add((is_trusted, *[getattr(x, "shape", None) for x in values]))
        return outputs

    return call


_FOR_SEEN_SHAPES = """
def call(args, is_trusted):
    if len(args) == {n_arguments}:
        [{arguments}] = args
        try:
            fits = ({trusted}) if is_trusted else ({fits})
            is_seen = fits and (is_trusted, {shapes}) in seen
        except AttributeError:
            is_seen = False
        if is_seen:
{run}
    return otherwise(args, is_trusted)
"""
_TRUSTED = "({x}.dtype is {dtype} or {x}.dtype == {dtype})"
"""Whether the runtime reads a trusted argument as it is: it takes no notice of the byte order."""
_FITS = (
    "type({x}) is ndarray and ({x}.dtype is {dtype} or {x}.dtype == {dtype})"
    " and ({x}.base is None or {x}.flags.aligned)"
)
"""Whether `TensorType.filter` returns an argument as it is, if its shape fits.

Only views may be unaligned.
"""


def _for_seen_shapes(
    session: "Session | DividedSession",
    given: Sequence[Container],
    stored: Sequence[list[Any]],
    seen: set[Shapes],
    otherwise: DirectCall,
) -> DirectCall:
    """Return a call that runs the session at once for arrays whose shapes were seen.

    Its code is written for the number of inputs: a loop over them takes 0.5 µs longer.
    """
    arguments = [f"x{i}" for i in range(len(given))]
    values = [*arguments, *[f"s{i}[0]" for i in range(len(stored))]]
    fits, trusted = (
        " and ".join(text.format(x=x, dtype=f"d{i}") for i, x in enumerate(arguments)) or True
        for text in (_FITS, _TRUSTED)
    )
    run, names = session.written_run(dict(zip(session.input_names, values, strict=True)))
    source = _FOR_SEEN_SHAPES.format(
        n_arguments=len(given),
        arguments=", ".join(arguments),
        fits=fits,
        trusted=trusted,
        shapes="".join(f"{x}.shape, " for x in values),
        run=indent(run, " " * 12),
    )
    names |= {"seen": seen, "otherwise": otherwise, "ndarray": ndarray}
    names |= {f"d{i}": container.type.numpy_dtype for i, container in enumerate(given)}
    names |= {f"s{i}": storage for i, storage in enumerate(stored)}
    exec(source, names)
    return names["call"]


def _updating(
    call: DirectCall, updated: Sequence[list[Any]], lock: threading.RLock, n_outputs: int
) -> DirectCall:
    """Return a call that writes the last outputs to storage and returns the others."""
    n_returned = n_outputs - len(updated)
    only = updated[0] if len(updated) == 1 else None

    def update(args: Sequence[Any], is_trusted: bool) -> list[Any] | None:
        with lock:
            outputs = call(args, is_trusted)
            if outputs is None:
                return None
            if only is not None:
                only[0] = outputs[-1]
            else:
                # One call of C, in which no handler of a signal runs: all variables or none.
                _exhaust(map(setitem, updated, _FIRST, outputs[n_returned:]))
        return outputs[:n_returned]

    return update


def _filtered(given: Sequence[Container], args: Sequence[Any]) -> list[Any] | None:
    """Return arguments as PyTensor stores them, None if it refuses one."""

    def convert() -> list[Any]:
        return [
            c.type.filter(x, strict=c.strict, allow_downcast=c.allow_downcast)
            for c, x in zip(given, args, strict=True)
        ]

    try:
        return convert()
    except Exception:
        try:
            convert()
        except Exception:  # PyTensor's own error describes it
            return None
        raise  # It does not come again: a handler of a signal raised it.
