import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace, vectorize_graph

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, op_types

X = np.arange(60.0).reshape(3, 4, 5)
I1, J1 = np.array([[0, 1, -1], [2, 2, 0]]), np.array([[1, 0, 3], [-1, 2, 2]])
K = np.array([[[0], [1]], [[2], [-1]]])

INDICES = {
    "first": lambda x, i, j, k: x[i],
    "middle": lambda x, i, j, k: x[:, i],
    "last": lambda x, i, j, k: x[..., i],
    "two": lambda x, i, j, k: x[i, j],
    "two at the end": lambda x, i, j, k: x[:, i, j],
    "two apart": lambda x, i, j, k: x[i, :, j],
    "slices": lambda x, i, j, k: x[1:, i, ::-2],
    "ranks": lambda x, i, j, k: x[k, i],
    "ranks in the middle": lambda x, i, j, k: x[:, k, i],
    "scalar": lambda x, i, j, k: x[i, j[0]],
    "scalar apart": lambda x, i, j, k: x[j[0], :, i],
}


@pytest.mark.each_value
@pytest.mark.parametrize("batched", ["x", "i", "j", "ij", "ijk", "xi", "xij", "xk", "xijk"])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_a_batch_of_indices_is_one_index(index, batched):
    values = {"x": X, "i": I1[0], "j": J1[0], "k": K[0]}
    batches = {"x": np.stack([X, -X]), "i": I1, "j": J1, "k": K}
    core = {name: tensor(name, value) for name, value in values.items()}
    whole = {name: tensor(name, batches[name]) for name in batched}
    result = vectorize_graph(index(*core.values()), {core[name]: whole[name] for name in batched})
    inputs = [whole.get(name, core[name]) for name in core]
    program = compare_onnx_and_py(
        inputs, result, [batches[n] if n in batched else values[n] for n in core]
    )
    assert "Loop" not in op_types(program)


def test_a_batch_of_several_axes_is_one_index():
    x, i = pt.matrix("x"), pt.lvector("i")
    batch_x, batch_i = pt.tensor4("bx"), pt.tensor("bi", dtype="int64", shape=(1, None, None))
    value, index = np.arange(72.0).reshape(2, 3, 4, 3), np.arange(6).reshape(1, 3, 2) % 4
    result = vectorize_graph(x[i], {x: batch_x, i: batch_i})
    assert "Loop" not in op_types(compare_onnx_and_py([batch_x, batch_i], result, [value, index]))


@pytest.mark.each_value
@pytest.mark.parametrize("bounds", [slice(None, 2), slice(1, None), slice(-1, None, -2)], ids=str)
@pytest.mark.parametrize("lead", [(), (slice(1),), (np.array(0),)], ids=["", "slice", "scalar"])
def test_slices_after_a_mask_of_several_axes_are_not_taken_for_others(lead, bounds):
    """PyTensor itself drops the slice, so the reference is NumPy."""
    value = np.arange(12.0).reshape((1,) * (len(lead) + 2) + (4, 3))
    chosen = np.ones((1, 1), bool)
    mask = pt.matrix("mask", dtype="bool")
    x = pt.tensor("x", shape=(*value.shape[:-2], None, None))
    index, expected = (*lead, mask, bounds), value[(*lead, chosen, bounds)]
    outputs = [x[index], x[index].set(-1.0), x[index].inc(2.0)]
    taken, put, added = compile_onnx([x, mask], outputs)(value, chosen)
    np.testing.assert_array_equal(taken, expected)
    replaced, incremented = value.copy(), value.copy()
    replaced[(*lead, chosen, bounds)] = -1.0
    incremented[(*lead, chosen, bounds)] += 2.0
    np.testing.assert_array_equal(put, replaced)
    np.testing.assert_array_equal(added, incremented)


def tensor(name, value):
    return pt.tensor(name, dtype=str(value.dtype), shape=(None,) * value.ndim)


@pytest.mark.parametrize("known", ["", "y", "xy"])
def test_what_is_added_at_rows_of_positions_is_repeated(known):
    x, y = pt.vector("x"), pt.vector("y")
    values = {x: np.zeros(3), y: np.array([1.0, 10.0])}
    result = x[np.array([[0, 1], [1, 2], [2, 2]])].inc(y)
    inputs = [v for v in values if v.name not in known]
    constants = {v: pt.constant(values[v]) for v in values if v.name in known}
    f = compile_onnx(inputs, clone_replace(result, constants), verify=False)
    # NumPy's add.at, that PyTensor uses, is no reference.
    np.testing.assert_array_equal(f(*(values[v] for v in inputs)), [1.0, 11.0, 21.0])


def test_an_index_from_the_end_of_joined_vectors_is_not_looked_up_in_the_first():
    v, x = pt.lvector("v"), pt.lscalar("x")
    joined = pt.concatenate([np.zeros(1, "int64"), v.cumsum()])
    ends = [joined[-1] + x, joined[-2] * x, pt.arange(joined[-1]).sum()]
    compare_onnx_and_py([v, x], ends, [np.array([3, 4]), np.int64(10)])


def test_writes_at_one_place_are_written_once():
    x, a = pt.vector("x"), pt.scalar("a")
    rows = pt.lvector("rows")
    y, z = x, x
    for i in range(4):
        y = y[1].set(y[0] * a + i)
        z = z[rows].set(z[rows] * a)
    both = x[0].inc(a)[1].set(a)[0].set(2 * a)
    later = x[:2].inc(a)[:2].set(1.0)[:2].inc(a)
    values = [np.array([1.0, np.nan, -0.0]), 0.5, np.array([2, 0, 2])]
    compare_onnx_and_py([x, a, rows], [y, z, both, later], values)
    program = compare_onnx_and_py([x, a], x[0].inc(a)[0].set(1.0)[0].set(a), values[:2])
    assert op_types(program).count("ScatterND") == 1
