"""Settings of sessions: optimizers and providers.

Each goes through all nodes when a session is created: some 40 take a fifth of its time.
Functions are inlined after the basic optimizers where these would change little in them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pytensor_onnx.errors import PyTensorONNXError

if TYPE_CHECKING:
    import onnx_ir as ir


_IMAGES = ("Conv", "ConvTranspose", "QLinearConv", "MaxPool", "AveragePool", "Resize")
_NORMS = ("LayerNormalization", "RMSNormalization", "ReduceMean")
_PRODUCTS = ("MatMul", "Gemm")
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger")
OPERATORS = {
    "AttentionFusion": ("Softmax",),
    "BiasDropoutFusion": ("Dropout",),
    "BiasGeluFusion": ("Erf", "Gelu", "Tanh"),
    "BiasSkipLayerNormFusion": _NORMS,
    "BiasSoftmaxFusion": ("Softmax",),
    "ConvActivationFusion": ("Conv",),
    "ConvAddActivationFusion": ("Conv",),
    "DoubleQDQPairsRemover": _QUANTIZED,
    "DynamicQuantizeMatMulFusion": _QUANTIZED,
    "EmbedLayerNormFusion": _NORMS,
    "EnsureUniqueDQForNodeUnit": _QUANTIZED,
    "FastGeluFusion": ("Tanh",),
    "GatherSliceToSplitFusion": ("Gather", "Slice"),
    "GeluFusionL1": ("Erf",),
    "GeluFusionL2": ("Erf",),
    "GemmActivationFusion": _PRODUCTS,
    "GroupQueryAttentionFusion": ("Softmax", "Attention"),
    "GroupQueryAttentionPreNormFusion": ("Softmax", "Attention"),
    "LayerNormFusionL1": _NORMS,
    "LayerNormFusionL2": _NORMS,
    "MatMulActivationFusion": _PRODUCTS,
    "MatMulAddFusion": _PRODUCTS,
    "MatMulIntegerToFloatFusion": _QUANTIZED,
    "MatMulNBitsFusion": _QUANTIZED,
    "MatMulScaleFusion": _PRODUCTS,
    "MatmulTransposeFusion": _PRODUCTS,
    "NchwcTransformer": _IMAGES,
    "NhwcTransformer": _IMAGES,
    "QDQFinalCleanupTransformer": _QUANTIZED,
    "QDQPropagationTransformer": _QUANTIZED,
    "QDQS8ToU8Transformer": _QUANTIZED,
    "QDQSelectorActionTransformer": _QUANTIZED,
    "QuickGeluFusion": ("Sigmoid",),
    "ReshapeFusion": ("Reshape",),
    "SimplifiedLayerNormFusion": _NORMS,
    "SkipLayerNormFusion": _NORMS,
    "SliceConcatToSpaceToDepthFusion": ("Slice",),
    "SwiGluFusion": ("Sigmoid",),
    "TransposeOptimizer": ("Transpose",),
    "TransposeOptimizer_CPUExecutionProvider": ("Transpose",),
    "WeightBiasQuantization": _QUANTIZED,
    "WhereDummyDq": _QUANTIZED,
}
"""Optimizers of ONNX Runtime by name, each with operators without which it changes nothing."""

INLINE_LATE = {"session.disable_aot_function_inlining": "1"}
"""Configuration of a session that inlines functions after the basic optimizers."""


def needless_optimizers(model: ir.Model) -> list[str]:
    """Return the optimizers that cannot change a model.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.vector("x")
    >>> needless = needless_optimizers(export_onnx([x], pt.sin(x), verify=False).model)
    >>> "TransposeOptimizer" in needless
    True
    """
    from pytensor_onnx.graph.traversal import nodes_of_model

    present = {node.op_type for node in nodes_of_model(model)}
    return [name for name, operators in OPERATORS.items() if present.isdisjoint(operators)]


def inlines_late(needless: Collection[str]) -> bool:
    """Return whether a session inlines functions after the basic optimizers.

    In functions, these matter to convolutions and pools: they fuse sums and paddings with them.

    Parameters
    ----------
    needless
        Result of `needless_optimizers` for the model.
    """
    return "NchwcTransformer" in needless


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
