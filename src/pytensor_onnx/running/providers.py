"""Names of ONNX Runtime's execution providers."""

from collections.abc import Sequence

from pytensor_onnx.errors import PyTensorONNXError

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "directml": "DmlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}


def provider_names(providers: str | Sequence[str]) -> list[str]:
    """Return the runtime's names of execution providers, with the CPU last by default.

    Raises
    ------
    PyTensorONNXError
        If a provider is not part of the installed runtime.

    Examples
    --------
    >>> provider_names("cpu")
    ['CPUExecutionProvider']
    """
    import onnxruntime as ort

    wanted = [providers] if isinstance(providers, str) else list(providers)
    names = [PROVIDERS.get(name.lower(), name) for name in wanted]
    available = ort.get_available_providers()
    missing = [name for name in names if name not in available]
    if missing:
        raise PyTensorONNXError(
            f"the installed ONNX Runtime has no {', '.join(missing)}; it has "
            f"{', '.join(available)}. Install the build of ONNX Runtime for it "
            "(onnxruntime-gpu for CUDA and TensorRT) or choose another provider"
        )
    if PROVIDERS["cpu"] not in names:
        names.append(PROVIDERS["cpu"])
    return names
