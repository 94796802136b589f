"""Transposes around layers that work channels first cancel, and the numbers stay."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.builder import carry_fallback, fallback_of
from pytensor_onnx.passes.layout.move_transposes import move_transposes
from pytensor_onnx.passes.model_pass import Passes
from tests.passes.conftest import bare, run_model

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
X = np.random.default_rng(0).normal(size=(2, 4, 6, 3)).astype("float32")
SHAPES = [("batch", 4, 6, 3)]


def pooled(build, x):
    """Return a pooling, channels first, of a value that is channels last."""
    first = build.Transpose(x, perm=FIRST)
    result = build.MaxPool(first, kernel_shape=[1, 1])
    result.shape = first.shape
    return build.Transpose(result, perm=LAST)


def moved(emit, *operands, shapes=SHAPES, rtol=0.0):
    """Return the operators after the pass, which must not change the results."""
    model = bare(emit, *operands, shapes=shapes)
    names = [v.name for v in model.model.graph.outputs]
    expected = model.run()
    Passes(model.model, model.scope).run(move_transposes)
    for found, wanted in zip(run_model(model.model, model.feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
    assert [v.name for v in model.model.graph.outputs] == names
    return [node.op_type for node in model.model.graph]


ELEMENTWISE = {
    "Relu": lambda build, y: build.Relu(y),
    "number": lambda build, y: build.Mul(y, np.float32(2)),
    "vector": lambda build, y: build.Add(y, np.arange(3, dtype="float32")),
    "column": lambda build, y: build.Add(y, np.arange(6, dtype="float32")[:, None]),
    "row by row": lambda build, y: build.Mul(y, np.arange(2, dtype="float32").reshape(2, 1, 1, 1)),
    "array": lambda build, y: build.Sub(X[:1], y),
    "Where": lambda build, y: build.Where(build.Greater(y, np.float32(0)), y, np.float32(-1)),
    "Clip": lambda build, y: build.Clip(y, np.float32(-1), np.float32(1)),
    "itself": lambda build, y: build.Mul(y, build.Exp(y)),
    "Pad": lambda build, y: build.Pad(y, np.array([0, 1, 0, 0, 0, 2, 3, 1]), np.float32(5)),
    "Concat": lambda build, y: build.Concat(y, build.Neg(y), axis=3),
    "Concat with a constant": lambda build, y: build.Concat(y, X, axis=-2),
    "Slice": lambda build, y: build.Slice(y, [1, 0], [3, 2], [1, -1], [1, 1]),
    "Split": lambda build, y: build.Add(*build.Split(y, axis=2, num_outputs=2, outputs=2)),
    "Softmax": lambda build, y: build.Softmax(y, axis=-1),
    "Tile": lambda build, y: build.Tile(y, np.array([1, 2, 1, 3])),
    "Gather": lambda build, y: build.Gather(y, np.array([2, 0]), axis=3),
    "kept axis": lambda build, y: build.Sub(y, build.ReduceMax(y, np.array([3]), keepdims=1)),
    "group norm": lambda build, y: build.Sub(y, build.ReduceMean(y, np.array([1, 2]), keepdims=1)),
    "dropped and added": lambda build, y: build.Add(
        y, build.Unsqueeze(build.ReduceMax(y, np.array([2]), keepdims=0), np.array([2]))
    ),
    "added and dropped": lambda build, y: build.Squeeze(
        build.Unsqueeze(y, np.array([2, 5])), np.array([2, -1])
    ),
    "Cast": lambda build, y: build.Cast(build.Cast(y, to=int(ir.DataType.DOUBLE)), to=1),
}


@pytest.mark.parametrize("between", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_transposes_between_two_layers_cancel(between):
    operators = moved(lambda build, x: pooled(build, between(build, pooled(build, x))), X)
    assert operators.count("Transpose") == 2
    assert operators[0] == operators[-1] == "Transpose"


def test_bias_that_is_an_input_is_reshaped_not_transposed():
    bias = np.arange(3, dtype="float32")
    operators = moved(
        lambda build, x, b: pooled(
            build, build.Add(pooled(build, x), build.Unsqueeze(b, [0, 1, 2]))
        ),
        X,
        bias,
        shapes=[*SHAPES, (3,)],
    )
    assert operators.count("Transpose") == 2
    assert operators.count("Unsqueeze") == 1


@pytest.mark.parametrize(
    ("shape", "perm"), [((3, 6, 1), [2, 1, 0]), ((6, 1, 4), [2, 0, 1]), ((6, 4, 1), [1, 0, 2])]
)
def test_operands_of_fewer_axes_may_be_transposed_as_well(shape, perm):
    w = np.random.default_rng(1).normal(size=shape).astype("float32")

    def network(build, x, w):
        return pooled(build, build.Add(pooled(build, x), build.Transpose(w, perm=perm)))

    moved(network, X, w, shapes=[*SHAPES, shape])


def test_residual_connections_cancel_with_the_block_and_with_the_input():
    def network(build, x):
        for _ in range(3):
            x = build.Add(pooled(build, build.Relu(pooled(build, x))), x)
        return x

    assert moved(network, X).count("Transpose") == 2


def test_mean_over_space_needs_no_transpose_after_it():
    operators = moved(
        lambda build, x: build.ReduceMean(pooled(build, x), np.array([1, 2]), keepdims=0), X
    )
    assert operators == ["Transpose", "MaxPool", "ReduceMean"]


def test_largest_over_channels_is_found_channels_first():
    operators = moved(lambda build, x: build.ArgMax(pooled(build, x), axis=3, keepdims=0), X)
    assert operators == ["Transpose", "MaxPool", "ArgMax"]


def test_sizes_are_read_before_the_transpose():
    operators = moved(
        lambda build, x: [
            build.Shape(pooled(build, x)),
            build.Shape(pooled(build, x), start=-1),
            build.Shape(pooled(build, x), start=1, end=3),
        ],
        X,
        shapes=[("batch", "height", "width", "channels")],
    )
    assert operators.count("Transpose") == 3
    assert operators.count("Shape") == 3


def test_constant_weights_after_a_flattening_follow_the_order():
    weights = np.random.default_rng(1).integers(-3, 3, size=(72, 5)).astype("float32")
    integers = np.round(X * 4)

    def network(build, x):
        flat = build.Reshape(pooled(build, x), np.array([-1, 72]))
        flat.shape = ir.Shape(["batch", 72])
        return build.MatMul(flat, weights)

    assert moved(network, integers) == ["Transpose", "MaxPool", "Reshape", "MatMul"]


def reshaped(build, y, *dims):
    result = build.Reshape(y, np.array([2 if d == "batch" else d for d in dims]), allowzero=1)
    result.shape = ir.Shape(dims)
    return result


@pytest.mark.parametrize("is_constant", [True, False])
def test_space_is_merged_and_split_channels_first(is_constant):
    def network(build, x):
        y = reshaped(build, pooled(build, x), "batch", 24, 3)
        z = build.Relu(y)
        if is_constant:
            z = reshaped(build, z, "batch", 4, 6, 3)
        else:
            z = build.Reshape(z, build.Shape(x))
            z.shape = ir.Shape(["batch", 4, 6, 3])
        return pooled(build, z)

    operators = moved(network, X)
    assert operators.count("Transpose") == 2
    assert operators.count("Reshape") == 2


def test_batch_that_is_kept_stays_first():
    def network(build, x):
        y = build.Reshape(pooled(build, x), np.array([0, -1, 3]))
        y.shape = ir.Shape(["batch", 24, 3])
        return build.MatMul(build.Transpose(build.Relu(y), perm=[0, 2, 1]), y)

    assert moved(network, X)[:4] == ["Transpose", "MaxPool", "Reshape", "Relu"]


def test_channels_in_groups_are_split_channels_first():
    def network(build, x):
        y = reshaped(build, pooled(build, build.Concat(x, x, axis=3)), "batch", 4, 6, 2, 3)
        y = build.Sub(y, build.ReduceMax(y, np.array([1, 2, 4])))
        return pooled(build, reshaped(build, y, "batch", 4, 6, 6))

    assert moved(network, X).count("Transpose") == 2


def test_axes_that_are_not_neighbours_are_not_merged():
    def network(build, x):
        return build.Neg(reshaped(build, pooled(build, x), "batch", 4, 18))

    assert moved(network, X)[-3:] == ["Transpose", "Reshape", "Neg"]


def test_weights_that_are_inputs_keep_the_transpose():
    weights = np.ones((72, 5), "float32")

    def network(build, x, w):
        return build.MatMul(build.Reshape(pooled(build, x), np.array([-1, 72])), w)

    operators = moved(network, np.round(X), weights, shapes=[*SHAPES, (72, 5)])
    assert operators.count("Transpose") == 2


def test_both_a_layer_and_an_output_may_need_a_value():
    def network(build, x):
        y = build.Relu(pooled(build, x))
        return [y, pooled(build, y)]

    assert moved(network, X).count("Transpose") == 3


def test_an_output_may_be_an_operand_of_a_layer():
    def network(build, x):
        y = pooled(build, x)
        return [build.Transpose(y, perm=FIRST), build.Neg(y)]

    assert moved(network, X).count("Transpose") == 2


def test_values_captured_by_a_branch_are_transposed_before_it():
    def network(build, x):
        y = build.Relu(pooled(build, x))
        positive = build.Greater(build.ReduceMax(y, keepdims=0), np.float32(0))
        return build.cond(positive, lambda then: then.Exp(y), lambda other: other.Neg(y))[0]

    assert moved(network, X).count("Transpose") == 2


def test_fallback_of_a_moved_node_is_of_the_order_it_was_made_for():
    def define(build, y):
        return build.Add(y, np.arange(3, dtype="float32"))

    def network(build, x):
        y = build.Relu(pooled(build, x))
        carry_fallback(y.producer(), define)
        return pooled(build, y)

    model = bare(network, X, shapes=SHAPES)
    Passes(model.model, model.scope).run(move_transposes)
    (node,) = (node for node in model.model.graph if node.op_type == "Relu")
    defined = bare(fallback_of(node), X.transpose(FIRST)).run()[0]
    np.testing.assert_array_equal(defined, (X + np.arange(3, dtype="float32")).transpose(FIRST))


def test_transposes_of_attention_stay_where_they_are():
    def heads(build, x):
        q = build.Transpose(build.Mul(x, np.float32(0.5)), perm=[0, 2, 1, 3])
        k = build.Transpose(build.Exp(x), perm=[0, 2, 3, 1])
        return build.MatMul(build.Neg(q), k)

    model = bare(heads, X, shapes=SHAPES)
    before = [node.op_type for node in model.model.graph]
    assert not Passes(model.model, model.scope).run(move_transposes)
    assert [node.op_type for node in model.model.graph] == before


def test_no_more_is_transposed_than_before():
    def network(build, x):
        y = pooled(build, x)
        wide = build.Tile(y, np.array([1, 8, 8, 1]))
        return [wide, build.Reshape(y, np.array([-1])), build.Neg(wide)]

    assert moved(network, X) == [
        "Transpose",
        "MaxPool",
        "Transpose",
        "Tile",
        "Reshape",
        "Neg",
    ]


@pytest.mark.slow
def test_long_networks_take_linear_time():
    def network(build, x):
        for _ in range(400):
            x = build.Relu(build.Add(pooled(build, x), x))
        return x

    model = bare(network, X, shapes=SHAPES)
    Passes(model.model, model.scope).run(move_transposes)
    operators = [node.op_type for node in model.model.graph]
    assert operators.count("Transpose") == 2


def random_network(seed):
    """Return what emits a network of layers and of operators between them, drawn at random."""

    def network(build, x):
        rng = np.random.default_rng(seed)
        values = [x]
        for _ in range(12):
            y = values[rng.integers(max(0, len(values) - 3), len(values))]
            kind = rng.integers(10)
            if kind < 3:
                y = pooled(build, y)
            elif kind == 3:
                y = list(ELEMENTWISE.values())[rng.integers(5)](build, y)
            elif kind == 4:
                y = build.Add(y, values[rng.integers(len(values))])
            elif kind == 5:
                axes = rng.choice(4, size=rng.integers(1, 4), replace=False)
                y = build.Sub(y, build.ReduceMax(y, axes, keepdims=1))
            elif kind == 6:
                axis = int(rng.integers(4))
                reduced = build.ReduceMean(y, np.array([axis]), keepdims=0)
                y = build.Mul(y, build.Unsqueeze(reduced, np.array([axis])))
            elif kind == 7:
                y = build.Where(build.Greater(y, values[0]), y, build.Tanh(y))
            elif kind == 8:
                a, b, kept = map(int, rng.permutation(3))
                reduced = build.ReduceMax(build.ReduceMax(y, [0], keepdims=0), [a, b], keepdims=1)
                perm = [b if i == a else a if i == b else kept for i in range(3)]
                y = build.Sub(y, build.Transpose(reduced, perm=perm))
            else:
                y = build.Slice(build.Concat(y, y, axis=3), [1], [4], [3])
            y.shape = x.shape
            values.append(y)
        chosen = rng.choice(np.arange(1, len(values)), size=2, replace=False)
        return [values[i] for i in chosen] + [build.Neg(values[-1])]

    return network


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_compute_the_same(seed):
    emit = random_network(seed)
    before = sum(n.op_type == "Transpose" for n in bare(emit, X, shapes=SHAPES).model.graph)
    # Sums in another order, and functions that round by the place of a number in memory.
    assert moved(emit, X, rtol=1e-5).count("Transpose") <= before
