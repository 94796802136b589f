"""Small valid calls of every numeric ONNX operator, and of variants with kernels of their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir


class Main:
    """Operand values to be given in the dtype under probe (or the nearest the schema allows)."""

    def __init__(self, *shape: int, values: Any = None):
        count = int(np.prod(shape, dtype=int))
        self.values = (
            np.arange(1, count + 1).reshape(shape) if values is None else np.asarray(values)
        )


Operand = Main | np.ndarray | None
Attribute = int | float | str | list[int] | list[float] | Callable[[ir.DataType], Any]


@dataclass(frozen=True)
class Case:
    """A call of an operator: operands in order, attributes, and the variant it stands for.

    `variant` names an attribute whose value decides about the kernel; other cases of the same
    operator and variant must run as well for a dtype to count.
    """

    op_type: str
    operands: tuple[Operand, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    variant: str = ""
    outputs: int = 1

    @property
    def key(self) -> str:
        """Name of the row in the kernel table."""
        if not self.variant:
            return self.op_type
        return f"{self.op_type}[{self.variant}={self.attributes[self.variant]}]"


def words(text: str) -> list[str]:
    return text.split()


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def integer(value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)


def _like_dtype(dtype: ir.DataType) -> int:
    return int(dtype)


def _filled(dtype: ir.DataType) -> Any:
    import onnx

    return onnx.numpy_helper.from_array(np.ones(1, dtype.numpy()))


MATRIX = Main(2, 3)
IMAGE = Main(1, 1, 4, 4)

UNARY = words("""
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Flatten Floor
    HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Log LogSoftmax LpNormalization Mish
    Neg NonZero Not Reciprocal Relu Round Selu Shape Shrink Sigmoid Sign Sin Sinh Size Softmax
    Softplus Softsign Sqrt Squeeze Swish Tan Tanh ThresholdedRelu Transpose
""")
BINARY = words("""
    Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mul Or
    PRelu Pow Sub Xor
