"""Eigenvalues and Schur forms of real matrices and pencils, which are complex."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.eigen import Eig
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.linalg.eigenvalue_ops import RealEig, RealQZ, TriangularQZ, TriangularSchur
from pytensor_onnx.rewriting.complex.complex_linear_algebra import compute
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    real_dtype,
)
from pytensor_onnx.rewriting.engine.inner_graphs import core_op


@ENCODING.rewrites(Eig, Schur)
def decompose(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Decompose real matrices by PyTensor's Op and complex ones by ours."""
    core = core_op(op)
    if is_complex(node.inputs[0]):
        return compute(op, node, inputs)
    (x,) = inputs[0]
    of_parts = RealEig() if isinstance(core, Eig) else TriangularSchur(core.sort)
    parts = Blockwise(of_parts)(x.astype(real_dtype(*node.outputs)))
    return [[joined(Parts(*parts[i : i + 2]))] for i in (0, 2)]


@ENCODING.rewrites(QZ)
def decompose_pencil(op: Op, node: Apply, inputs: Sequence[Tensors]) -> Sequence[Tensors] | None:
    """Decompose real matrices by PyTensor's Op and complex ones by ours."""
    core = core_op(op)
    if any(map(is_complex, node.inputs)):
        return compute(op, node, inputs)
    dtype = real_dtype(*node.outputs)
    a, b = (x.astype(dtype) for (x,) in inputs)
    if core.complex_output:
        parts = Blockwise(TriangularQZ(core.sort))(a, b)
        aa, bb, q, z, alpha = ([joined(Parts(*parts[i : i + 2]))] for i in range(0, 10, 2))
        beta = [joined(Parts(parts[10], pt.zeros_like(parts[10])))]
    else:
        aa, bb, q, z, real, imag, beta = ([x] for x in Blockwise(RealQZ(core.sort))(a, b))
        alpha = [joined(Parts(real[0], imag[0]))]
    return [aa, bb, alpha, beta, q, z] if core.return_eigenvalues else [aa, bb, q, z]
