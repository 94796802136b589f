"""What a notebook shows of a program."""

from html.parser import HTMLParser

import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx, load


class _Text(HTMLParser):
    """The texts of cells and paragraphs, outside of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "svg" not in self.open and self.open and self.open[-1] in ("td", "p", "li", "summary"):
            self.found.append(data)


def texts(program):
    parser = _Text()
    parser.feed(program._repr_html_())
    assert not parser.open
    return parser.found


def test_a_program_is_shown_by_its_interface_sizes_and_graph():
    x = pt.matrix("x", shape=(None, 4), dtype="float32")
    weights = pytensor.shared(np.ones((4, 300), "float32"), name="w")
    found = texts(export_onnx([x], {"y": pt.tanh(x @ weights)}))
    assert found[:6] == [
        "x",
        "float32[x_dim0, 4]",
        "input",
        "y",
        "float32[x_dim0, 300]",
        "output",
    ]
    assert "2 nodes: MatMul 1, Tanh 1" in found
    assert "1 constants, 4.8 kB" in found
    assert any(text.startswith("verification: checked") for text in found)
    assert found[-1] == "graph"


def test_states_are_told_from_inputs_and_changes_are_listed():
    count = pytensor.shared(np.float32(0), name="count")
    x = pt.dvector("x")
    program = export_onnx([x], pt.argsort(x), updates={count: count + 1}, target="web")
    found = texts(program)
    assert found[3:6] == ["count", "float32[]", "state"]
    assert "changes for the target" in found
    assert "count_next" not in found


def test_a_loaded_file_is_shown_as_well(tmp_path):
    x = pt.dvector("x")
    export_onnx([x], {"y": x + 1}, tmp_path / "model.onnx")
    assert "y" in texts(load(tmp_path / "model.onnx"))
