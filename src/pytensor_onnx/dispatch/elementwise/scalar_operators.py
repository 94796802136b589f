"""Table of the scalar Ops that are one ONNX operator."""

from pytensor.scalar import basic as ps, math as psm
from pytensor.scalar.basic import ScalarOp

OPERATORS: dict[type[ScalarOp], str] = {
    ps.Exp: "Exp",
    ps.Log: "Log",
    ps.Sqrt: "Sqrt",
    ps.Sin: "Sin",
    ps.Cos: "Cos",
    ps.Tan: "Tan",
    ps.ArcSin: "Asin",
    ps.ArcCos: "Acos",
    ps.ArcTan: "Atan",
    ps.Sinh: "Sinh",
    ps.Cosh: "Cosh",
    ps.Tanh: "Tanh",
    ps.ArcSinh: "Asinh",
    ps.ArcCosh: "Acosh",
    ps.ArcTanh: "Atanh",
    ps.Ceil: "Ceil",
    ps.Floor: "Floor",
    ps.RoundHalfToEven: "Round",
    ps.Reciprocal: "Reciprocal",
    ps.TrueDiv: "Div",
    ps.Sub: "Sub",
    ps.Sign: "Sign",
    psm.Erf: "Erf",
    psm.Sigmoid: "Sigmoid",
    psm.Softplus: "Softplus",
}
COMPARISONS: dict[type[ScalarOp], str] = {
    ps.LT: "Less",
    ps.GT: "Greater",
    ps.LE: "LessOrEqual",
    ps.GE: "GreaterOrEqual",
    ps.EQ: "Equal",
}
LOGICAL_AND_BITWISE: dict[type[ScalarOp], tuple[str, str]] = {
    ps.AND: ("And", "BitwiseAnd"),
    ps.OR: ("Or", "BitwiseOr"),
    ps.XOR: ("Xor", "BitwiseXor"),
    ps.Invert: ("Not", "BitwiseNot"),
}
