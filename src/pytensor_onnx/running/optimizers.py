"""Disable optimizers of ONNX Runtime that look for operators which a large model lacks.

Each goes through all nodes when a session is created: some 40 take a third of the time of a large
model. Small models keep them all, as there the time of the list is not worth its upkeep.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

LARGE = 1000
"""Nodes, those of called functions included, from which on optimizers are disabled."""
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


def needless_optimizers(model: ir.Model) -> list[str]:
    """Return the optimizers that cannot change a large model; none for a small one.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = y = pt.vector("x")
    >>> for _ in range(100):
    ...     y = pt.sin(y)
    >>> needless = needless_optimizers(export_onnx([x], y, verify=False).model)
    >>> "TransposeOptimizer" in needless
    True
    """
    nodes = [*model.graph.all_nodes()]
    calls = Counter(node.op_identifier() for node in nodes)
    sizes = {key: len(function) for key, function in model.functions.items()}
    if len(nodes) + sum(calls[key] * size for key, size in sizes.items()) < LARGE:
        return []
    for function in model.functions.values():
        nodes += function.all_nodes()
    present = {node.op_type for node in nodes}
    return [name for name, operators in OPERATORS.items() if present.isdisjoint(operators)]
