"""Eigenvalues and Schur forms of real matrices, which are complex."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.decomposition.eigen import Eig
from pytensor.tensor.linalg.decomposition.schur import Schur

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.eigenvalues import RealEig, TriangularSchur
from pytensor_onnx.rewriting.complex_numbers.parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    real_dtype,
)


@ENCODING.rewrites(Eig, Schur)
def decompose(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the results for real matrices, and None for complex ones."""
    core = getattr(op, "core_op", op)
    if is_complex(node.inputs[0]):
        return None
    (x,) = inputs[0]
    of_parts = RealEig() if isinstance(core, Eig) else TriangularSchur(core.sort)
    parts = Blockwise(of_parts)(x.astype(real_dtype(*node.outputs)))
    return [[joined(Parts(*parts[i : i + 2]))] for i in (0, 2)]
