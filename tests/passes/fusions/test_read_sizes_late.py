import onnx
import onnx_ir as ir

from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.fusions.read_sizes_late import read_sizes_late


def parsed(body: str) -> ir.Model:
    text = f"""
        <ir_version: 10, opset_import: ["": 21]>
        main (float[n, 3, h, w] x, float[4, 3, 3, 3] f) => (float[n, 4, a, b] y, int64[4] s)
        {{ {body} }}
    """
    proto = onnx.parser.parse_model(text)
    for name in ("c", "r", "t", "y"):
        proto.graph.value_info.append(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 4, "a", "b"])
        )
    return ir.from_proto(proto)


def operand_of_shape(model: ir.Model) -> str:
    (shape,) = (node for node in model.graph if node.op_type == "Shape")
    assert shape.inputs[0] is not None
    return str(shape.inputs[0].name)


def test_sizes_of_a_convolution_are_read_behind_its_activation():
    model = parsed("c = Conv(x, f)  s = Shape(c)  r = Relu(c)  y = Tanh(r)")
    assert read_sizes_late(model, ModelScope(21)) == 1
    assert operand_of_shape(model) == "y"
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_sizes_are_read_before_an_array_with_two_uses_is_left():
    model = parsed("c = Conv(x, f)  s = Shape(c)  r = Relu(c)  t = Tanh(r)  y = Mul(t, r)")
    assert read_sizes_late(model, ModelScope(21)) == 1
    assert operand_of_shape(model) == "r"


def test_sizes_that_an_operator_needs_are_read_before_it():
    model = parsed("c = Conv(x, f)  s = Shape(c)  e = Expand(f, s)  y = Add(c, e)")
    assert read_sizes_late(model, ModelScope(21)) == 0
    assert operand_of_shape(model) == "c"
