"""ONNX Runtime sessions: providers, options, and errors in the user's terms."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor_onnx import native
from pytensor_onnx.errors import InputError, PyTensorONNXError
from pytensor_onnx.running.direct_calls import DirectCall, direct_call, no_call
from pytensor_onnx.running.ort_optimizers import (
    INLINE_LATE,
    PROVIDERS,
    inlines_late,
    needless_optimizers,
    provider_names,
)
from pytensor_onnx_scoring.problems import is_interruption

if TYPE_CHECKING:
    import onnx_ir as ir
    import onnxruntime

    from pytensor_onnx.graph.names import Lines
    from pytensor_onnx.kernels.regions import Fusion, Region
    from pytensor_onnx.running.operator_cost import Work


OPTIMIZATION_LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}

_EXACT = {"session.disable_quant_qdq": "1", "session.qdq_matmulnbits_accuracy_level": "0"}
"""Entries without which the runtime rounds floats beside quantised ones to 8 bits."""

MOST_SIZES = 1000
"""Number of different sizes of inputs that are remembered after their check."""
MOST_REFUSALS = 10
"""Number of right calls that regions refuse before a session does without them."""

_IN_REGION = re.compile(r"while running Region node")

# The runtime returns the C type `long long`, which NumPy distinguishes from its own int64.
_LONG_TYPES = {"tensor(int64)": np.dtype("int64"), "tensor(uint64)": np.dtype("uint64")}
_DTYPES: dict[str, np.dtype[Any]] = {
    "tensor(double)": np.dtype("float64"),
    "tensor(float)": np.dtype("float32"),
    "tensor(float16)": np.dtype("float16"),
    **{f"tensor({name})": np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64")},
    **{f"tensor({name})": np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}


@dataclass(frozen=True)
class SessionOptions:
    """Options of ONNX Runtime for running a model.

    Parameters
    ----------
    threads
        Threads within one operator. If None, one, or the runtime's default once an operator is
        large: a product of ten million multiplications and additions, or a million elements. A
        process that is bound to some of the processors takes one for each of these.
    optimization
        Level of graph optimization: ``"none"``, ``"basic"``, ``"extended"`` or ``"all"``.
    optimized_model_path
        File for the model after the runtime's optimization.
    profile_prefix
        Prefix of the name of a profiling file; no profiling if None.
    spinning
        Whether idle threads spin, which costs processor time between calls.
    kernels
        Whether to use the native library, where it was built and the provider is the CPU: for
        model-local functions and for regions of small nodes. If None, unless the environment
        variable ``PYTENSOR_ONNX_KERNELS`` is ``0``.
    reproducible
        Whether the native library runs the whole model, with the same bits on all machines
        (docs/understanding/reproducible.md). Models that it does not cover are refused, and so are
        inputs that it refuses.
    config
        Further entries of the runtime's session configuration. Unless
        ``{"session.disable_quant_qdq": "0"}`` is given, quantised networks round where their
        operators do, and not where the runtime's fusions of these would.

    Examples
    --------
    >>> SessionOptions(threads=1, optimization="basic").threads
    1
    """

    threads: int | None = None
    optimization: str = "all"
    optimized_model_path: str | Path | None = None
    profile_prefix: str | None = None
    spinning: bool = False
    kernels: bool | None = None
    reproducible: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    def to_runtime(self) -> onnxruntime.SessionOptions:
        """Return the options as ONNX Runtime's `SessionOptions`."""
        import onnxruntime as ort

        if self.optimization not in OPTIMIZATION_LEVELS:
            raise PyTensorONNXError(
                f"optimization={self.optimization!r} is not one of {list(OPTIMIZATION_LEVELS)}"
            )
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(
            ort.GraphOptimizationLevel, OPTIMIZATION_LEVELS[self.optimization]
        )
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        if self.optimized_model_path is not None:
            options.optimized_model_filepath = str(self.optimized_model_path)
        if self.profile_prefix is not None:
            options.enable_profiling = True
            options.profile_file_prefix = self.profile_prefix
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        for key, value in {**_EXACT, **self.config}.items():
            options.add_session_config_entry(key, value)
        return options