""")
VARIADIC = words("Max Mean Min Sum")
REDUCTIONS = words("""
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare
""")
WINDOWS = words("BlackmanWindow HammingWindow HannWindow")

ELEMENTWISE_AND_REDUCTIONS: list[Case] = [
    *(Case(op, (MATRIX,)) for op in UNARY),
    *(Case(op, (MATRIX, MATRIX)) for op in BINARY),
    *(Case(op, (MATRIX,) * n) for op in VARIADIC for n in (1, 2, 3)),
    *(Case(op, (MATRIX, ints(1))) for op in REDUCTIONS),
    *(Case(op, (MATRIX,), {"keepdims": 0}) for op in REDUCTIONS),
    *(Case("BitShift", (MATRIX, MATRIX), {"direction": d}) for d in ("LEFT", "RIGHT")),
    *(Case("Mod", (MATRIX, MATRIX), {"fmod": f}, "fmod") for f in (0, 1)),
    Case("Pow", (MATRIX, ints(1, 2, 3))),
    Case("Gelu", (MATRIX,), {"approximate": "none"}, "approximate"),
    Case("Gelu", (MATRIX,), {"approximate": "tanh"}, "approximate"),
    Case("Clip", (MATRIX,)),
    Case("Clip", (MATRIX, Main())),
    Case("Clip", (MATRIX, None, Main())),
    Case("Clip", (MATRIX, Main(), Main())),
    Case("Dropout", (MATRIX,)),
    Case("Where", (np.array([True, False, True]), MATRIX, MATRIX)),
    *(Case(op, (MATRIX,), {"axis": 1}) for op in ("ArgMax", "ArgMin")),
    Case("CumSum", (MATRIX, integer(1))),
    Case("CumSum", (MATRIX, integer(1)), {"exclusive": 1, "reverse": 1}),
    Case("CumProd", (MATRIX, integer(1))),
    Case("TopK", (MATRIX, ints(2)), outputs=2),
    Case("TopK", (MATRIX, ints(2)), {"largest": 0}, outputs=2),
    Case("Unique", (MATRIX,), outputs=4),
    Case("Unique", (MATRIX,), {"axis": 0}, outputs=4),
]

SHAPES_AND_INDICES: list[Case] = [
    Case("Concat", (MATRIX, MATRIX), {"axis": 0}),
    Case("Compress", (MATRIX, np.array([True, False])), {"axis": 0}),
    Case("Constant", (), {"value": _filled}),
    Case("ConstantOfShape", (ints(2),), {"value": _filled}),
    Case("Expand", (MATRIX, ints(2, 2, 3))),
    Case("EyeLike", (MATRIX,), {"dtype": _like_dtype}),
    Case("Gather", (MATRIX, ints(1, 0)), {"axis": 1}),
    Case("GatherElements", (MATRIX, ints(1, 0, 1).reshape(1, 3))),
    Case("GatherND", (MATRIX, ints(1, 0).reshape(1, 2))),
    Case("OneHot", (ints(1, 0), integer(3), Main(2))),
    *(
        Case("Pad", (MATRIX, ints(0, 1, 0, 1)), {"mode": m}, "mode")
        for m in ("constant", "edge", "reflect", "wrap")
    ),
    Case("Pad", (MATRIX, ints(0, 1, 0, 1), Main()), {"mode": "constant"}, "mode"),
    Case("Range", (Main(values=0), Main(values=3), Main())),
    Case("Reshape", (MATRIX, ints(3, 2))),
    Case("ReverseSequence", (MATRIX, ints(1, 2, 1))),
    *(
        Case(
            "ScatterElements",
            (MATRIX, ints(1, 0).reshape(1, 2), Main(1, 2)),
            {"reduction": r},
            "reduction",
        )
        for r in ("none", "add", "mul", "max", "min")
    ),
    *(
        Case(
            "ScatterND", (MATRIX, ints(1, 0).reshape(1, 2), Main(1)), {"reduction": r}, "reduction"
        )
        for r in ("none", "add", "mul", "max", "min")
    ),
    Case("Slice", (MATRIX, ints(0), ints(2), ints(1), ints(1))),
    Case("Slice", (MATRIX, ints(-1), ints(-9), ints(1), ints(-1))),
    Case("Split", (MATRIX, ints(1, 2)), {"axis": 1}, outputs=2),
    Case("Split", (MATRIX,), {"axis": 0, "num_outputs": 2}, outputs=2),
    Case("TensorScatter", (Main(1, 1, 2, 2), Main(1, 1, 1, 2), ints(0))),
    Case("Tile", (MATRIX, ints(2, 1))),
    Case("Transpose", (MATRIX,), {"perm": [1, 0]}),
    Case("Trilu", (MATRIX,)),
    Case("Trilu", (MATRIX, integer(1)), {"upper": 0}),
    Case("Unsqueeze", (MATRIX, ints(0))),
    Case("CenterCropPad", (MATRIX, ints(1, 4))),
    Case("DepthToSpace", (Main(1, 4, 1, 1),), {"blocksize": 2}),
    Case("SpaceToDepth", (Main(1, 1, 2, 2),), {"blocksize": 2}),
    Case("Col2Im", (Main(1, 4, 1), ints(2, 2), ints(2, 2))),
]

RNN_SIZE = {"hidden_size": 1}
LINEAR_ALGEBRA_AND_NETWORKS: list[Case] = [
    Case("MatMul", (MATRIX, Main(3, 2))),
    Case("MatMul", (Main(2, 1, 2), Main(2, 2, 1))),
    Case("MatMul", (Main(2), Main(2))),
    Case("Gemm", (MATRIX, Main(3, 2))),
    Case("Gemm", (MATRIX, MATRIX, Main(2)), {"transB": 1}),
    Case("Det", (Main(2, 2),)),
    *(Case("Einsum", (Main(2, 2),), {"equation": e}) for e in ("ij->i", "ii->i", "ij->ji")),
    *(Case("Einsum", (Main(2, 2),) * 2, {"equation": e}) for e in ("ij,jk->ik", "ij,ij->")),
    Case("DFT", (Main(1, 4, 1),)),
    Case("DFT", (Main(1, 4, 1),), {"onesided": 1}),
    Case("DFT", (Main(1, 2, 2),), {"inverse": 1}),
    Case("STFT", (Main(1, 8, 1), integer(2), Main(4))),
    *(Case(op, (integer(4),), {"output_datatype": _like_dtype}) for op in WINDOWS),
    Case(
        "MelWeightMatrix",
        (integer(4), integer(8), integer(8000), floats(0).reshape(()), floats(4000).reshape(())),
        {"output_datatype": _like_dtype},
    ),
    Case("Conv", (IMAGE, Main(1, 1, 2, 2), Main(1))),
    Case("Conv", (Main(1, 1, 4), Main(1, 1, 2))),
    Case("ConvTranspose", (IMAGE, Main(1, 1, 2, 2))),
    Case("ConvInteger", (IMAGE, Main(1, 1, 2, 2))),
    Case("DeformConv", (IMAGE, Main(1, 1, 2, 2), Main(1, 8, 3, 3))),
    *(Case(op, (IMAGE,), {"kernel_shape": [2, 2]}) for op in ("AveragePool", "LpPool", "MaxPool")),
    Case("MaxPool", (IMAGE,), {"kernel_shape": [2, 2]}, outputs=2),
    *(Case(f"Global{kind}Pool", (IMAGE,)) for kind in ("Average", "Lp", "Max")),
    Case("MaxUnpool", (Main(1, 1, 1, 1), ints(3).reshape(1, 1, 1, 1)), {"kernel_shape": [2, 2]}),
    Case("MaxRoiPool", (IMAGE, Main(values=[[0, 0, 0, 3, 3]])), {"pooled_shape": [1, 1]}),
    Case("RoiAlign", (IMAGE, Main(values=[[0, 0, 3, 3]]), ints(0))),
    Case(
        "NonMaxSuppression",
        (floats(0, 0, 1, 1).reshape(1, 1, 4), floats(1).reshape(1, 1, 1), ints(1)),
    ),
    Case("LRN", (IMAGE,), {"size": 1}),
    Case("BatchNormalization", (IMAGE, Main(1), Main(1), Main(1), Main(1))),
    Case("BatchNormalization", (IMAGE, *(Main(1),) * 4), {"training_mode": 1}, outputs=3),
    Case("InstanceNormalization", (IMAGE, Main(1), Main(1))),
    Case("GroupNormalization", (Main(1, 2, 2, 2), Main(2), Main(2)), {"num_groups": 1}),
    Case("LayerNormalization", (MATRIX, Main(3), Main(3))),
    Case("RMSNormalization", (MATRIX, Main(3))),
    Case("MeanVarianceNormalization", (IMAGE,)),
    *(
        Case("Resize", (IMAGE, None, floats(1, 1, 2, 2)), {"mode": m}, "mode")
        for m in ("nearest", "linear", "cubic")
    ),
    Case("GridSample", (IMAGE, Main(values=np.zeros((1, 1, 1, 2))))),
    Case("GridSample", (IMAGE, Main(values=np.zeros((1, 1, 1, 2)))), {"mode": "nearest"}),
    Case("AffineGrid", (Main(1, 2, 3), ints(1, 1, 2, 2))),
    Case("RNN", (Main(1, 1, 2), Main(1, 1, 2), Main(1, 1, 1)), RNN_SIZE),
    Case("GRU", (Main(1, 1, 2), Main(1, 3, 2), Main(1, 3, 1)), RNN_SIZE),
    Case("LSTM", (Main(1, 1, 2), Main(1, 4, 2), Main(1, 4, 1)), RNN_SIZE),
    Case("Attention", (Main(1, 1, 2, 2),) * 3),
    Case("RotaryEmbedding", (Main(1, 1, 2, 2), Main(2, 1), Main(2, 1), ints(0, 1).reshape(1, 2))),
    Case("NegativeLogLikelihoodLoss", (MATRIX, ints(0, 1))),
    Case("SoftmaxCrossEntropyLoss", (MATRIX, ints(0, 1))),
    Case("QuantizeLinear", (MATRIX, Main(), np.array(0, np.uint8))),
    Case("QuantizeLinear", (MATRIX, Main(), np.array(0, np.int8))),
    Case("DequantizeLinear", (MATRIX, np.array(1, np.float32))),
    Case("DynamicQuantizeLinear", (MATRIX,), outputs=3),
    Case("MatMulInteger", (MATRIX, Main(3, 2))),
    Case(
        "QLinearConv",
        (
            IMAGE,
            *(floats(1).reshape(()), Main()),
            Main(1, 1, 2, 2),
            *(floats(1).reshape(()), Main()) * 2,
        ),
    ),
    Case(
        "QLinearMatMul",
        (
            MATRIX,
            *(floats(1).reshape(()), Main()),
            Main(3, 2),
            *(floats(1).reshape(()), Main()) * 2,
        ),
    ),
    *(
        Case(op, (), {"dtype": _like_dtype, "shape": [2]})
        for op in ("RandomNormal", "RandomUniform")
    ),
    *(
        Case(f"{op}Like", (MATRIX,), {"dtype": _like_dtype})
        for op in ("RandomNormal", "RandomUniform")
    ),
    Case("Multinomial", (MATRIX,)),
    Case("Bernoulli", (MATRIX,)),
]
