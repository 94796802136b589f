"""Blocks are found where they repeat, and lie between narrow cuts."""

from hypothesis import given, strategies as st

from pytensor_onnx.pictures.graph_blocks import blocks_of


def residual_network(layers: int) -> tuple[list[str], list[list[int]]]:
    """Return operators and edges: a stem, layers with a residual, and a product."""
    names, before = ["Conv", "MaxPool"], [[], [0]]
    for _ in range(layers):
        start = len(names)
        names += ["Conv", "Relu", "Conv", "Add", "Relu"]
        before += [[start - 1], [start], [start + 1], [start - 1, start + 2], [start + 3]]
    return [*names, "Gemm"], [*before, [len(names) - 1]]


def test_equal_layers_are_one_block():
    blocks = blocks_of(*residual_network(12))
    assert [(block.times, len(block.nodes)) for block in blocks] == [(1, 2), (12, 60), (1, 1)]


@given(st.data(), st.integers(1, 80))
def test_edges_lead_from_block_to_block_and_no_node_is_lost(data, count):
    names = data.draw(
        st.lists(st.sampled_from(["Conv", "Add", "Exp"]), min_size=count, max_size=count)
    )
    before = [
        data.draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        for i in range(count)
    ]
    blocks = blocks_of(names, before, most=5)
    assert len(blocks) <= 5
    assert sorted(i for block in blocks for i in block.nodes) == list(range(count))
    place = {i: k for k, block in enumerate(blocks) for i in block.nodes}
    assert all(place[i] <= place[j] for j in range(count) for i in before[j])
    for block in blocks:
        assert block.times * sum(map(len, block.parts)) == len(block.nodes)


def test_a_graph_without_nodes_has_no_blocks():
    assert blocks_of([], []) == []
