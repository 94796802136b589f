"""Pictures of graphs as SVG: a small graph node by node, a large one by blocks."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import takewhile
from pathlib import Path

import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.names import VARIABLE, Lines
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.inference import schema_of
from pytensor_onnx.pictures.graph_blocks import HEAVY, Block, blocks_of
from pytensor_onnx.pictures.layered_layout import Cell, Layout, arrange

MOST_NODES = 40
"""Nodes of a graph that is drawn node by node."""

_MOST_BLOCKS, _MOST_INPUTS = 30, 6
_SMALL, _LONGEST = 6, 30
_OPEN_END = 2**31 - 1
"""Integer from which on a bound of a slice stands for the end of the axis."""

_SYMBOLS = {"Add": "+", "Sub": "−", "Mul": "×", "Div": "÷", "Pow": "^", "Less": "<"} | {
    "Greater": ">", "Equal": "=", "LessOrEqual": "≤", "GreaterOrEqual": "≥", "MatMul": "@"
}  # fmt: skip
_SHOWN = ("axis", "axes", "perm", "kernel_shape", "strides", "to", "equation", "alpha", "mode")
_DTYPE = re.compile(r"_(?:(?:bfloat|float|complex|u?int)\d+|bool)(?![a-z])")
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE, _PAD, _CAPTION, _MARGIN = 15.0, 7.0, 14.0, 16.0

_STYLE = """\
.onnx-graph{font:11px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.onnx-graph{max-width:100%;height:auto}
.onnx-graph text{fill:currentColor;text-anchor:middle}
.onnx-graph .head{font-weight:600;font-size:12.5px}
.onnx-graph .quiet,.onnx-graph .caption{opacity:.66}
.onnx-graph .caption{font-size:10.5px}
.onnx-graph .name{font-style:italic;font-weight:600}
.onnx-graph rect{stroke-width:1.2}
.onnx-graph .node rect{fill:#4a86e8;fill-opacity:.14;stroke:#4a86e8}
.onnx-graph .function rect{fill:#9b6dd6;fill-opacity:.16;stroke:#9b6dd6}
.onnx-graph .body rect{fill:#e08a2e;fill-opacity:.15;stroke:#e08a2e}
.onnx-graph .block rect{fill:#2f9e77;fill-opacity:.14;stroke:#2f9e77}
.onnx-graph .input rect,.onnx-graph .output rect{fill:none;stroke:currentColor;stroke-opacity:.7}
.onnx-graph .output rect{stroke-width:2.4}
.onnx-graph path{fill:none;stroke:currentColor;stroke-opacity:.42;stroke-width:1.2}
.onnx-graph .tip{fill:currentColor;fill-opacity:.55;stroke:none}
.onnx-graph:root{color-scheme:light dark;color:#1f2328;background:#fff}
@media (prefers-color-scheme:dark){.onnx-graph:root{color:#e6edf3;background:#0d1117}}
"""


class Drawing:
    """A picture of a graph: notebooks show it, `str` returns its SVG, and `save` writes it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def save(self, path: str | os.PathLike) -> Path:
        """Write the picture to an SVG file."""
        file = Path(path)
        try:
            file.write_text(self._text, encoding="utf-8")
        except OSError as error:
            raise PyTensorONNXError(f"{file} cannot be written: {error.strerror}") from None
        return file

    def __str__(self) -> str:
        return self._text

    def _repr_svg_(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        # Within a page, unlike as an image, boxes have tooltips and texts can be copied.
        return f'<div style="overflow: auto; max-height: 80vh">{self._text}</div>'

    def __repr__(self) -> str:
        return f"Drawing({len(self._text.encode()) / 1e3:.0f} kB of SVG)"


@dataclass
class _Box:
    """A box: its kind, lines of text with their classes, tooltip, and captions of its values."""

    kind: str
    lines: list[tuple[str, str]]
    title: str
    captions: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height without the captions."""
        width = max(_width(text, 14.2 if kind == "head" else 11.0) for text, kind in self.lines)
        return max(44.0, width + 2 * _PAD + 4), len(self.lines) * _LINE + 2 * _PAD - 3

    def ports(self) -> dict[int, tuple[float, float]]:
        """Return for each value with a caption its place to the right of the centre, and width."""
        widths = {i: _width("  ".join(t for t, _ in c), 11) for i, c in self.captions.items()}
        left = -(sum(widths.values()) + 12 * (len(widths) - 1)) / 2
        found = {}
        for value, width in widths.items():
            found[value] = (left + width / 2, width)
            left += width + 12
        return found

    def room(self) -> tuple[float, float]:
        """Return width and height with the captions."""
        width, height = self.size
        widths = [2 * abs(place) + own for place, own in self.ports().values()]
        return max([width, *widths]), height + (_CAPTION if widths else 0.0)


def draw_graph(model: ir.Model, lines: Lines | None = None) -> Drawing:
    """Return a picture of the main graph of a model, from its inputs at the top to its outputs.

    Parameters
    ----------
    model
        The model. Up to `MOST_NODES` nodes are drawn each as a box, more of them as blocks.
    lines
        Lines of the user's code, by function and node.

    Examples
    --------
    >>> text = "(float[n] x) => (float[n] y) {h = Exp(x) y = Neg(h)}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    >>> "float32 n" in str(draw_graph(model))
    True
    """
    return Drawing(_Picture(model, lines or {}).svg())


class _Picture:
    """The boxes and edges of a graph."""

    def __init__(self, model: ir.Model, lines: Lines) -> None:
        self.model, self.lines = model, lines
        graph = model.graph
        self.nodes = [node for node in graph if node.op_type != "Constant"]
        self.constants = {id(v) for v in graph.initializers.values()}
        self.constants |= {id(n.outputs[0]) for n in graph if n.op_type == "Constant"}
        if len(self.nodes) > MOST_NODES:
            self._leave_out_computed_weights()
        self.boxes: list[_Box] = []
        self.edges: dict[tuple[int, int, int], None] = {}
        made_by = {id(v): i for i, node in enumerate(self.nodes) for v in node.outputs}
        needs = [[v for v in _operands(node) if id(v) not in self.constants] for node in self.nodes]
        is_small = len(self.nodes) <= MOST_NODES
        if is_small:
            blocks = [Block((i,), 1, ((i,),)) for i in range(len(self.nodes))]
        else:
            before = [[made_by[id(v)] for v in need if id(v) in made_by] for need in needs]
            names = [_operator(node) for node in self.nodes]
            blocks = blocks_of(names, before, _MOST_BLOCKS)
        self.sources: dict[int, int] = {}
        inputs = [v for v in graph.inputs if id(v) not in self.constants]
        block_of = {i: k for k, block in enumerate(blocks) for i in block.nodes}
        self._add_inputs(inputs, needs, block_of, fold=not is_small)
        first = len(self.boxes)
        for block in blocks:
            for i in block.nodes:
                self.sources |= {id(v): len(self.boxes) for v in self.nodes[i].outputs}
            one = self.nodes[block.nodes[0]]
            self.boxes.append(
                self._node_box(one) if len(block.nodes) == 1 else self._block_box(block)
            )
        for k, block in enumerate(blocks):
            for value in (v for i in block.nodes for v in needs[i]):
                self._connect(value, first + k, one_port=not is_small)
        for value in graph.outputs:
            box = _Box("output", [(_short(str(value.name)), "head")], _described(value))
            box.lines += [(text, "quiet") for text in [_type_of(value)] if text]
            if id(value) in self.constants:
                box.lines.append(("constant", "quiet"))
            self.boxes.append(box)
            self._connect(value, len(self.boxes) - 1, one_port=not is_small, is_output=True)

    def _leave_out_computed_weights(self) -> None:
        """Take nodes that only compute with weights, such as their scales, for weights."""
        kept = []
        for node in self.nodes:
            operands = {id(v) for v in _operands(node)}
            is_output = any(v.is_graph_output() for v in node.outputs)
            if operands and operands <= self.constants and not is_output:
                self.constants |= {id(v) for v in node.outputs}
            else:
                kept.append(node)
        self.nodes = kept

    def _add_inputs(
        self,
        inputs: Sequence[ir.Value],
        needs: Sequence[Sequence[ir.Value]],
        block_of: Mapping[int, int],
        fold: bool,
    ) -> None:
        """Add boxes of the inputs; many inputs of the same block are folded into one box."""
        groups: dict[object, list[ir.Value]] = {}
        users: dict[int, set[int]] = {}
        for i, need in enumerate(needs):
            for value in need:
                users.setdefault(id(value), set()).add(block_of[i])
        for value in inputs:
            key: object = tuple(sorted(users.get(id(value), ())))
            groups.setdefault(key if fold and len(inputs) > _MOST_INPUTS else id(value), []).append(
                value
            )
        if len(groups) > 2 * _MOST_INPUTS and fold:
            # Many small groups: the first inputs each by itself, the others together.
            alone = inputs[:_MOST_INPUTS]
            groups = {id(v): [v] for v in alone} | {"others": list(inputs[_MOST_INPUTS:])}
        for values in groups.values():
            self.sources |= {id(v): len(self.boxes) for v in values}
            names = [(_short(str(v.name)), "head") for v in values[:3]]
            if len(values) > 3:
                names.append((f"and {len(values) - 3} more inputs", "quiet"))
            if len(values) == 1 and (text := _type_of(values[0])):
                names.append((text, "quiet"))
            self.boxes.append(_Box("input", names, "\n".join(map(_described, values))))

    def _connect(self, value: ir.Value, stop: int, one_port: bool, is_output: bool = False) -> None:
        start = self.sources.get(id(value))
        if start is None or start == stop:
            return
        box = self.boxes[start]
        producer = value.producer()
        port = 0 if one_port or producer is None else list(producer.outputs).index(value)
        self.edges[start, stop, port] = None
        name = "" if producer is None else _variable(producer)
        if any(_variable(user) == name for user, _ in value.uses()):
            # Several nodes compute the variable: the last one has its value.
            name = ""
        # Of the values of a block, numbers tell more than sizes.
        is_better = "float" in _type_of(value) and "float" not in str(box.captions.get(port))
        if box.kind != "input" and (port not in box.captions or is_better):
            is_told = is_output and len(value.uses()) == 0
            caption = [(_short(name), "name")] if name and not is_told else []
            caption += [(_type_of(value), "")] if _type_of(value) and not is_told else []
            if caption:
                box.captions[port] = caption

    def _node_box(self, node: ir.Node) -> _Box:
        """Return the box of one node, with its constants."""
        function = self.model.functions.get((node.domain, node.op_type, node.overload or ""))
        bodies = bodies_of(node)
        kind = "function" if function is not None else "body" if bodies else "node"
        lines = [(_short(_operator(node)), "head")]
        for i, value in enumerate(node.inputs):
            if value is not None and id(value) in self.constants:
                lines.append(self._constant_line(node, i, value, function))
        for name in _SHOWN:
            if name in node.attributes and (text := _attribute_text(node.attributes[name])):
                lines.append((_short(f"{name.removesuffix('_shape')} {text}"), "quiet"))
        for name, body in zip(_body_names(node), bodies, strict=True):
            count = sum(1 for _ in all_nodes(body))
            lines.append((f"{name}: {count} node{'s' if count != 1 else ''}", "quiet"))
        inputs = ", ".join("" if v is None else str(v.name) for v in node.inputs)
        title = [f"{_operator(node, whole=True)}({inputs})"]
        title += [f"→ {_described(value)}" for value in node.outputs if value.name]
        title += [
            f"{k}: {_attribute_text(a, longest=200) or a.type.name.lower()}"
            for k, a in node.attributes.items()
            if not a.is_ref()
        ]
        if function is not None:
            title.append(f"a function of {len(function)} nodes")
        line = self.lines.get(("", str(node.name)), "")
        return _Box(kind, lines[:7], "\n".join([*title, *([line] if line else [])]))

    def _constant_line(
        self, node: ir.Node, i: int, value: ir.Value, function: ir.Function | None
    ) -> tuple[str, str]:
        """Return a small constant as text, a large one as its name and shape."""
        text = _constant_text(value)
        if text is None:
            name = str(value.name).rpartition("/")[2].rpartition(".")[2] or str(value.name)
            shape = dims_of(value) or ()
            return f"{_short(name, 20)} {' × '.join(map(str, shape)) or 'scalar'}", "quiet"
        symbol = _SYMBOLS.get(node.op_type)
        if symbol and not node.domain:
            return (f"{text} {symbol}", "") if i == 0 else (f"{symbol} {text}", "")
        return _short(f"{self._parameter(node, i, function)} {text}".strip()), ""

    def _parameter(self, node: ir.Node, i: int, function: ir.Function | None) -> str:
        if node.op_type == "Where" and not node.domain:
            return ("if", "then", "else")[i]
        if function is not None:
            name = str(function.inputs[i].name)
            return "" if re.fullmatch(r"[a-z]\d*", name) else name
        opset = self.model.graph.opset_imports.get(node.domain, 1)
        schema = schema_of(node.op_type, opset, node.domain)
        names = [] if schema is None else [parameter.name for parameter in schema.inputs]
        return names[i] if i < len(names) and len(names[i]) > 1 else ""

    def _block_box(self, block: Block) -> _Box:
        """Return the box of several nodes: times, operators of each part, and their number."""
        parts = [[self.nodes[i] for i in part] for part in block.parts]
        all_of_it = [node for part in parts for node in part]
        texts = [_summary(part) for part in parts]
        if len(texts) > 4:
            texts = [_summary(all_of_it)]
        name = _scope([self.nodes[i] for i in block.nodes]) or _known_as(all_of_it)
        if not name or (len(texts) == 1 and len(all_of_it) <= 4):
            name, *texts = texts
        lines = [(name + (f"  × {block.times}" if block.times > 1 else ""), "head")]
        each = " each" if block.times > 1 else ""
        lines += [*((text, "") for text in texts), (f"{len(all_of_it)} nodes{each}", "quiet")]
        told = [f"{n} {name}" for name, n in Counter(map(_operator, all_of_it)).most_common()]
        made = dict.fromkeys(self.lines.get(("", str(node.name)), "") for node in all_of_it)
        told += [line for line in made if line][:6]
        return _Box("block", lines, "\n".join(told))

    def svg(self) -> str:
        """Return the picture."""
        if not self.boxes:
            self.boxes.append(_Box("node", [("empty graph", "quiet")], ""))
        layout = arrange([box.room() for box in self.boxes], list(self.edges))
        width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="onnx-graph" role="img" '
            f'aria-label="{_safe(f"Graph of {self.model.graph.name or 'a model'}")}" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} '
            f'{width:.0f} {height:.0f}">\n<style>{_STYLE}</style>'
        ]
        parts += self._drawn_edges(layout)
        for box, cell in zip(self.boxes, layout.cells, strict=True):
            parts += _drawn_box(box, cell)
        return "\n".join([*parts, "</svg>\n"])

    def _drawn_edges(self, layout: Layout) -> Iterator[str]:
        ends: dict[int, list[tuple[float, int]]] = {}
        for number, (start, stop, _) in enumerate(self.edges):
            last = layout.routes[number][-1] if layout.routes[number] else layout.cells[start]
            ends.setdefault(stop, []).append((last.x, number))
        targets: dict[int, float] = {}
        for stop, arriving in ends.items():
            space = min(14.0, (self.boxes[stop].size[0] - 16) / max(1, len(arriving)))
            for k, (_, number) in enumerate(sorted(arriving)):
                shift = (k - (len(arriving) - 1) / 2) * space
                targets[number] = layout.cells[stop].x + shift
        drawn: dict[str, None] = {}
        for number, (start, stop, port) in enumerate(self.edges):
            cell, box = layout.cells[start], self.boxes[start]
            x = cell.x + box.ports().get(port, (0.0, 0.0))[0]
            below = cell.y + box.size[1] + (_CAPTION if port in box.captions else 0.0)
            y = below
            for point in layout.routes[number]:
                # Edges of one value share these pieces, which are drawn once.
                bottom = layout.bottoms[point.layer - 1]
                bend = _bend(x, bottom, point.x, point.y)
                drawn |= {
                    f"M{x:.1f} {y:.1f}V{bottom:.1f}": None,
                    f"M{x:.1f} {bottom:.1f}{bend}": None,
                }
                x, y = point.x, point.y
            end = layout.cells[stop]
            bottom = layout.bottoms[end.layer - 1]
            bend = _bend(x, bottom, targets[number], end.y - 5)
            drawn |= {f"M{x:.1f} {y:.1f}V{bottom:.1f}": None, f"M{x:.1f} {bottom:.1f}{bend}": None}
            x, y = targets[number], end.y - 1
            yield f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.5 -6h7z"/>'
        yield from (f'<path d="{path}"/>' for path in drawn)


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (y + to_y) / 2
    if abs(x - to_x) < 0.5:
        return f"V{to_y:.1f}"
    return f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"


def _drawn_box(box: _Box, cell: Cell) -> Iterator[str]:
    width, height = box.size
    radius = height / 2 if box.kind in ("input", "output") else 6
    yield f'<g class="{box.kind}"><title>{_safe(box.title)}</title>'
    yield (
        f'<rect x="{cell.x - width / 2:.1f}" y="{cell.y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{min(radius, 16):.0f}"/>'
    )
    for i, (text, kind) in enumerate(box.lines):
        y = cell.y + _PAD + 9 + i * _LINE
        yield f'<text class="{kind}" x="{cell.x:.1f}" y="{y:.1f}">{_safe(text)}</text>'
    for value, (place, _) in box.ports().items():
        spans = "  ".join(
            f'<tspan class="{kind}">{_safe(text)}</tspan>' for text, kind in box.captions[value]
        )
        y = cell.y + height + 11
        yield f'<text class="caption" x="{cell.x + place:.1f}" y="{y:.1f}">{spans}</text>'
    yield "</g>"


def _operands(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the operands of a node, and the outer values that its bodies read."""
    yield from (v for v in node.inputs if v is not None)
    for body in bodies_of(node):
        for inner in all_nodes(body):
            yield from (v for v in inner.inputs if v is not None)
        yield from body.outputs


def _operator(node: ir.Node, whole: bool = False) -> str:
    """Return the name of an operator or function; that of a function without its dtypes."""
    if whole:
        return f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    return _DTYPE.sub("", node.op_type) if node.domain else node.op_type


def _body_names(node: ir.Node) -> list[str]:
    names = [k for k, a in node.attributes.items() if a.type == ir.AttributeType.GRAPH]
    return [name.removesuffix("_branch") for name in names] if bodies_of(node) else []


def _type_of(value: ir.Value) -> str:
    """Return dtype and shape, such as ``float64 n × 3``; an empty text where both are unknown."""
    dtype = "" if value.dtype is None else _dtype(value.dtype)
    dims = dims_of(value)
    # Sizes that exporters computed have long names, which tell little.
    told = ["?" if d is None else "…" if len(str(d)) > 16 else str(d) for d in dims or ()]
    return f"{dtype} {' × '.join(told)}".strip()


def _dtype(dtype: ir.DataType) -> str:
    return "string" if dtype == ir.DataType.STRING else str(dtype.numpy())


def _described(value: ir.Value) -> str:
    return f"{value.name}: {_type_of(value)}".removesuffix(": ")


def _constant_text(value: ir.Value) -> str | None:
    """Return the elements of a small constant, None for a large or computed one."""
    producer = value.producer()
    if producer is not None and producer.op_type != "Constant":
        return None
    if producer is not None:
        (attribute,) = producer.attributes.values()
        if attribute.type != ir.AttributeType.TENSOR:
            return _attribute_text(attribute)
        tensor = attribute.as_tensor()
    elif value.const_value is not None:
        tensor = value.const_value
    else:
        return None
    most = 1 if len(tensor.shape) > 1 else 3 if tensor.dtype.is_floating_point() else _SMALL
    if tensor.size > most:
        return None
    try:
        elements = tensor.numpy().ravel().tolist()
    except OSError:
        # A file of weights is missing.
        return None
    return " ".join(map(_number, elements)) or "empty"


def _number(element: object) -> str:
    if isinstance(element, float):
        text = f"{element:.4g}"
        is_whole = element.is_integer() and "e" not in text
        return f"{text}.0".replace("-", "−") if is_whole else text.replace("-", "−")
    if isinstance(element, bytes):
        return element.decode(errors="replace")
    if isinstance(element, int) and abs(element) >= _OPEN_END:
        return "∞" if element > 0 else "−∞"
    return str(element).replace("-", "−")


def _attribute_text(attribute: ir.Attr, longest: int = 22) -> str:
    """Return the value of an attribute, empty for a reference, a tensor, a graph or a long one."""
    kinds, value = ir.AttributeType, attribute.value
    if attribute.is_ref() or attribute.type in (kinds.TENSOR, kinds.GRAPH, kinds.SPARSE_TENSOR):
        return ""
    if attribute.name == "to":
        return _dtype(ir.DataType(value))
    if attribute.name in ("strides", "mode") and (value in ("", "constant") or set(value) <= {1}):
        return ""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    elements: Iterable[object] = value if is_list else [value]
    text = " ".join(map(_number, elements))
    return text if len(text) <= longest else ""


def _variable(node: ir.Node | None) -> str:
    """Return the user's name of the variable that a node computes."""
    return "" if node is None else str(node.metadata_props.get(VARIABLE, ""))


def _known_as(nodes: Sequence[ir.Node]) -> str:
    """Return a name of a block from its operators, empty if they do not tell."""
    found = Counter(_operator(node) for node in nodes)
    products = sum(n for name, n in found.items() if "MatMul" in name or name == "Gemm")
    if any("Attention" in name for name in found) or (found["Softmax"] and products >= 2):
        return "Attention"
    if any("Conv" in name for name in found):
        return "Convolutions"
    return "Dense layers" if products else ""


def _summary(nodes: Sequence[ir.Node]) -> str:
    """Return the operators of nodes: all in order if they are few, else the heavy ones, counted."""
    names = [_operator(node) for node in nodes]
    known = [name for name in names if name in HEAVY or "_" in name]
    for shown in (names, known):
        if 0 < len(shown) <= 5:
            return " → ".join(shown) + (" …" if len(shown) < len(names) else "")
    counts = Counter(known or names)
    shown = [f"{count} {name}" if count > 1 else name for name, count in counts.most_common(4)]
    return ", ".join(shown) + (" …" if len(counts) > 4 or len(known) < len(names) else "")


def _scope(nodes: Sequence[ir.Node]) -> str:
    """Return the innermost scope that the names of all nodes share, as most exporters write it."""
    split = [str(node.name).strip("/").split("/")[:-1] for node in nodes]
    levels = zip(*split, strict=False)
    shared = [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]
    return _short(shared[-1]) if shared else ""


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _safe(text: str) -> str:
    return escape(_CONTROL.sub("�", text))


def _width(text: str, size: float) -> float:
    """Estimate the width of a text, as system fonts have it, rather too large."""
    narrow = sum(c in "iljtfr.,:;()[]'| !" for c in text)
    wide = sum(c in "mwMW@×→÷…" or "A" <= c <= "Z" for c in text)
    return size * (0.36 * narrow + 0.76 * wide + 0.61 * (len(text) - narrow - wide))
