"""Nodes that are merged: equal ones, and ones with neighbouring results.

PyTensor merges equal nodes before the conversion. Some sizes are known to be equal only afterwards,
and with them the masks and positions that are computed from them. Decompositions of the legaliser
may repeat nodes, too.
"""

import math
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import CHECKED, dims_of, sizes_in
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.fusions.fuse_products import products_of_elements
from pytensor_onnx.passes.matching import is_operator, required, store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder, remove_unused


@model_pass(
    family="structure",
    purpose="size",
    identity="f(x), f(x) = f(x)",
    requires="no random operator, no sizes that a check compares",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def merge_equal(model: ir.Model, scope: ModelScope) -> int:
    """Replace the results of a node by the results of the first equal node of the same graph.

    Do so in subgraphs and functions, too: ONNX Runtime would, and then go over the whole graph once
    more. Nodes with subgraphs and equal outputs of a graph are kept. So are the sizes that a check
    compares, which are equal only if the check passes.
    """
    outer = [model.graph, *(function.graph for function in model.functions.values())]
    graphs = [inner for graph in outer for inner in (graph, *graph.subgraphs())]
    checking = _behind_checks(graphs)
    return sum(_merge_equal(graph, checking) for graph in graphs)


def _merge_equal(graph: ir.Graph, checking: Container[ir.Node]) -> int:
    first: dict[Hashable, ir.Node] = {}
    merged: list[ir.Node] = []
    for node in graph:
        key = _key(node, by_sizes=node not in checking)
        if key is None:
            continue
        kept = first.setdefault(key, node)
        pairs = list(zip(node.outputs, kept.outputs, strict=True))
        if kept is node or any(a.is_graph_output() and b.is_graph_output() for a, b in pairs):
            continue
        for old, new in pairs:
            if old.is_graph_output():
                new.name, new.shape, old.name = old.name, old.shape, None
            ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        merged.append(node)
    graph.remove(merged, safe=True)
    return len(merged)


def _behind_checks(graphs: Iterable[ir.Graph]) -> set[ir.Node]:
    """Return the nodes that compute the conditions of checks."""
    nodes = (node for graph in graphs for node in graph)
    checks = (node for node in nodes if any(CHECKED in value.meta for value in node.outputs))
    left = [node.inputs[0] for node in checks]
    found: set[ir.Node] = set()
    while left:
        value = left.pop()
        node = None if value is None else value.producer()
        if node is not None and node not in found:
            found.add(node)
            left.extend(node.inputs)
    return found


def _key(node: ir.Node, *, by_sizes: bool) -> Hashable | None:
    """Return a key that is equal for nodes with equal results, None if unknown."""
    attributes = _attributes(node.attributes)
    if attributes is None or entry_of(node).is_random:
        return None
    is_shape = node.op_type == "Shape" and not node.domain
    sizes = sizes_in(node.outputs[0]) if is_shape and by_sizes else None
    if sizes is not None and None not in sizes:
        return "Shape", sizes
    operands = tuple(None if value is None else id(value) for value in node.inputs)
    # A name without letters is an output that is left out.
    given = tuple(value.name != "" for value in node.outputs)
    return node.domain, node.op_type, node.overload, operands, attributes, given


def _attributes(attributes: Mapping[str, ir.Attr]) -> Hashable | None:
    entries = []
    for name, attribute in sorted(attributes.items()):
        value = attribute.value
        if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            return None
        if isinstance(value, ir.TensorProtocol):
            value = (value.dtype, tuple(value.shape), value.tobytes())
        entries.append((name, attribute.ref_attr_name, value))
    return tuple(entries)


# Compute a formula of many short vectors once, for the vectors joined.
#
# A training step updates each bias, scale and running statistic of a network by the same operators,
# whose calls take longer than their arithmetic.

OPERATORS = frozenset({"Abs", "Add", "Div", "Mul", "Neg", "Sqrt", "Sub"})
"""Elementwise operators whose results do not depend on the position of an element."""
FEWEST_OPERATORS, MOST_OPERATORS = 2, 64
OPERATOR, COPY, COPIED_VECTOR = 20, 20, 6
"""Costs of an operator, of a Concat or Split, and of each vector of these, in 10 ns as measured."""
LONGEST_VECTOR = 1024
"""Elements from which on copies into the joined vector cost more than calls."""

Term = tuple[str, Any]
"""An operator and its operands, a vector and its position, or a number and its value."""
Joined = dict[tuple[ir.Value, ...], ir.Value]
"""Joined vectors by their parts."""


@dataclass
class _Formula:
    """A result of operators on vectors of its size."""

    root: ir.Node
    size: int
    n_operators: int = 0
    vectors: list[ir.Value] = field(default_factory=list)

    def term(self, value: ir.Value | None) -> Term | None:
        """Return the form of an operand, None for an array of another shape."""
        dims = dims_of(value)
        if value is None or dims is None:
            return None
        if dims == ():
            return "number", value
        if dims != (self.size,):
            return None
        node = value.producer()
        is_inner = len(value.uses()) == 1 and not value.is_graph_output()
        is_part = (is_inner or self.root is node) and self.n_operators < MOST_OPERATORS
        if node is not None and is_part and _is_joined(node):
            before = self.n_operators, len(self.vectors)
            self.n_operators += 1
            operands = [self.term(x) for x in node.inputs]
            if None not in operands:
                return node.op_type, tuple(operands)
            self.n_operators = before[0]
            del self.vectors[before[1] :]
        if value is self.root.outputs[0]:
            return None
        if value not in self.vectors:
            self.vectors.append(value)
        return f"vector of {value.dtype}", self.vectors.index(value)


@model_pass(
    family="elementwise",
    purpose="size",
    identity="f(x), f(y) = split(f(concat(x, y)))",
    begins_at=tuple(sorted(OPERATORS)),
    requires="outputs that are one formula of short vectors each, of known sizes",
    measured="benchmarks/NOTES.md, Updates in training steps",
)
def join_vectors(model: ir.Model, scope: ModelScope) -> int:
    """Compute outputs that are the same formula of other vectors together."""
    groups: dict[Term, list[_Formula]] = defaultdict(list)
    for output in dict.fromkeys(model.graph.outputs):
        dims, root = dims_of(output), output.producer()
        if root is None or dims is None or len(dims) != 1 or not isinstance(dims[0], int):
            continue
        formula = _Formula(root, dims[0])
        term = formula.term(output) if 0 < dims[0] <= LONGEST_VECTOR else None
        if term is not None and formula.n_operators >= FEWEST_OPERATORS and formula.vectors:
            groups[term].append(formula)
    count = 0
    parts: dict[ir.Value, ir.Value] = {}
    joined: Joined = {}
    order = {node: i for i, node in enumerate(model.graph)}
    # Results first that others are computed from, which then take the joined vector.
    for term, formulas in sorted(
        groups.items(), key=lambda group: max(order[formula.root] for formula in group[1])
    ):
        for formula in formulas:
            formula.vectors = [parts.get(x, x) for x in formula.vectors]
        formulas = _in_joined_order(formulas, joined)  # noqa: PLW2901
        if _gains(formulas, joined) and not _depend_on_each_other(formulas):
            parts |= _join(model.graph, term, formulas, joined, scope)
            count += 1
    if count:
        remove_unused(model.graph)
        model.graph.sort()
        store_constants(model.graph, scope)
    return count


def _is_joined(node: ir.Node) -> bool:
    return is_operator(node, *OPERATORS) and node.outputs[0].dtype in (
        ir.DataType.FLOAT,
        ir.DataType.DOUBLE,
    )


def _columns(formulas: Sequence[_Formula]) -> list[tuple[ir.Value, ...]]:
    """Return the vectors of all formulas that take the same place."""
    return list(zip(*(formula.vectors for formula in formulas), strict=True))


def _in_joined_order(formulas: list[_Formula], joined: Joined) -> list[_Formula]:
    """Return formulas in the order of joined vectors, if they take all parts of one."""
    orders = {frozenset(column): column for column in joined}
    for column in _columns(formulas):
        order = orders.get(frozenset(column), ())
        if len(order) == len(column):
            position = {x: i for i, x in enumerate(order)}
            pairs = sorted(zip(column, formulas, strict=True), key=lambda pair: position[pair[0]])
            return [formula for _, formula in pairs]
    return formulas


def _gains(formulas: Sequence[_Formula], joined: Joined) -> bool:
    """Return whether the operators saved take longer than the copies of vectors that are added."""
    saved = OPERATOR * formulas[0].n_operators * (len(formulas) - 1)
    copies = 1 + sum(column not in joined for column in _columns(formulas))
    return saved > copies * (COPY + COPIED_VECTOR * len(formulas))


def _depend_on_each_other(formulas: Sequence[_Formula]) -> bool:
    """Return whether a vector of a formula may depend on the result of one.

    A number cannot: all of the formulas have the same numbers.
    """
    graph = formulas[0].root.graph
    waiting = [formula.root for formula in formulas]
    needed = {x.producer() for formula in formulas for x in formula.vectors}
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node in needed or node.graph is not graph:
            return True
        users = {user for output in node.outputs for user, _ in output.uses()} - seen
        seen |= users
        waiting += users
    return False


def _join(
    graph: ir.Graph, term: Term, formulas: Sequence[_Formula], joined: Joined, scope: ModelScope
) -> dict[ir.Value, ir.Value]:
    """Replace the results of formulas by the parts of one result; return the parts."""
    builder = Builder(scope)
    builder.provenance = {
        key: text
        for key, text in formulas[0].root.metadata_props.items()
        if key != "pytensor.variable"
    }
    columns = _columns(formulas)
    for column in columns:
        if column not in joined:
            joined[column] = builder.Concat(*column, axis=0)
    old = [formula.root.outputs[0] for formula in formulas]
    sizes = builder.ints([formula.size for formula in formulas])
    result = _emit(builder, term, [joined[column] for column in columns])
    new = builder.op("Split", result, sizes, axis=0, outputs=len(old))
    joined[tuple(new)] = result
    for before, after in zip(old, new, strict=True):
        after.name, before.name = before.name, None
        after.shape, after.type = before.shape, before.type
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    name_values(builder.nodes, scope.names)
    graph.insert_before(formulas[0].root, builder.nodes)
    return dict(zip(old, new, strict=True))


def _emit(builder: Builder, term: Term, joined: Sequence[ir.Value]) -> ir.Value:
    """Return a formula of the joined vectors."""
    kind, rest = term
    if isinstance(rest, tuple):
        return builder.op(kind, *(_emit(builder, operand, joined) for operand in rest))
    return rest if isinstance(rest, ir.Value) else joined[rest]


# Compute convolutions of short images for all images of a batch at once.
#
# ONNX Runtime multiplies filters by one image after the other. Where an image has few windows,
# these products have few columns, and reading the filters takes most of the time. In a convolution
# the batch becomes the depth of one image of more axes; a transposed convolution becomes one Gemm,
# and Col2Im or, in large batches, a Gather and a sum. Constant filters stay, as the runtime lays
# them out for its own kernels.

# From these sizes on the other form is faster (benchmarks/NOTES.md).
MOST_WINDOWS = {"Conv": 15, "ConvTranspose": 63}
FEWEST_PRODUCTS = 1 << 18

_FEWEST_IMAGES = 8
_MOST_GATHERED = 32
"""Images, and elements of each, for which products are gathered faster than by Col2Im."""

_FEWEST_WEIGHTS = 1 << 19
_FEW_ELEMENTS = range(32, 129)
"""Sizes of filters and images for which the runtime should not pack the filters for a product."""


@node_rule(
    "Conv",
    "ConvTranspose",
    family="networks",
    purpose="speed",
    identity="conv(x, w) = conv(batch of x as depth, w), conv_transpose(x, w) = col2im(w.T @ x)",
    requires="float32, filters that vary, images with few windows of known sizes",
    measured="benchmarks/NOTES.md, Convolutions and their gradients",
)
def merge_short_images(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Merge the images of a convolution in float32 that has few windows and many products."""
    if not _is_merged(node):
        return None
    return _with_depth(build, node) if node.op_type == "Conv" else _by_columns(build, node)


def _is_merged(node: ir.Node) -> bool:
    filters = node.inputs[1]
    if filters is None or filters.dtype != ir.DataType.FLOAT or filters.const_value is not None:
        return False
    if attribute_of(node, "group") > 1 or "auto_pad" in node.attributes:
        return False
    windowed = node.outputs[0] if node.op_type == "Conv" else node.inputs[0]
    batch, shape = _batch(windowed), _known(filters)
    windows, sizes = _known(windowed, 2), _known(node.outputs[0], 2)
    if not (shape and windows and sizes and batch != 1):
        return False
    if node.op_type == "Conv":
        # A batch of unknown size may be empty, and the runtime refuses images without depth.
        is_served = len(shape) < 5 and batch is not None
    else:
        is_served = len(shape) == 4 and len(node.inputs) == 2
    number = math.prod(windows)
    batch = batch or (_FEWEST_IMAGES if number <= _MOST_GATHERED else 2)
    return (
        is_served
        and number <= MOST_WINDOWS[node.op_type]
        and batch * number * math.prod(shape) >= FEWEST_PRODUCTS
    )


def _batch(images: ir.Value | None) -> int | None:
    """Return the number of images, None if it is unknown until run time."""
    batch = (dims_of(images) or (None,))[0]
    return batch if isinstance(batch, int) else None


def _known(value: ir.Value | None, start: int = 0) -> list[int]:
    """Return the sizes of axes, none of them if one is unknown or zero."""
    dims = (dims_of(value) or ())[start:]
    sizes = [dim for dim in dims if isinstance(dim, int) and dim > 0]
    return sizes if len(sizes) == len(dims) else []


def _with_depth(build: Builder, node: ir.Node) -> ir.Value:
    """Emit a convolution of one image, whose depth is the batch."""
    (images, filters), bias = map(required, node.inputs[:2]), node.inputs[2:]
    if not bias and _has_one_tap(node):
        return _by_elements(build, images, filters)
    order = [1, 0, *range(2, len(dims_of(images) or ()))]
    image = build.Unsqueeze(build.Transpose(images, perm=order), build.ints([0]))
    result = build.Conv(image, build.Unsqueeze(filters, build.ints([2])), *bias, **_deeper(node))
    return build.Transpose(build.Squeeze(result, build.ints([0])), perm=order)


def _has_one_tap(node: ir.Node) -> bool:
    """Return whether a window is one element, and every element is a window."""
    filters = _known(node.inputs[1], 2)
    sizes = [_known(value, 2) for value in (node.inputs[0], node.outputs[0])]
    strides = node.attributes["strides"].as_ints() if "strides" in node.attributes else [1]
    return set(filters) == {1} and sizes[0] == sizes[1] and max(strides) == 1


def _by_elements(build: Builder, images: ir.Value, filters: ir.Value) -> ir.Value:
    """Emit the product of filters of one tap and the elements of all images.

    The gradient of such filters needs the same matrix of elements.
    """
    outputs, channels = _known(filters)[:2]
    sizes, rank = _known(images, 2), len(dims_of(images) or ())
    batch = _batch(images) or 0
    moved = build.Transpose(images, perm=[*range(2, rank), 0, 1])
    elements = _reshape(build, moved, [math.prod(sizes) * batch, channels])
    products = build.Gemm(_reshape(build, filters, [outputs, channels]), elements, transB=1)
    apart = _reshape(build, products, [outputs, *sizes, batch])
    return build.Transpose(apart, perm=[rank - 1, *range(rank - 1)])


def _reshape(build: Builder, x: ir.Value, shape: list[int]) -> ir.Value:
    """Emit a reshape as the lowering of PyTensor's does, so that equal ones are merged."""
    return build.Reshape(x, build.ints(shape), allowzero=0)


def _deeper(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a convolution with one more axis, of one tap, before the others."""
    attributes: dict[str, Any] = {}
    for name in ("kernel_shape", "strides", "dilations"):
        if name in node.attributes:
            attributes[name] = [1, *node.attributes[name].as_ints()]
    if "pads" in node.attributes:
        pads = list(node.attributes["pads"].as_ints())
        half = len(pads) // 2
        attributes["pads"] = [0, *pads[:half], 0, *pads[half:]]
    return attributes


def _by_columns(build: Builder, node: ir.Node) -> ir.Value:
    """Emit one product for all elements under all taps, and their sums where windows overlap."""
    images, filters = map(required, node.inputs)
    outputs, *taps = _known(filters)
    columns, sizes = math.prod(taps), _known(images, 2)
    batch = _batch(images) or -1
    # The gradient of the filters needs the same matrix of images.
    channels_first = build.Transpose(images, perm=[1, 2, 3, 0])
    shape = [outputs, math.prod(sizes) * batch if batch > 0 else -1]
    elements = _reshape(build, channels_first, shape)
    matrix = _reshape(build, filters, [outputs, columns])
    has_one_tap = _has_one_tap(node)
    is_large = batch < 0 or batch >= _FEWEST_IMAGES
    if is_large and not has_one_tap and math.prod(sizes) <= _MOST_GATHERED:
        return _sums_of_products(build, node, build.Gemm(matrix, elements, transA=1))
    parts = sizes if has_one_tap else [math.prod(sizes)]
    inner, rank = [*range(len(parts))], len(parts)
    if outputs * columns >= _FEWEST_WEIGHTS and shape[1] in _FEW_ELEMENTS:
        # The runtime packs the second factor, which takes as long as the product with few rows.
        products = build.Gemm(matrix, elements, transA=1)
        apart, perm = [columns, *parts, batch], [rank + 1, 0, *(i + 1 for i in inner)]
    else:
        products = build.Gemm(elements, matrix, transA=1)
        apart, perm = [*parts, batch, columns], [rank, rank + 1, *inner]
    windows = build.Transpose(_reshape(build, products, apart), perm=perm)
    if has_one_tap:
        return windows
    attributes = {
        name: list(node.attributes[name].as_ints())
        for name in ("pads", "strides", "dilations")
        if name in node.attributes
    }
    return build.Col2Im(
        windows,
        build.ints(_known(node.outputs[0], 2)),
        build.ints(taps[1:]),
        **attributes,
    )


def _sums_of_products(build: Builder, node: ir.Node, products: ir.Value) -> ir.Value:
    """Emit the sums of products (channels and taps, elements of all images) for each element."""
    _, channels, *taps = _known(node.inputs[1])
    counts, sizes = _known(node.inputs[0], 2), _known(node.outputs[0], 2)
    strides, dilations, starts = (
        list(node.attributes[name].as_ints())[:2] if name in node.attributes else [number] * 2
        for name, number in (("strides", 1), ("dilations", 1), ("pads", 0))
    )
    positions = products_of_elements(counts, taps, sizes, strides, dilations, starts)
    each = math.prod(taps) * math.prod(counts)
    batch = _batch(node.inputs[0]) or -1
    rows = _reshape(build, products, [channels, each, batch])
    if (positions == each).any():
        rows = build.Pad(rows, build.ints([0, 0, 0, 0, 1, 0]))
    gathered = build.Gather(rows, build.ints(positions.ravel().tolist()), axis=1)
    shape = [channels, len(positions), math.prod(sizes) * batch if batch > 0 else -1]
    sums = build.ReduceSum(_reshape(build, gathered, shape), build.ints([1]), keepdims=0)
    apart = _reshape(build, sums, [channels, *sizes, batch])
    return build.Transpose(apart, perm=[3, 0, 1, 2])
