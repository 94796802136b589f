"""The operators of exported models: nothing is computed that is known at export."""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

from pytensor_onnx.operators.dims import dims_of
from tests.conftest import compare_onnx_and_py, op_types

Size = int | None
Graph = tuple[Sequence[Variable], Variable | Sequence[Variable]]
GRAPHS: dict[str, tuple[Callable[[Size], Graph], list[str], list[str]]] = {}


def tensor(name: str, *shape: Size, dtype: str = "float32") -> Variable:
    return pt.tensor(name, shape=shape, dtype=dtype)


def graph(static: str, dynamic: str | None = None) -> Callable:
    """Register a function that builds a graph, with its operators for known and unknown sizes."""

    def register(make: Callable[[Size], Graph]) -> Callable[[Size], Graph]:
        GRAPHS[make.__name__] = make, static.split(), (dynamic or static).split()
        return make

    return register


@graph("Reshape")
def reshape_by_its_own_size(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.reshape((x.shape[0], 3, 2))


@graph("Reshape")
def flatten_images(n: Size) -> Graph:
    x = tensor("x", n, 3, 4)
    return [x], x.flatten(ndim=2)


@graph("ReduceSum Mul")
def mean_over_features(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.mean(axis=-1)


@graph("ReduceSum Mul Sub Mul ReduceSum Mul")
def variance_over_features(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.var(axis=-1)


@graph("ReduceSum Mul", "Shape Squeeze Cast Cast ReduceSum Cast Div")
def mean_over_the_batch(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.mean(axis=0)


@graph("Identity", "Shape Squeeze Mul")
def size_of_all(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.size


@graph("Unsqueeze Add Mul")
def broadcast_by_axes(n: Size) -> Graph:
    x, rows, columns = tensor("x", n, 6), tensor("rows", 6), tensor("columns", n)
    return [x, rows, columns], (x + rows) * columns[:, None]


@graph("Expand", "Shape Expand")
def broadcast_to_a_shape(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", 6)
    return [x, y], pt.broadcast_to(y, x.shape)


@graph("ConstantOfShape", "Shape ConstantOfShape")
def zeros_of_a_shape(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], pt.zeros_like(x)


@graph("Slice Slice Gather Gather")
def basic_indexing(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], [x[0], x[:, -1], x[:, 1:3], x[:, ::-1]]


@graph("Gather")
def gather_columns(n: Size) -> Graph:
    x, i = tensor("x", n, 6), tensor("i", 3, dtype="int64")
    return [x, i], x[:, i]


@graph("Reshape Slice")
def diagonals(n: Size) -> Graph:
    x = tensor("x", n, 5, 5)
    return [x], pt.diagonal(x, axis1=1, axis2=2)


@graph("Softmax Mul ReduceSum Mul Mul Mul Mul Sub")
def softmax_gradient(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], pt.grad((pt.special.softmax(x, axis=-1) ** 2).sum(), x)


@graph("Softmax ReduceSum Mul Mul Add Neg")
def cross_entropy_gradient(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", n, 6)
    return [x, y], pt.grad(-(y * pt.special.log_softmax(x, axis=-1)).sum(), x)


@graph("Gemm Relu Gemm")
def two_layers(n: Size) -> Graph:
    x, w1, b1, w2, b2 = (
        tensor("x", n, 6),
        tensor("w1", 6, 5),
        tensor("b1", 5),
        tensor("w2", 5, 3),
        tensor("b2", 3),
    )
    return [x, w1, b1, w2, b2], pt.maximum(x @ w1 + b1, 0) @ w2 + b2


@graph(
    "Gemm Relu Gemm ReduceSum Mul Mul Gemm Gemm GreaterOrEqual Cast Mul ReduceSum Gemm",
    "Gemm Relu Gemm Cast ReduceSum Cast Mul Mul Gemm Gemm GreaterOrEqual Cast Mul"
    " Cast ReduceSum Cast Gemm",
)
def two_layers_with_gradients(n: Size) -> Graph:
    (x, *weights), output = two_layers(n)
    return [x, *weights], pt.grad((output**2).sum(), weights)


@graph("ReduceSum Mul Sub Mul ReduceSum Mul Add Sqrt Div Mul Add")
def layer_normalisation(n: Size) -> Graph:
    x, scale, shift = tensor("x", n, 6), tensor("scale", 6), tensor("shift", 6)
    centred = x - x.mean(-1, keepdims=True)
    deviation = pt.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    return [x, scale, shift], centred / deviation * scale + shift


@graph(
    "MatMul Split Reshape Transpose Reshape Transpose Reshape Transpose "
    "MatMul Mul Softmax MatMul Transpose Reshape"
)
def attention(n: Size) -> Graph:
    x, w = tensor("x", n, 5, 8), tensor("w", 8, 24)
    q, k, v = (
        part.reshape((x.shape[0], 5, 2, 4)).transpose(0, 2, 1, 3)
        for part in pt.split(x @ w, [8, 8, 8], n_splits=3, axis=-1)
    )
    weights = pt.special.softmax(q @ k.transpose(0, 1, 3, 2) * np.float32(0.5), axis=-1)
    mixed = (weights @ v).transpose(0, 2, 1, 3)
    return [x, w], mixed.reshape((x.shape[0], 5, 8))


@graph("Reshape ReduceMax_float32")
def max_pooling_by_reshape(n: Size) -> Graph:
    x = tensor("x", n, 6, 4)
    return [x], x.reshape((x.shape[0], 3, 2, 2, 2)).max(axis=(2, 4))


@graph("Concat")
def concatenation(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", n, 2)
    return [x, y], pt.concatenate([x, y], axis=1)


@graph("Unsqueeze Unsqueeze Concat")
def stack(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", n, 6)
    return [x, y], pt.stack([x, y], axis=1)


@graph("Unsqueeze Equal Cast")
def one_hot_by_comparison(n: Size) -> Graph:
    labels = tensor("labels", n, dtype="int64")
    return [labels], pt.eq(labels[:, None], pt.arange(4)).astype("float32")


@graph("Where")
def causal_mask(n: Size) -> Graph:
    x = tensor("x", n, 5, 5)
    return [x], pt.where(pt.tril(pt.ones((5, 5))) > 0, x, np.float32(-1e9))


@graph("MatMul")
def einsum(n: Size) -> Graph:
    x, w = tensor("x", n, 5), tensor("w", 5, 3)
    return [x, w], pt.einsum("bi,ij->bj", x, w)


@graph("Cast Pad")
def padding(n: Size) -> Graph:
    x = tensor("x", n, 5)
    return [x], pt.pad(x, ((0, 0), (1, 2)))


@graph("Unsqueeze Expand Reshape", "Unsqueeze Shape Concat Expand Reshape")
def repeat(n: Size) -> Graph:
    x = tensor("x", n, 3)
    return [x], pt.repeat(x, 2, axis=1)


@graph("Split")
def splitting(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], pt.split(x, [2, 4], n_splits=2, axis=1)


@graph("ArgMax TopK Squeeze")
def row_maximum_and_argmax(n: Size) -> Graph:
    x = tensor("x", n, 6, dtype="int64")
    return [x], [x.max(axis=1), x.argmax(axis=1)]


@graph("Identity", "Shape")
def shape_of_the_input(n: Size) -> Graph:
    x = tensor("x", n, 6)
    return [x], x.shape


@graph("ScatterND", "Unsqueeze Shape Concat Expand Reshape Slice Slice Concat")
def column_set(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", n)
    return [x, y], x[:, 1].set(y)


@graph("Slice Add Slice Slice Concat", "Shape Concat Expand Reshape Slice Add Slice Slice Concat")
def slice_increment(n: Size) -> Graph:
    x, y = tensor("x", n, 6), tensor("y", n, 2)
    return [x, y], x[:, 1:3].inc(y)


@pytest.mark.few(10)
@pytest.mark.each_value
@pytest.mark.parametrize("batch", [4, None], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", GRAPHS)
def test_operators(name: str, batch: Size) -> None:
    make, static, dynamic = GRAPHS[name]
    inputs, outputs = make(batch)
    rng = np.random.default_rng(0)
    values = [
        rng.integers(0, 3, size=[4 if size is None else size for size in x.type.shape])
        if x.type.dtype == "int64"
        else rng.normal(size=[4 if size is None else size for size in x.type.shape])
        for x in inputs
    ]
    arrays = [v.astype(x.type.dtype) for x, v in zip(inputs, values, strict=True)]
    program = compare_onnx_and_py(inputs, outputs, arrays, rtol=1e-4, atol=1e-5)
    assert op_types(program) == (static if batch else dynamic)
    if batch:
        for value in program.model.graph.outputs:
            assert all(isinstance(dim, int) for dim in dims_of(value) or ())
