"""Profiles of the supported runtimes."""

import re

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.targets.profile import Profile

PROMISED_VERSION = "1.30"
"""Version of ONNX Runtime from which on files run, unless an export asks for an earlier one."""

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

_WEB = Profile("web", kernels="kernels_web.json", refuses_defaults=True, precision="float32")

# The build for WebGPU runs the operators that WebGPU lacks by its kernels in WebAssembly.
_WEBGPU = Profile(
    "webgpu",
    kernels="kernels_web.json",
    accelerator="kernels_webgpu.json",
    refuses_defaults=True,
    precision="float32",
)

# The native runtime; its binding for Node.js ignores values for inputs with defaults.
_NODE = Profile("node", kernels="kernels_onnxruntime.json", refuses_defaults=True)

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
    known[_release(PROMISED_VERSION)] = _ONNXRUNTIME
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
