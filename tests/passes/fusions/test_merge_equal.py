"""Formulas of many short vectors are computed once, for the vectors joined."""

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.nn import conv1d, conv2d
from pytensor_onnx.passes.fusions.merge_equal import join_vectors, merge_equal
from pytensor_onnx.passes.model_pass import Passes
from tests.conftest import compare_onnx_and_py, op_types
from tests.nn import convolution as numpy_conv
from tests.passes.conftest import bare


def merged(emit):
    """Return the operators that stay; the results do not change."""
    model = bare(emit, np.array([[-1.0, 2.0]]))
    before = model.run()
    Passes(model.model, model.scope).run(merge_equal)
    for a, b in zip(model.run(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return sorted(model.operators())


def assert_merged(nodes):
    """Check a body and its subgraphs, and return their number."""
    bodies = [nodes]
    for body in bodies:
        bodies += [a.g.node for node in body for a in node.attribute if a.HasField("g")]
        nodes = [node for node in body if node.op_type != "Identity"]
        keys = {(n.op_type, *n.input, *(a.SerializeToString() for a in n.attribute)) for n in nodes}
        assert len(keys) == len(nodes)
    return len(bodies)


def test_chains_of_equal_nodes_are_merged():
    def twice(build, x):
        return build.Add(*(build.Neg(build.Softmax(x, axis=1)) for _ in range(2)))

    assert merged(twice) == ["Add", "Neg", "Softmax"]


@pytest.mark.parametrize(
    "emit",
    [
        lambda build, x: build.Add(build.Softmax(x, axis=0), build.Softmax(x, axis=1)),
        lambda build, x: build.Add(build.Sub(x, 1), build.Sub(1, x)),
        lambda build, x: [build.Neg(x), build.Neg(x)],
    ],
    ids=["attributes", "order of operands", "results of the model"],
)
def test_different_nodes_and_results_stay(emit):
    model = bare(emit, np.array([[-1.0, 2.0]]))
    assert merged(emit) == sorted(model.operators())


def test_results_of_the_model_merge_into_other_outputs():
    def sorted_and_positions(build, x):
        sort, argsort = (build.TopK(x, build.ints([2]), outputs=2) for _ in range(2))
        return [sort[0], argsort[1]]

    assert merged(sorted_and_positions) == ["TopK"]


def test_nodes_that_leave_out_different_outputs_are_kept():
    def pooled(build, x):
        image = build.Unsqueeze(x, build.ints([0]))
        first, second = (build.MaxPool(image, kernel_shape=[2], outputs=2) for _ in range(2))
        first[1].name = ""
        return [build.Neg(first[0]), build.Abs(second[1])]

    assert merged(pooled) == ["Abs", "MaxPool", "MaxPool", "Neg", "Unsqueeze"]


def test_subgraph_reads_the_node_that_stays():
    def captured(build, x):
        first, second = build.Neg(x), build.Neg(x)
        condition = build.constant(np.bool_(True))
        chosen = build.cond(condition, lambda then: then.Abs(second), lambda other: other.Exp(x))
        return [build.Sqrt(first), *chosen]

    assert merged(captured).count("Neg") == 1


def test_bodies_of_the_main_graph_are_merged():
    def branches(build, x):
        condition = build.constant(np.bool_(True))
        return build.cond(
            condition,
            lambda then: then.Add(then.Neg(then.Abs(x)), then.Neg(then.Abs(x))),
            lambda other: other.Exp(x),
        )

    model = bare(branches, np.array([[-1.0, 2.0]]))
    before = model.run()
    assert Passes(model.model, model.scope).run(merge_equal)
    np.testing.assert_array_equal(model.run(), before)


def test_guarded_products_have_no_equal_nodes():
    x = pt.vector("x")
    proto = export_onnx([x], pt.polygamma(2, x)).proto
    assert_merged(next(f for f in proto.functions if "PolyGamma" in f.name).node)


def test_random_numbers_are_drawn_twice():
    def draws(build, x):
        return build.Sub(build.RandomNormalLike(x), build.RandomNormalLike(x))

    model = bare(draws, np.zeros((1, 2)))
    assert not Passes(model.model, model.scope).run(merge_equal)


def test_positions_along_equal_sizes_are_counted_once():
    x, y = pt.matrix("x"), pt.matrix("y")
    masks = [pt.arange(v.shape[1]) < 2 for v in (x, y)]
    program = export_onnx([x, y], (x + y) * masks[0] * masks[1])
    assert op_types(program).count("Range") == 1


def test_sizes_that_a_check_compares_stay():
    x, mask = pt.vector("x"), pt.vector("mask", dtype="bool")
    assert op_types(export_onnx([x, mask], x[mask])).count("Shape") == 2


def test_functions_and_their_branches_have_no_equal_nodes():
    order, x = pt.vector("order", shape=(2,)), pt.vector("x", shape=(2,))
    [function] = [
        f for f in export_onnx([order, x], pt.jv(order, x)).proto.functions if "Jv" in f.name
    ]
    assert assert_merged(function.node) > 5


SIZES = (3, 1, 5, 2, 4)


def vectors(letter: str, dtype: str = "float32", sizes: tuple[int, ...] = SIZES) -> list:
    return [pt.tensor(f"{letter}{i}", shape=(n,), dtype=dtype) for i, n in enumerate(sizes)]


def values(variables: list) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = [rng.normal(size=x.type.shape).astype(x.type.dtype) for x in variables]
    found[0][0], found[2][:2], found[3][0] = np.nan, [np.inf, -np.inf], -0.0
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_of_one_formula_are_computed_together(dtype):
    w, g = vectors("w", dtype), vectors("g", dtype)
    updated = [0.5 * x + 0.25 * y for x, y in zip(w, g, strict=True)]
    program = compare_onnx_and_py([*w, *g], updated, values([*w, *g]))
    assert sorted(op_types(program)) == ["Add", "Concat", "Concat", "Mul", "Mul", "Split"]


def test_a_result_may_be_a_vector_of_another_formula():
    w, v, g = vectors("w"), vectors("v"), vectors("g")
    velocities = [0.5 * x + y for x, y in zip(v, g, strict=True)]
    updated = [x - 0.25 * y for x, y in zip(w, velocities, strict=True)]
    program = compare_onnx_and_py([*w, *v, *g], [*velocities, *updated], values([*w, *v, *g]))
    assert op_types(program).count("Split") == 2
    assert op_types(program).count("Concat") == 3


def test_results_in_another_order_take_the_joined_vectors():
    w, v, g = vectors("w"), vectors("v"), vectors("g")
    velocities = [0.5 * x + y for x, y in zip(v, g, strict=True)]
    updated = [x - 0.25 * y for x, y in zip(w, velocities, strict=True)]
    outputs = [*velocities, *(updated[i] for i in (2, 0, 4, 1, 3))]
    program = compare_onnx_and_py([*w, *v, *g], outputs, values([*w, *v, *g]))
    assert op_types(program).count("Concat") == 3


def test_numbers_may_be_computed():
    w, g = vectors("w"), vectors("g")
    rate = pt.scalar("rate", dtype="float32")
    updated = [x - pt.exp(rate) * y for x, y in zip(w, g, strict=True)]
    program = compare_onnx_and_py([rate, *w, *g], updated, [np.float32(-1.0), *values([*w, *g])])
    assert op_types(program).count("Exp") == 1
    assert op_types(program)[-1] == "Split"


def test_other_numbers_and_other_operators_are_other_formulas():
    w, g = vectors("w", sizes=(2,) * 12), vectors("g", sizes=(2,) * 12)
    updated = [x - (0.5 if i < 6 else 0.25) * y for i, (x, y) in enumerate(zip(w, g, strict=True))]
    program = compare_onnx_and_py([*w, *g], updated, values([*w, *g]))
    assert op_types(program).count("Split") == 2


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda x, y: 0.5 * x + y, id="the result before"),
        pytest.param(lambda x, y: 0.5 * y.sum() + x, id="a sum of the result before"),
    ],
)
def test_results_that_depend_on_each_other_stay_apart(step):
    x, *rest = vectors("x", sizes=(3,) * 6)
    results = [x]
    for y in rest:
        results.append(step(y, results[-1]))
    program = compare_onnx_and_py([x, *rest], results[1:], values([x, *rest]))
    assert "Split" not in op_types(program)


