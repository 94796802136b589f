"""Profiles of targets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.targets.kernel_tables import load_kernels

COARSE = 100
"""Error of an operator in units in the last place that is more than rounding."""

COARSE_ABSOLUTE = 1e-5
"""The same relative to one or the result, for activations of networks."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Properties of a runtime, for the passes and the exporter."""

    name: str
    """Name of the target."""

    kernels: str
    """File of the kernel table."""

    others: tuple[str, ...] = ()
    """Files of kernel tables of further runtimes, whose operators have to be accurate, too: those
    that the target means, and ONNX Runtime, which verifies files."""

    refuses_defaults: bool = False
    """A value given for an input that has a default is refused, or ignored in silence."""

    is_portable: bool = False
    """Files are for runtimes of any maker: see `docs/reference/targets.md`."""

    keeps_functions: bool = False
    """Functions stay functions in a portable file, for a library of functions."""

    splits_words: bool = False
    """States of generators are numbers of 16 bits, for runtimes that lack integers of 64 bits."""

    folds_constants: bool = False
    """Functions are written out, and constants computed at export: the optimizer fails at some."""

    way_out: str = ""
    """Advice to users whose graph needs operators that the runtime lacks."""

    masks_draws: bool = False
    """Draws by rejection keep the sizes of arrays: tapes have none that depend on values."""

    why_no_draws: str = ""
    """Reason why files do not draw random numbers; empty if they do."""

    avoided: frozenset[str] = frozenset()
    """Operators that are replaced although the kernel table has them."""

    merges_short_images: bool = False
    """Convolutions of short images are faster for all images of a batch at once."""

    accelerator: str | None = None
    """File of the kernel table of an accelerator; the processor runs all other operators."""

    precision: str | None = None
    """Widest dtype of floats in a model, unless its export asks for another."""

    advice: str = ""
    """Advice on the runtime, which the changes of a program have."""

    latest_opset: int = 23
    """Opset whose operators the runtime is fastest with."""

    last_opset: int | None = None
    """Last opset that the runtime knows, where its kernel table has later ones."""

    @property
    def max_opset(self) -> int:
        """The last opset that the runtime knows."""
        return self.last_opset or load_kernels(self.kernels).max_opset

    @property
    def has_scan(self) -> bool:
        """Whether the runtime has a right Scan."""
        table = load_kernels(self.kernels)
        return table.supports("Scan", ir.DataType.FLOAT, table.max_opset)

    def supports(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Return whether an operator of the standard runs in a dtype.

        Parameters
        ----------
        op_type
            Name of a standard operator.
        dtype
            Dtype of its main type variable, see `pytensor_onnx.targets.main_type`.
        opset_version
            Opset of the model, from 18 on; function bodies depend on it and not on the
            operator's own version alone.
        attributes
            Attributes of the node, plain or as `onnx_ir.Attr`. Without them the answer is whether
            all variants of the operator run.

        Raises
        ------
        ValueError
            Nothing is known about the opset.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> profile = get_profile("onnxruntime")
        >>> profile.supports("Erf", ir.DataType.FLOAT, 21)
        True
        >>> profile.supports("Erf", ir.DataType.DOUBLE, 21)
        False
        >>> profile.supports("Mod", ir.DataType.DOUBLE, 21, {"fmod": 1})
        True
        """
        if op_type in self.avoided:
            return False
        return self._has_kernel(self.kernels, op_type, dtype, opset_version, attributes)

    def is_wrong(self, op_type: str, dtype: ir.DataType, opset_version: int) -> bool:
        """Return whether the runtime runs an operator in a dtype, with other results.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> get_profile("openvino").is_wrong("Mul", ir.DataType.DOUBLE, 21)
        True
        """
        row = load_kernels(self.kernels).wrong.get(op_type)
        return row is not None and dtype in row.at(opset_version)

    def is_coarse(self, op_type: str, dtype: ir.DataType, *, absolute: bool = False) -> bool:
        """Return whether an elementwise operator loses digits somewhere in its domain.

        Parameters
        ----------
        op_type, dtype
            The operator and its dtype.
        absolute
            Whether small results may lose theirs, as activations of networks do.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> portable = get_profile("portable")
        >>> portable.is_coarse("Sigmoid", ir.DataType.DOUBLE)
        True
        >>> portable.is_coarse("Sigmoid", ir.DataType.FLOAT, absolute=True)
        False
        >>> portable.is_coarse("Exp", ir.DataType.DOUBLE)
        False
        """
        for file in (self.kernels, *self.others):
            ulps, of_one = load_kernels(file).accuracy.get(op_type, {}).get(dtype, (0.0, 0.0))
            if (of_one > COARSE_ABSOLUTE) if absolute else (ulps > COARSE):
                return True
        return False

    def accelerates(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Return whether an operator runs on the accelerator, with the arguments of `supports`.

        Examples
        --------
        >>> from pytensor_onnx.targets import get_profile
        >>> get_profile("webgpu").accelerates("MatMul", ir.DataType.FLOAT, 21)
        True
        >>> get_profile("webgpu").accelerates("Loop", ir.DataType.FLOAT, 21)
        False
        """
        if self.accelerator is None:
            return False
        return self._has_kernel(self.accelerator, op_type, dtype, opset_version, attributes)

    def _has_kernel(
        self,
        file: str,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Mapping[str, Any] | None,
    ) -> bool:
        table = load_kernels(file)
        if not table.min_opset <= opset_version <= table.max_opset:
            raise ValueError(
                f"profile {self.name!r} knows opsets {table.min_opset} to {table.max_opset}, "
                f"not {opset_version}"
            )
        return table.supports(op_type, dtype, opset_version, attributes)


PROMISED_VERSION = "1.30"
"""Version of ONNX Runtime from which on files run, unless an export asks for an earlier one."""

NEWEST_VERSION = "1.32"
"""Version of ONNX Runtime that opsets 27 and 28 need."""

_PORTABLE = Profile(
    "portable",
    kernels="kernels_onnxruntime.json",
    others=("kernels_openvino.json", "kernels_tract.json"),
    refuses_defaults=True,
    is_portable=True,
    splits_words=True,
    # Few runtimes know the size of the result of Compress; MNN lacks IsInf.
    avoided=frozenset({"Compress", "IsInf"}),
)

# It computes float64 in float32 and int64 in int32: operators without a right kernel are refused.
_OPENVINO = Profile(
    "openvino",
    kernels="kernels_openvino.json",
    others=("kernels_onnxruntime.json",),
    refuses_defaults=True,
    is_portable=True,
    splits_words=True,
    precision="float32",
    latest_opset=21,
    avoided=frozenset({"Compress"}),
    advice="OpenVINO computes in bfloat16 on processors that have it, and in float32 with "
    'core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})',
)

# It runs loops over sequences only.
_TRACT = Profile(
    "tract",
    kernels="kernels_tract.json",
    others=("kernels_onnxruntime.json",),
    why_no_draws="tract takes minutes to load them",
    refuses_defaults=True,
    is_portable=True,
    latest_opset=21,
    avoided=frozenset({"Compress"}),
)

_ONNXRUNTIME = Profile("onnxruntime", kernels="kernels_onnxruntime.json", merges_short_images=True)

_PROMISED = replace(_ONNXRUNTIME, last_opset=26)

_OLDER = {
    version: Profile(
        f"onnxruntime {version}",
        kernels=f"kernels_onnxruntime_{version.replace('.', '_')}.json",
        merges_short_images=True,
        folds_constants=True,
        way_out="\nChoose a later runtime_version; without one, files are for "
        f"ONNX Runtime {PROMISED_VERSION}.",
        latest_opset=21,
    )
    for version in ("1.18", "1.22")
}
"""Earlier versions of ONNX Runtime; the profile of each serves up to the next one."""

_WEB = Profile(
    "web",
    kernels="kernels_web.json",
    refuses_defaults=True,
    precision="float32",
    masks_draws=True,
)

# The build for WebGPU runs the operators that WebGPU lacks by its kernels in WebAssembly.
_WEBGPU = Profile(
    "webgpu",
    kernels="kernels_web.json",
    accelerator="kernels_webgpu.json",
    refuses_defaults=True,
    precision="float32",
)

# The native runtime; its binding for Node.js ignores values for inputs with defaults.
_NODE = Profile(
    "node",
    kernels="kernels_onnxruntime.json",
    refuses_defaults=True,
    last_opset=load_kernels("kernels_web.json").max_opset,
)

_PROFILES = {
    profile.name: profile
    for profile in (_ONNXRUNTIME, _WEB, _WEBGPU, _NODE, _PORTABLE, _OPENVINO, _TRACT)
}

_ALIASES = {"standard": "portable"}


def get_profile(name: str, runtime_version: str | None = None) -> Profile:
    """Return the profile of a runtime.

    Parameters
    ----------
    name
        ``"onnxruntime"`` (CPU), ``"web"`` (ONNX Runtime in WebAssembly), ``"webgpu"`` (in
        WebAssembly and on WebGPU), ``"node"`` (onnxruntime-node, the CPU in Node.js)
        ``"portable"`` (runtimes of other makers), which is called ``"standard"`` as well,
        ``"openvino"`` or ``"tract"``.
    runtime_version
        Lowest version of ONNX Runtime that the profile is for, `PROMISED_VERSION` unless given.

    Raises
    ------
    ArgumentError
        There is no profile of that name, or of that version.

    Examples
    --------
    >>> get_profile("web").refuses_defaults
    True
    >>> get_profile("onnxruntime", "1.20").max_opset
    21
    """
    if runtime_version is not None:
        return _profile_of_version(name, runtime_version)
    try:
        return _PROFILES[_ALIASES.get(name, name)]
    except KeyError:
        names = ", ".join(repr(known) for known in _PROFILES)
        raise ArgumentError(f"no target is called {name!r}; there are {names}") from None


def _profile_of_version(name: str, runtime_version: str) -> Profile:
    if get_profile(name) is not _ONNXRUNTIME:
        raise ArgumentError(
            f"runtime_version is for target='onnxruntime', not {name!r}, whose files are for its "
            "newest version"
        )
    version = _release(runtime_version)
    known = {_release(text): profile for text, profile in _OLDER.items()}
    known[_release(PROMISED_VERSION)] = _PROMISED
    known[_release(NEWEST_VERSION)] = _ONNXRUNTIME
    if version < min(known):
        raise ArgumentError(
            f"runtime_version={runtime_version!r} is too low: files are for ONNX Runtime "
            f"{next(iter(_OLDER))} and later"
        )
    return known[max(release for release in known if release <= version)]


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+(\.\d+)*", version):
        raise ArgumentError(f"runtime_version is a text such as '1.20', not {version!r}")
    return tuple(int(number) for number in version.split(".")[:2])
