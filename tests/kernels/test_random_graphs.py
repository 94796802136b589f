"""Regions of random graphs compute as NumPy does, whatever the shapes and indices."""

import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import TensorProto, helper

from pytensor_onnx.kernels import regions
from tests.kernels.conftest import open_session

KINDS = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "b": TensorProto.BOOL}
SHAPES = st.lists(st.sampled_from([0, 1, 1, 2, 3, 5]), max_size=3).map(tuple)


class Graph:
    """A graph in the making, with the value of each array, which NumPy computes."""

    def __init__(self, draw):
        self.draw = draw
        self.nodes, self.feed, self.constants = [], {}, {}
        self.arrays = {}

    def given(self, value, is_constant):
        name = f"x{len(self.arrays)}"
        (self.constants if is_constant else self.feed)[name] = value
        self.arrays[name] = value
        return name

    def integers(self, *values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, "int64")
        return name

    def floats(self, least_rank=0):
        found = [k for k, v in self.arrays.items() if v.dtype.kind == "f" and v.ndim >= least_rank]
        return self.draw(st.sampled_from(found)) if found else None

    def add(self, operator, inputs, value, **attributes):
        name = f"x{len(self.arrays)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        self.arrays[name] = np.asarray(value)

    def axis(self, name):
        rank = self.arrays[name].ndim
        return self.draw(st.integers(-rank, rank - 1))

    def model(self, has_names):
        """Return the model of all arrays as outputs; sizes of inputs have names or are known."""
        inputs = [
            helper.make_tensor_value_info(
                k,
                KINDS[v.dtype.kind],
                [f"{k}_{axis}" for axis in range(v.ndim)] if has_names else v.shape,
            )
            for k, v in self.feed.items()
        ]
        made = [name for node in self.nodes for name in node.output]
        outputs = [
            helper.make_tensor_value_info(k, KINDS[self.arrays[k].dtype.kind], None) for k in made
        ]
        constants = [onnx.numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def unary(graph):
    x = graph.floats()
    operator, f = graph.draw(st.sampled_from([("Neg", np.negative), ("Tanh", np.tanh)]))
    graph.add(operator, [x], f(graph.arrays[x]))


def binary(graph):
    x, y = graph.floats(), graph.floats()
    kinds = [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Less", np.less)]
    operator, f = graph.draw(st.sampled_from(kinds))
    try:
        value = f(graph.arrays[x], graph.arrays[y])
    except ValueError:
        return
    graph.add(operator, [x, y], value)


def choice(graph):
    conditions = [k for k, v in graph.arrays.items() if v.dtype.kind == "b"]
    if not conditions:
        return
    c, x, y = graph.draw(st.sampled_from(conditions)), graph.floats(), graph.floats()
    try:
        value = np.where(*(graph.arrays[k] for k in (c, x, y)))
    except ValueError:
        return
    graph.add("Where", [c, x, y], value)


def reduction(graph):
    x = graph.floats(1)
    if not x:
        return
    axis, keeps = graph.axis(x), graph.draw(st.booleans())
    operator, f = graph.draw(st.sampled_from([("ReduceSum", np.sum), ("ReduceMax", np.max)]))
    if operator == "ReduceMax" and not graph.arrays[x].shape[axis]:
        return
    value = f(graph.arrays[x], axis=axis, keepdims=keeps)
    graph.add(operator, [x, graph.integers(axis)], value, keepdims=int(keeps))


def gathering(graph):
    x = graph.floats(1)
    if not x:
        return
    axis = graph.axis(x)
    size = graph.arrays[x].shape[axis]
    shape = graph.draw(SHAPES.filter(lambda s: len(s) < 3)) if size else (0,)
    index = graph.draw(st.lists(st.integers(-size, max(size - 1, 0)), min_size=45, max_size=45))
    index = np.resize(np.array(index, "int64"), shape)
    name = graph.given(index, graph.draw(st.booleans()))
    graph.add("Gather", [x, name], np.take(graph.arrays[x], index, axis), axis=axis)


def scattering(graph):
    x = graph.floats(1)
    if not x or not graph.arrays[x].size:
        return
    base, axis = graph.arrays[x], graph.axis(x)
    size = base.shape[axis]
    index = graph.draw(st.lists(st.integers(-size, size - 1), min_size=4, max_size=4))
    index = np.resize(np.array(index, "int64"), base.shape)
    value = base.copy()
    for place in np.ndindex(*base.shape):
        at = list(place)
        at[axis] = index[place]
        value[tuple(at)] += base[place]
    name = graph.given(index, graph.draw(st.booleans()))
    graph.add("ScatterElements", [x, name, x], value, axis=axis, reduction="add")


def slicing(graph):
    x = graph.floats(1)
    if not x:
        return
    axis = graph.axis(x)
    start, end = graph.draw(st.integers(-7, 7)), graph.draw(st.integers(-7, 7))
    step = graph.draw(st.sampled_from([1, 2, -1, -3]))
    names = [graph.integers(n) for n in (start, end, axis, step)]
    index = [slice(None)] * graph.arrays[x].ndim
    size = graph.arrays[x].shape[axis]
    # An end before the first element is that of a backward slice through it.
    last = None if step < 0 and end < -size else end
    # ONNX begins a backward slice at the first element where NumPy has begun before it.
    first = max(start, -size) if step < 0 else start
    index[axis] = slice(first, last, step)
    graph.add("Slice", [x, *names], graph.arrays[x][tuple(index)])


def moving(graph):
    x = graph.floats()
    value = graph.arrays[x]
    kind = graph.draw(st.sampled_from(["Transpose", "Reshape", "Unsqueeze", "Expand", "Concat"]))
    if kind == "Transpose" and value.ndim:
        axes = graph.draw(st.permutations(range(value.ndim)))
        graph.add("Transpose", [x], value.transpose(axes), perm=axes)
    elif kind == "Reshape":
        graph.add("Reshape", [x, graph.integers(value.size)], value.reshape(-1), allowzero=1)
    elif kind == "Unsqueeze" and value.ndim < 4:
        axis = graph.draw(st.integers(-value.ndim - 1, value.ndim))
        graph.add("Unsqueeze", [x, graph.integers(axis)], np.expand_dims(value, axis))
    elif kind == "Expand" and value.ndim < 4:
        shape = (graph.draw(st.integers(0, 3)), *value.shape)
        graph.add("Expand", [x, graph.integers(*shape)], np.broadcast_to(value, shape))
    elif kind == "Concat" and value.ndim:
        axis = graph.axis(x)
        graph.add("Concat", [x, x], np.concatenate([value, value], axis), axis=axis)


def product(graph):
    x, y = graph.floats(1), graph.floats(1)
    try:
        value = np.matmul(graph.arrays[x], graph.arrays[y])
    except (ValueError, KeyError):
        return
    graph.add("MatMul", [x, y], value)


STEPS = [unary, binary, binary, choice, reduction, gathering, scattering, slicing, moving, product]


@st.composite
def graphs(draw):
    graph = Graph(draw)
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    for _ in range(draw(st.integers(1, 3))):
        graph.given(rng.normal(size=draw(SHAPES)), False)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=8)):
        step(graph)
    return graph, draw(st.booleans())


def check(drawn):
    graph, has_names = drawn
    if not graph.nodes:
        return
    model = graph.model(has_names)
    fused = regions.fuse(model.SerializeToString()).model
    names = [name for node in graph.nodes for name in node.output]
    if fused is None:
        assert len(names) < regions.FEWEST_NODES or has_names
        return
    session = open_session(fused, with_library=True)
    for _ in range(2):
        for name, found in zip(names, session.run(None, graph.feed), strict=True):
            expected = graph.arrays[name]
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


LIMITS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@given(graphs())
@settings(max_examples=30, derandomize=True, **LIMITS)
def test_regions_compute_as_numpy(drawn):
    check(drawn)


@pytest.mark.sweep
@given(graphs())
@settings(max_examples=3000, **LIMITS)
def test_regions_of_many_graphs_compute_as_numpy(drawn):
    check(drawn)