@pytest.mark.parametrize(
    ("sizes", "formula"),
    [
        pytest.param((3, 2, 4), lambda x, y: 0.5 * x + y, id="few"),
        pytest.param((2000,) * 5, lambda x, y: 0.5 * x + y, id="long"),
        pytest.param((3,) * 5, lambda x, y: x + y, id="one operator"),
        pytest.param((0,) * 5, lambda x, y: 0.5 * x + y, id="empty"),
        pytest.param((3,) * 5, lambda x, y: pt.exp(0.5 * x) + y.sum(), id="other operators"),
    ],
)
def test_joining_that_gains_nothing_is_left(sizes, formula):
    x, y = vectors("x", sizes=sizes), vectors("y", sizes=sizes)
    results = [formula(a, b) for a, b in zip(x, y, strict=True)]
    assert "Split" not in op_types(export_onnx([*x, *y], results, verify=False))


def test_long_chains_are_followed_some_way():
    scope = ModelScope(21)
    builder = Builder(scope)
    x = [ir.val(f"x{i}", dtype=ir.DataType.FLOAT, shape=(3,)) for i in range(4)]
    results = x
    for _ in range(1500):
        results = [builder.Neg(y) for y in results]
    name_values(builder.nodes, scope.names)
    model = ir.Model(
        ir.Graph(x, results, nodes=builder.nodes, name="main", opset_imports={"": 21}),
        ir_version=10,
    )
    assert Passes(model, scope).run(join_vectors)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_updates_of_a_function_are_those_of_the_variables():
    w = [pytensor.shared(np.full(n, n, "float32"), f"w{i}") for i, n in enumerate(SIZES)]
    g = vectors("g")
    updates = [(x, x - np.float32(0.5) * y) for x, y in zip(w, g, strict=True)]
    f = pytensor.function(g, [], updates=updates, mode="ONNX")
    gradients = [np.full(n, 2 * i, "float32") for i, n in enumerate(SIZES)]
    f(*gradients)
    for i, (x, n) in enumerate(zip(w, SIZES, strict=True)):
        np.testing.assert_array_equal(x.get_value(), np.full(n, n - i, "float32"))


