"""Pictures show inputs, outputs, operators, constants and names, and are valid SVG."""

from time import perf_counter
from xml.etree import ElementTree

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx
from pytensor_onnx.pictures.graph_picture import MOST_NODES, draw_graph

SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture) -> dict[str, list[list[str]]]:
    """Return the lines of the boxes of a picture, by their kinds; the last ones are captions."""
    root = ElementTree.fromstring(str(picture))
    found: dict[str, list[list[str]]] = {}
    for group in root.iter(f"{SVG}g"):
        texts = ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
        found.setdefault(group.get("class"), []).append(texts)
    return found


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> m {text}')


def chain(operators: list[str]) -> ir.Model:
    """Return a model that applies operators one after the other."""
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))
    value, nodes = x, []
    for operator in operators:
        nodes.append(ir.node(operator, [value]))
        value = nodes[-1].outputs[0]
    value.name = "y"
    return ir.Model(ir.Graph([x], [value], nodes=nodes, opset_imports={"": 21}), ir_version=10)


def test_each_input_output_and_operator_occurs():
    x, y = pt.matrix("x", shape=(None, 3)), pt.vector("y")
    outputs = {"a": pt.exp(x), "b": y.sum()}
    found = boxes(export_onnx([x, y], outputs, verify=False).draw())
    assert found["input"] == [["x", "float64 x_dim0 × 3"], ["y", "float64 y_dim0"]]
    assert sorted(lines[0] for lines in found["output"]) == ["a", "b"]
    assert sorted(lines[0] for lines in found["node"]) == ["Exp", "ReduceSum"]


def test_an_edge_for_each_use_of_a_value():
    picture = draw_graph(model_of("(float[n] x) => (float[n] y) {a=Exp(x) b=Neg(x) y=Add(a,b)}"))
    assert str(picture).count('class="tip"') == 5


def test_small_constants_are_texts_and_weights_have_names_and_shapes():
    x = pt.matrix("x", shape=(None, 3))
    weights = pytensor.shared(np.ones((3, 4)), name="weights")
    found = boxes(export_onnx([x], pt.exp(x @ weights) * 2.5, verify=False).draw())
    lines = {box[0]: box[1:] for box in found["node"]}
    assert "weights 3 × 4" in lines["MatMul"]
    assert "2.5 ×" in lines["Mul"] or "× 2.5" in lines["Mul"]
    assert "float64 x_dim0 × 4" in lines["MatMul"]


def test_open_ends_of_slices_and_branches_of_where_are_told():
    x = pt.vector("x")
    y = export_onnx([x], pt.where(x > 0, 3.0, x[::-1]), verify=False).draw()
    lines = {box[0]: box[1:] for box in boxes(y)["node"]}
    assert "ends −∞" in lines["Slice"]
    assert "then 3.0" in lines["Where"]


def test_a_function_is_one_box_without_its_dtype():
    x = pt.vector("x")
    found = boxes(export_onnx([x], pt.erf(x), verify=False).draw())
    assert found["function"][0][0] == "Erf"


def test_the_users_names_and_lines_are_told():
    x = pt.vector("x")
    rate = pt.exp(x)
    rate.name = "rate"
    picture = export_onnx([x], {"y": rate.sum(), "z": rate * x}, verify=False).draw()
    assert any("rate" in line for box in boxes(picture)["node"] for line in box[1:])
    assert "test_graph_picture.py" in str(picture)


def test_a_loop_is_one_box_with_the_number_of_its_nodes():
    text = "(bool c, float x) => (float y) {y = If(c) <then_branch = a () => (float z) "
    text += "{z = Neg(x)}, else_branch = b () => (float z) {h = Abs(x) z = Neg(h)}>}"
    picture = draw_graph(model_of(text))
    assert boxes(picture)["body"] == [["If", "then: 1 node", "else: 2 nodes"]]
    # The branches take x from outside.
    assert str(picture).count('class="tip"') == 3


def test_equal_blocks_of_a_large_graph_are_drawn_once():
    picture = draw_graph(chain(12 * ["Softmax", "Exp", "Neg", "Abs"] + ["TopK"]))
    assert boxes(picture)["block"][0][0].endswith("× 12")


def test_ten_thousand_nodes_are_few_boxes():
    rng = np.random.default_rng(0)
    model = chain(list(rng.choice(["Exp", "Softmax", "Neg", "GRU"], 10_000)))
    started = perf_counter()
    picture = str(draw_graph(model))
    assert perf_counter() - started < 5
    assert 2 < picture.count("<rect") <= MOST_NODES


def test_many_inputs_of_a_large_graph_are_folded():
    inputs = [ir.val(f"x{i}", dtype=ir.DataType.FLOAT, shape=("n",)) for i in range(100)]
    value, nodes = inputs[0], []
    for other in inputs[1:]:
        nodes.append(ir.node("Add", [value, other]))
        value = nodes[-1].outputs[0]
    value.name = "y"
    graph = ir.Graph(inputs, [value], nodes=nodes, opset_imports={"": 21})
    picture = draw_graph(ir.Model(graph, ir_version=10))
    assert str(picture).count("<rect") <= MOST_NODES
    assert all(f"x{i}: float32 n" in str(picture) for i in range(100))


def test_names_are_escaped():
    model = chain(["Exp"])
    model.graph.inputs[0].name = '<a&b>\x07"'
    found = boxes(draw_graph(model))
    assert found["input"][0][0] == '<a&b>�"'


def test_an_empty_graph_and_an_output_that_is_an_input():
    empty = ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": 21}), ir_version=10)
    assert boxes(draw_graph(empty)) == {"node": [["empty graph"]]}
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=())
    same = ir.Model(ir.Graph([x], [x], nodes=[], opset_imports={"": 21}), ir_version=10)
    assert boxes(draw_graph(same)) == {"input": [["x", "float32"]], "output": [["x", "float32"]]}


def test_a_notebook_shows_the_picture_and_it_is_readable_on_dark_pages(tmp_path):
    picture = draw_graph(chain(["Exp"]))
    text = str(picture)
    assert text in picture._repr_html_()
    assert picture._repr_svg_() == text
    assert "prefers-color-scheme:dark" in text
    assert "currentColor" in text
    # Within a page the style of the picture is for the picture only.
    style = text.partition("<style>")[2].partition("</style>")[0]
    rules = [rule for rule in style.replace("{.", "{\n.").splitlines() if rule.strip("}")]
    assert all(rule.startswith((".onnx-graph", "@media")) for rule in rules)
    assert picture.save(tmp_path / "graph.svg").read_text(encoding="utf-8") == text
