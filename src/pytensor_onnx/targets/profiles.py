"""Profiles of the supported runtimes."""

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.targets.profile import Profile

_PORTABLE = Profile(
    "portable",
    kernels="kernels_onnxruntime.json",
    refuses_defaults=True,
    is_portable=True,
    splits_words=True,
    # Few runtimes know the size of its result.
    avoided=frozenset({"Compress"}),
)

# It computes float64 in float32 and int64 in int32: operators without a right kernel are refused.
_OPENVINO = Profile(
    "openvino",
    kernels="kernels_openvino.json",
    refuses_defaults=True,
    is_portable=True,
    splits_words=True,
    precision="float32",
    latest_opset=21,
    avoided=frozenset({"Compress"}),
)

# It runs loops over sequences only.
_TRACT = Profile(
    "tract",
    kernels="kernels_tract.json",
    why_no_draws="tract takes minutes to load them",
    refuses_defaults=True,
    is_portable=True,
    latest_opset=21,
    avoided=frozenset({"Compress"}),
)

_ONNXRUNTIME = Profile("onnxruntime", kernels="kernels_onnxruntime.json", merges_short_images=True)

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


def get_profile(name: str) -> Profile:
    """Return the profile of a runtime.

    Parameters
    ----------
    name
        ``"onnxruntime"`` (CPU), ``"web"`` (ONNX Runtime in WebAssembly), ``"webgpu"`` (in
        WebAssembly and on WebGPU), ``"node"`` (onnxruntime-node, the CPU in Node.js)
        ``"portable"`` (runtimes of other makers), which is called ``"standard"`` as well,
        ``"openvino"`` or ``"tract"``.

    Raises
    ------
    ArgumentError
        There is no profile of that name.

    Examples
    --------
    >>> get_profile("web").refuses_defaults
    True
    """
    try:
        return _PROFILES[_ALIASES.get(name, name)]
    except KeyError:
        names = ", ".join(repr(known) for known in _PROFILES)
        raise ArgumentError(f"no target is called {name!r}; there are {names}") from None