def values_of(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def variables(values, batch=None):
    shapes = [v.shape if i or batch else (None, *v.shape[1:]) for i, v in enumerate(values)]
    return [pt.tensor(dtype="float32", shape=shape) for shape in shapes]


GEOMETRIES = {
    "plain": ([(0, 0), (0, 0)], (1, 1), (1, 1)),
    "padded": ([(1, 1), (2, 0)], (1, 1), (1, 1)),
    "strided": ([(1, 1), (1, 1)], (2, 3), (1, 1)),
    "dilated": ([(2, 2), (3, 1)], (1, 2), (2, 1)),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolutions_of_a_known_batch_have_a_depth(geometry):
    pads, strides, dilations = GEOMETRIES[geometry]
    values = values_of((3, 64, 3, 4), (160, 64, 3, 2), (160,))
    values[0][1, 4, 1, 1], values[0][2, 1, 2, 0] = np.nan, np.inf
    x, w, b = variables(values, batch=3)
    y = conv2d(x, w, pads, strides, False, dilations, bias=b)
    program = compare_onnx_and_py([x, w, b], y, values, rtol=1e-4, atol=1e-4)
    (conv,) = (node for node in program.model.graph if node.op_type == "Conv")
    assert len(conv.inputs[0].shape) == 5
    expected = numpy_conv.correlate(*values[:2], *GEOMETRIES[geometry])
    (found,) = program(*values)
    np.testing.assert_allclose(found, expected + values[2][:, None, None], rtol=1e-4, atol=1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("batch", [3, 9, None])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_gradients_of_images_are_the_sums_of_one_product(geometry, batch):
    pads, strides, dilations = GEOMETRIES[geometry]
    values = values_of((batch or 3, 64, 3, 4), (160, 64, 3, 2))
    x, w = variables(values, batch)
    y = conv2d(x, w, pads, strides, False, dilations)
    g = y.type()
    counts = numpy_conv.correlate(*values, *GEOMETRIES[geometry]).shape
    values += values_of(counts)
    values[2][1, 4, 0, 0], values[2][2, 1, 0, 1] = np.nan, -np.inf
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    sums = {"Col2Im"} if batch == 3 else {"Gather", "ReduceSum"}
    assert {"Gemm", "Col2Im", "Gather", "ReduceSum"} & set(op_types(program)) == {"Gemm", *sums}
    expected = numpy_conv.image_gradient(values[2], values[1], (3, 4), *GEOMETRIES[geometry])
    (found,) = program(*values)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    if batch is None:
        assert program(values[0][:0], values[1], values[2][:0])[0].shape == (0, 64, 3, 4)


@pytest.mark.parametrize(("size", "taps", "pad"), [(2, 3, 1), (1, 3, 1), (3, 2, 1)])
def test_images_of_few_elements_have_few_products(size, taps, pad):
    # Images of 2 x 2 with filters of 3 x 3: an element is the sum of four products, not nine.
    values = values_of((8, 160, size, size), (200, 160, taps, taps))
    x, w = variables(values, batch=8)
    y = conv2d(x, w, pad, filter_flip=False)
    g = y.type()
    values += values_of(y.type.shape)
    values[2][3, 7, 0, 0] = np.nan
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    assert "Col2Im" not in op_types(program)
    geometry = [(pad, pad)] * 2, (1, 1), (1, 1)
    expected = numpy_conv.image_gradient(values[2], values[1], (size, size), *geometry)
    np.testing.assert_allclose(program(*values)[0], expected, rtol=1e-4, atol=1e-3)
    (gather,) = (node for node in program.model.graph if node.op_type == "Gather")
    assert gather.inputs[1].const_value.size == size**2 * min(size, taps) ** 2


@pytest.mark.parametrize("taps", [3, 1])
def test_large_filters_are_the_first_factor(taps):
    # The runtime packs the second factor: 40 elements here, and half a million filter weights.
    channels = 1152 // taps**2
    values = values_of((10, channels, 2, 2), (512, channels, taps, taps), (10, 512, 2, 2))
    values[2][3, 7, 1, 0] = np.nan
    x, w, g = variables(values, batch=10)
    y = conv2d(x, w, taps // 2, filter_flip=False)
    gradient = pt.grad(None, x, known_grads={y: g})
    program = compare_onnx_and_py([x, w, g], gradient, values, rtol=1e-4, atol=1e-3)
    (gemm,) = (node for node in program.model.graph if node.op_type == "Gemm")
    assert tuple(gemm.inputs[0].shape.numpy()) == (512, channels * taps**2)
    geometry = [(taps // 2,) * 2] * 2, (1, 1), (1, 1)
    expected = numpy_conv.image_gradient(values[2], values[1], (2, 2), *geometry)
    np.testing.assert_allclose(program(*values)[0], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("batch", [3, None])
def test_filters_of_one_tap_are_a_product(batch):
    values = values_of((3, 96, 3, 3), (160, 96, 1, 1), (3, 160, 3, 3))
    values[0][1, 4, 1, 1], values[2][1, 4, 0, 0], values[2][2, 1, 0, 1] = np.inf, np.nan, -np.inf
    x, w, _ = variables(values, batch)
    y = conv2d(x, w, filter_flip=False)
    g = y.type()
    outputs = [y, *pt.grad(None, [x, w], known_grads={y: g})]
    program = compare_onnx_and_py([x, w, g], outputs, values, rtol=1e-4, atol=1e-4)
    # A batch that is not known may be empty, so that its Conv stays.
    convolutions = {"Conv", "ConvTranspose", "Col2Im"} & set(op_types(program))
    assert convolutions == (set() if batch else {"Conv"})
    geometry = [(0, 0), (0, 0)], (1, 1), (1, 1)
    expected = [
        numpy_conv.correlate(*values[:2], *geometry),
        numpy_conv.image_gradient(values[2], values[1], (3, 3), *geometry),
        numpy_conv.filter_gradient(values[0], values[2], (1, 1), *geometry),
    ]
    for found, result in zip(program(*values), expected, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-4)
    if batch is None:
        empty = [values[0][:0], values[1], values[2][:0]]
        y, gx, gw = program(*empty)
        assert (y.shape, gx.shape, gw.any()) == ((0, 160, 3, 3), (0, 96, 3, 3), False)


def test_the_transposed_images_of_a_product_are_shared_with_the_gradient_of_its_filters():
    x, w = variables(values_of((3, 64, 3, 3), (160, 64, 1, 1)), batch=3)
    y = conv2d(x, w, filter_flip=False)
    types = op_types(export_onnx([x, w], pt.grad((y**2).sum(), [x, w]), verify=False))
    # Images, products, the gradient and the result, each once.
    assert types.count("Transpose") == 4


@pytest.mark.parametrize("bias", [True, False])
def test_one_tap_along_one_axis_is_a_product_unless_there_is_a_bias(bias):
    values = values_of((2, 256, 5), (256, 256, 1), (256,))
    x, w, b = variables(values, batch=2)
    y = conv1d(x, w, filter_flip=False, bias=b if bias else None)
    inputs, given = ([x, w, b], values) if bias else ([x, w], values[:2])
    program = compare_onnx_and_py(inputs, y, given, rtol=1e-4, atol=1e-4)
    assert ("Conv" in op_types(program)) == bias


def test_a_convolution_along_one_axis_has_a_depth():
    values = values_of((2, 128, 6), (256, 128, 3))
    x, w = variables(values, batch=2)
    program = compare_onnx_and_py(
        [x, w], conv1d(x, w, 1, filter_flip=False), values, rtol=1e-4, atol=1e-4
    )
    (conv,) = (node for node in program.model.graph if node.op_type == "Conv")
    assert len(conv.inputs[0].shape) == 4


@pytest.mark.parametrize(
    ("images", "filters", "groups"),
    [
        ((None, 64, 3, 3), (160, 64, 3, 3), 1),
        ((1, 64, 3, 3), (160, 64, 3, 3), 1),
        ((2, 64, 8, 8), (160, 64, 3, 3), 1),
        ((2, 8, 3, 3), (16, 8, 3, 3), 1),
        ((2, 256, 3, 3), (256, 64, 3, 3), 4),
    ],
)
def test_other_convolutions_stay(images, filters, groups):
    x, w = (pt.tensor(dtype="float32", shape=shape) for shape in (images, filters))
    y = conv2d(x, w, 1, filter_flip=False, num_groups=groups)
    assert op_types(export_onnx([x, w], y, verify=False)) == ["Conv"]


def test_constant_filters_stay():
    x = pt.tensor(dtype="float32", shape=(2, 64, 3, 3))
    (w,) = values_of((160, 64, 3, 3))
    y = conv2d(x, pt.constant(w), 1, filter_flip=False)
    assert op_types(export_onnx([x], y, verify=False)) == ["Conv"]