class Session:
    """A model loaded into ONNX Runtime.

    The weights of a model above 2 GB become inputs, which the runtime reads without a copy.

    Parameters
    ----------
    model
        The model, or the path of a file.
    providers
        Execution providers in order of preference, by short name (``"cpu"``, ``"cuda"``, …) or the
        runtime's name.
    options
        Options of the runtime.
    failures
        Exceptions that checks of the graph raise, by type and message.
    lines
        Lines of the user's code that made the nodes.
    regions
        Whether nodes may run together in the native library; `add_regions` makes up for False.
    in_full
        Function that opens a session of the same graph in which all functions have bodies and none
        a kernel: it tells the user's own error where a kernel refuses operands.

    Attributes
    ----------
    direct
        Function of arrays of `names_with_defaults` that runs a model of one region without the
        runtime; it returns None for arguments that are no such arrays, and where the region refuses
        them.
    names_with_defaults
        Names of the inputs, those with a default last.
    """

    def __init__(
        self,
        model: ir.Model | str | Path,
        *,
        providers: str | Sequence[str] = "cpu",
        options: SessionOptions | None = None,
        failures: Mapping[str, Exception] | None = None,
        lines: Lines | None = None,
        regions: bool = True,
        in_full: Callable[[], Session] | None = None,
    ) -> None:
        self.failures = dict(failures or {})
        self.lines = dict(lines or {})
        self._options = options or SessionOptions()
        self._providers = provider_names(providers)
        self._in_full = in_full
        self._full: Session | None = None
        self._is_on_cpu = self._providers == [PROVIDERS["cpu"]]
        self._uses_kernels = uses_kernels(providers, options)
        self._functions: list[str] = []
        if self._uses_kernels:
            loaded = _deserialize(str(model)) if isinstance(model, str | Path) else model
            native.refuse_regions(loaded)
            self._functions = native.functions_of(loaded)
        self._weights: dict[str, np.ndarray] = {}
        self._disabled = [] if isinstance(model, str | Path) else needless_optimizers(model)
        self.work = None if isinstance(model, str | Path) else self._work_of(model)
        # The runtime keeps the bytes as well, so these take no further memory.
        self._source = str(model) if isinstance(model, str | Path) else self._serialized(model)
        self._fusion = self._fuse() if regions else None
        self._plain: onnxruntime.InferenceSession | None = None
        self._refusals = 0
        threads = 1 if self.work and not self.work.is_large else None
        fused = self._fusion.model if self._fusion else None
        self._use(self._load(fused or self._source, threads), has_regions=fused is not None)
        if self._options.reproducible or (self.work and (self.work.is_large or self.work.is_fixed)):
            self.work = None
        given = [x for x in self.runtime.get_inputs() if x.name not in self._weights]
        self.input_names = [x.name for x in given]
        defaults = (x.name for x in self.runtime.get_overridable_initializers())
        self.names_with_defaults = [*self.input_names, *defaults]
        self.output_names = [x.name for x in self.runtime.get_outputs()]
        self.long_outputs = {
            i: _LONG_TYPES[x.type]
            for i, x in enumerate(self.runtime.get_outputs())
            if x.type in _LONG_TYPES
        }
        self._input_dtypes = {x.name: _DTYPES[x.type] for x in given if x.type in _DTYPES}
        self.equal_sizes = EqualSizes(given)
        # The axes whose sizes `check_sizes` reads, and sizes that it has seen.
        axes = [*self.equal_sizes.axes, *(self.work.axes if self.work else ())]
        self._sized = list(dict.fromkeys((name, axis) for _, name, axis in axes))
        self._seen: set[tuple[int, ...]] = set()

    @property
    def options(self) -> SessionOptions:
        """The options of the runtime."""
        return self._options

    @property
    def runs_in_c(self) -> bool:
        """Whether the native library can run the model: it is on, and the model in memory."""
        is_in_memory = not isinstance(self._source, str) and not self._weights
        return self._uses_kernels and is_in_memory

    @property
    def serialized(self) -> tuple[bytes, bytes | None]:
        """The model as it runs, and without regions if it has some.

        Raises
        ------
        PyTensorONNXError
            If the library cannot run it: it is off, or the model is a file or above 2 GB.
        """
        source = self._source
        if not self.runs_in_c or isinstance(source, str):
            raise PyTensorONNXError("the native library does not run this session")
        running = self._running_fusion
        fused = running.model if running else None
        return (source, None) if fused is None else (fused, source)

    def input_dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype of an input."""
        return self._input_dtypes[name]

    def entries(self) -> dict[str, str]:
        """Return the configuration of a session of C for this model."""
        from pytensor_onnx.passes.defects import switched_off_optimizers

        off = switched_off_optimizers("onnxruntime") + self._disabled
        return {
            "session.intra_op.allow_spinning": str(int(self._options.spinning)),
            **self._config(),
            "optimization.disable_specified_optimizers": ";".join(off),
            **native.entries(self._functions, with_regions=self.has_regions),
        }

    def _config(self) -> dict[str, str]:
        """Return the entries of the options, and those that inline functions late."""
        # Providers that compile parts of a graph would find it cut at the calls of functions.
        is_late = self._is_on_cpu and inlines_late(self._disabled)
        return {**(INLINE_LATE if is_late else {}), **self._options.config}

    def _work_of(self, model: ir.Model) -> Work | None:
        """Return the work of a model, None where it does not decide the number of threads."""
        from pytensor_onnx.running.operator_cost import Work

        is_free = self._options.threads is None and self._options.profile_prefix is None
        return Work(model) if is_free and self._is_on_cpu else None

    def _load(
        self,
        source: bytes | str,
        threads: int | None,
        with_kernels: bool = True,
        options: SessionOptions | None = None,
    ) -> onnxruntime.InferenceSession:
        """Load a model with a number of threads, unless the options have one."""
        import onnxruntime as ort

        from pytensor_onnx.passes.defects import switched_off_optimizers

        options = replace(options or self._options, config=self._config())
        if options.threads is None:
            options = replace(options, threads=threads or _allowed_threads())
        runtime_options = options.to_runtime()
        if self._uses_kernels and with_kernels:
            # Only models of `fuse`, and those of `load_again` made of them, have regions.
            is_fused = self._fusion is not None and source is not self._source
            if is_fused:
                native.register_with_regions(runtime_options, self._functions, options.threads)
            else:
                native.register(runtime_options, self._functions)
        try:
            return ort.InferenceSession(
                source,
                runtime_options,
                providers=self._providers,
                disabled_optimizers=switched_off_optimizers("onnxruntime") + self._disabled,
                # A second attempt would lose exceptions of signal handlers, and the line above.
                enable_fallback=not self._is_on_cpu,
            )
        except Exception as error:
            if is_interruption(error):
                raise
            lacks = self._lacks() if "NOT_IMPLEMENTED" in str(error) else ""
            raise PyTensorONNXError(f"ONNX Runtime refuses the model: {lacks}{error}") from error

    def _use(self, runtime: onnxruntime.InferenceSession, has_regions: bool) -> None:
        """Run all calls from now on by a session of the runtime."""
        # The public `run` searches a list for each input: three times as long with 200 of them.
        inner = getattr(runtime, "_sess", None) if self._is_on_cpu else None
        self.runtime, self.has_regions = runtime, has_regions
        self._run = getattr(inner, "run", runtime.run)
        running = self._running_fusion
        is_whole = running is not None and running.is_whole
        self.direct: DirectCall = self._first_direct if is_whole else no_call

    @property
    def _running_fusion(self) -> Fusion | None:
        """The fusion whose model runs; None without regions."""
        return self._fusion if self.has_regions else None

    def _first_direct(self, *arrays: Any) -> list[np.ndarray] | None:
        """Make the direct call of a model that is one region, which reading it again takes."""
        model, _ = self.serialized
        threads = self.runtime.get_session_options().intra_op_num_threads or None
        self.direct = direct_call(
            model, self.names_with_defaults, self.output_names, threads=threads
        )
        return self.direct(*arrays)

    def add_regions(self) -> None:
        """Run nodes together in the native library from now on, where the options allow it."""
        if self._fusion is not None:
            return
        self._fusion = self._fuse()
        if self._fusion is not None and self._fusion.model is not None:
            threads = self.runtime.get_session_options().intra_op_num_threads
            self._plain = self.runtime
            self._use(self._load(self._fusion.model, threads), has_regions=True)

    def kernels(self) -> list[str]:
        """Return a line for each region, and for each reason why other nodes are in none."""
        running = self._running_fusion
        return running.lines() if running else _lines_of_functions(self._functions)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions that run in the native library."""
        running = self._running_fusion
        return running.regions if running else ()

    def notes(self) -> list[str]:
        """Return a line on the calls that regions have refused, none without such calls."""
        if not self._refusals:
            return []
        goes_on = "" if self.has_regions else ": all calls go without regions now"
        return [f"calls that regions have refused: {self._refusals}{goes_on}"]

    def load_again(self, source: bytes | None = None, **options: Any) -> Any:
        """Load the model as it runs, or another in its place, with some other options.

        Parameters
        ----------
        source
            Bytes of a model with the regions of this one.
        options
            Attributes of `SessionOptions` that differ from the session's.

        Returns
        -------
        onnxruntime.InferenceSession
            A session of the runtime.
        """
        threads = self.runtime.get_session_options().intra_op_num_threads
        running = self._running_fusion
        changed = replace(self._options, **options)
        given = source or (running and running.model) or self._source
        return self._load(given, threads, options=changed)

    def complete(self, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a feed of arrays, with the weights that the runtime reads as inputs."""
        return self._with_weights(self._as_arrays(feed) or feed)

    def places(self) -> dict[str, str]:
        """Return for values of the model the region that computes it, or why none does."""
        running = self._running_fusion
        return running.places() if running else {}

    def _fuse(self) -> Fusion | None:
        """Return the regions of the model that run in the native library, None without them."""
        options = self._options
        writes_model = (
            options.profile_prefix is not None or options.optimized_model_path is not None
        )
        if not self._uses_kernels or writes_model or isinstance(self._source, str) or self._weights:
            if options.reproducible:
                raise PyTensorONNXError(
                    "reproducible=True needs the native library, a model in memory of less than "
                    "2 GB, and neither a profile nor the file of the optimized model"
                )
            return None
        from pytensor_onnx.kernels.regions import fuse, require_whole

        fusion = fuse(self._source, every_size=options.reproducible)
        return require_whole(fusion) if options.reproducible else fusion

    def _run_without_regions(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model itself where a region has refused: for its result, or the user's own error.

        No lock is held, so that threads and forked processes never wait: two threads may both load
        the model, and the one that comes last is kept.
        """
        plain = self._plain
        if plain is None:
            threads = self.runtime.get_session_options().intra_op_num_threads
            self._plain = plain = self._load(self._source, threads)
        try:
            results = plain.run(self.output_names, self._with_weights(feed))
        except Exception as error:
            if is_interruption(error):
                raise
            raise self.error_for_users(error, feed) from error
        if self._options.reproducible:
            raise InputError("reproducible=True: the native library refuses these inputs")
        self._refusals += 1
        if self.has_regions and self._refusals >= MOST_REFUSALS:
            self._use(plain, has_regions=False)
        return self.own_types(results)

    def check_sizes(self, feed: Mapping[str, Any]) -> None:
        """Prepare the session for the sizes of the inputs.

        The model is loaded again, with all threads, where an operator is large for these sizes.

        Raises
        ------
        InputError
            If axes with one name differ in size; the runtime would broadcast a size of one.
        """
        sizes = tuple([feed[name].shape[axis] for name, axis in self._sized])
        if sizes in self._seen:
            return
        self.equal_sizes.check(feed)
        work = self.work  # which another thread may set to None
        if work is not None and work.exceeds(feed):
            self.work = None
            running = self._running_fusion if self._suits_large_arrays() else None
            fused = running and running.model
            self._use(self._load(fused or self._source, threads=None), has_regions=bool(fused))
        if len(self._seen) < MOST_SIZES:
            self._seen.add(sizes)

    def _suits_large_arrays(self) -> bool:
        """Return whether regions suit large arrays: the model is in float64, its results are small.

        Networks in float32 have large images, and large results take new memory in each call.
        """
        results = [x.shape for x in self.runtime.get_outputs()]
        is_small = all(isinstance(n, int) for shape in results for n in shape or [None])
        is_float32 = np.dtype("float32") in self._input_dtypes.values()
        return is_small and not is_float32

    def run(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once and return all outputs.

        Parameters
        ----------
        feed
            A value for each input that has no default, by name.

        Raises
        ------
        InputError
            If axes with one name differ in size.
        RunError
            If the runtime fails; `IndexError` and `ValueError` for errors that PyTensor raises so.
        """
        if self._sized:
            try:
                self.check_sizes(feed)
            except InputError:
                raise
            except Exception as error:
                if is_interruption(error):
                    raise
                return self._run_as_arrays(feed, error)
        return self.run_checked(feed)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the model once for arrays of the inputs in order: `vm.jit_fn` of a function."""
        return self.run(dict(zip(self.input_names, arrays, strict=True)))

    def run_checked(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once for inputs whose sizes `check_sizes` has seen."""
        if self.direct is not no_call:
            # An input with a default may be missing.
            results = self.direct(*map(feed.get, self.names_with_defaults))
            if results is not None:
                return results
        return self.run_by_runtime(feed)

    def run_by_runtime(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once by ONNX Runtime, as `run_checked`."""
        if self._weights:
            feed = {**self._weights, **feed}
        try:
            results = self._run(self.output_names, feed, None)
        except Exception as error:
            if is_interruption(error):
                raise
            return self._run_as_arrays(feed, error)
        return self.own_types(results) if self.long_outputs else results

    def written_run(self, values: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Return code that runs the model as `run_checked`, and the names in it: run, session.

        Parameters
        ----------
        values
            Expression for the value of each input by name.
        """
        feed = ", ".join(f"{name!r}: {x}" for name, x in values.items())
        names = {"run": self.run_by_runtime, "session": self}
        if self.direct is no_call or values.keys() != {*self.names_with_defaults}:
            return f"return run({{{feed}}})", names
        arrays = ", ".join(values[name] for name in self.names_with_defaults)
        code = f"results = session.direct({arrays})\n"
        return f"{code}return run({{{feed}}}) if results is None else results", names

    def own_types(self, results: list[np.ndarray]) -> list[np.ndarray]:
        """Return results of the runtime in NumPy's own types."""
        for i, dtype in self.long_outputs.items():
            results[i] = results[i].view(dtype)
        return results

    def _serialized(self, model: ir.Model) -> bytes:
        import onnx_ir as ir

        from pytensor_onnx.graph.weights import is_large, without_weights

        if is_large(model):
            model, self._weights = without_weights(model)
        return ir.to_proto(model).SerializeToString()

    def _with_weights(self, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self._weights, **feed} if self._weights else feed

    def _lacks(self) -> str:
        """Return the operators of the model for which the runtime has no kernels."""
        import onnxruntime

        from pytensor_onnx.passes.legaliser.missing_kernels import missing_kernels
        from pytensor_onnx.targets import get_profile

        missing = missing_kernels(_deserialize(self._source), get_profile("onnxruntime"))
        if not missing:
            return ""
        return (
            f"the installed ONNX Runtime {onnxruntime.__version__} has no kernel for "
            f"{', '.join(missing)}. For another runtime export with verify=False, for this one "
            'with target="onnxruntime".\n    runtime:  '
        )

    def _run_as_arrays(self, feed: Mapping[str, Any], error: Exception) -> list[np.ndarray]:
        """Run the model for numbers and lists as arrays, or raise the exception for an error."""
        arrays = self._as_arrays(feed)
        if arrays is not None:
            return self.run(arrays)
        # Another thread may have taken the regions off since.
        if self.has_regions or _IN_REGION.search(str(error)):
            return self._run_without_regions(feed)
        raise self.error_for_users(error, feed) from error

    def _as_arrays(self, feed: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """Convert numbers and lists of a feed to arrays; None if all values are arrays.

        Callers with `trust_input` pass them, and the runtime accepts arrays only. The conversion
        must preserve numbers, except for the rounding of a Python float.
        """
        if all(type(value) is np.ndarray for value in feed.values()):
            return None
        arrays = {}
        for name, value in feed.items():
            given = np.asarray(value)
            dtype = self._input_dtypes.get(name)
            if type(value) is np.ndarray or dtype is None:
                arrays[name] = given
                continue
            with np.errstate(all="ignore"):
                arrays[name] = given.astype(dtype)
            rounds = type(value) is float and dtype.kind == "f"
            if not rounds and not np.array_equal(arrays[name], given, equal_nan=dtype.kind == "f"):
                raise InputError(f"{name} is {dtype}, which cannot hold {value!r}")
        return arrays

    def _error_without_kernels(self, feed: Mapping[str, Any]) -> Exception | None:
        """Return the error of the nodes that kernels replace, which name the user's operation."""
        if self._in_full is not None:
            self._full = self._full or self._in_full()
            return self._full.error_of(feed)
        plain = self._load(self._source, threads=1, with_kernels=False)
        try:
            plain.run(self.output_names, self._with_weights(feed))
        except Exception as error:  # of any type that the runtime raises
            if is_interruption(error):
                raise
            return error
        return None

    def error_of(self, feed: Mapping[str, Any]) -> Exception | None:
        """Return the exception of a run, None if there is none."""
        try:
            self.run(feed)
        except Exception as error:  # of PyTensor's types too
            return error
        return None

    def error_for_users(self, error: Exception, feed: Mapping[str, Any]) -> Exception:
        """Return the exception for an error of the runtime, in the user's terms."""
        from pytensor_onnx.running.run_errors import explain

        model = _deserialize(self._source)
        failed = re.search(r"while running (\w+) node", str(error))
        if self._uses_kernels and failed and native.has_kernel(failed[1]):
            found = self._error_without_kernels(feed)
            if found is not None and self._in_full is not None:
                return found
            error = found or error
        return explain(error, model, self.lines, self.failures, self._with_weights(feed))


def is_on_cpu(providers: str | Sequence[str]) -> bool:
    """Return whether the processor alone runs sessions with these providers."""
    return provider_names(providers) == [PROVIDERS["cpu"]]


def uses_kernels(providers: str | Sequence[str], options: SessionOptions | None) -> bool:
    """Return whether a session of these options runs kernels of the native library."""
    kernels = options.kernels if options else None
    return is_on_cpu(providers) and native.is_on(kernels)


def kernels_of(
    model: ir.Model, providers: str | Sequence[str], options: SessionOptions | None
) -> list[str]:
    """Return the lines of `Session.kernels` for a model without loading it."""
    if not uses_kernels(providers, options):
        return []
    import onnx_ir as ir

    from pytensor_onnx.graph.weights import weight_bytes
    from pytensor_onnx.kernels.regions import MOST_BYTES, fuse

    if weight_bytes(model) < MOST_BYTES:
        fusion = fuse(ir.to_proto(model).SerializeToString())
        if fusion.model is not None:
            return fusion.lines()
    return _lines_of_functions(native.functions_of(model))


def _lines_of_functions(functions: Iterable[str]) -> list[str]:
    return [f"{x}: a kernel of its own" for x in sorted(functions) if native.has_kernel(x)]


def _allowed_threads() -> int | None:
    """Return the number of processors that the process is bound to, None if it may use all.

    The runtime's default is a thread for each core of the machine, and they would wait for each
    other.
    """
    allowed = native.processors()
    return allowed if allowed < (os.cpu_count() or 1) else None


def _deserialize(source: bytes | str) -> ir.Model:
    import onnx

    from pytensor_onnx.graph.file_parts import deserialized

    if isinstance(source, str):
        return deserialized(onnx.load(source, load_external_data=False))
    return deserialized(onnx.load_model_from_string(source))


Axis = tuple[str, str, int]
"""Name of a dimension, and an input and its axis."""


class EqualSizes:
    """Axes of the inputs of a session that must have equal sizes.

    Parameters
    ----------
    inputs
        Inputs as the runtime describes them.

    Attributes
    ----------
    axes
        The axes whose name another axis has.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        named: dict[str, list[Axis]] = {}
        for value in inputs:
            for axis, dim in enumerate(value.shape):
                if isinstance(dim, str):
                    named.setdefault(dim, []).append((dim, value.name, axis))
        self.axes = [axis for group in named.values() if len(group) > 1 for axis in group]

    def check(self, feed: Mapping[str, Any]) -> None:
        """Raise an `InputError` for sizes that do not agree."""
        known: dict[str, tuple[int, str]] = {}
        for dim, name, axis in self.axes:
            size = feed[name].shape[axis]
            first, owner = known.setdefault(dim, (size, name))
            if first != size:
                raise InputError(f"dimension {dim!r} is {first} in {owner} and {size} in {name}")
