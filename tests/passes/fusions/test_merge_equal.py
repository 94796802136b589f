import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.passes.fusions.merge_equal import merge_equal
from pytensor_onnx.passes.model_pass import Passes
from tests.conftest import op_types
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_functions_and_their_branches_have_no_equal_nodes():
    order, x = pt.vector("order", shape=(2,)), pt.vector("x", shape=(2,))
    [function] = [
        f for f in export_onnx([order, x], pt.jv(order, x)).proto.functions if "Jv" in f.name
    ]
    assert assert_merged(function.node) > 5
