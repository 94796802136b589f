"""Names are unique in a model."""

import time

from hypothesis import given, strategies as st

from pytensor_onnx.graph.names import Names


def test_names_are_unique_among_used_ones():
    names = Names()
    given_names = [names.unique(n) for n in ("a", "a_1", "a", "a", "", "?", "a b", "a.b/c:d-e")]
    assert given_names == ["a", "a_1", "a_2", "a_3", "value", "value_1", "a_b", "a.b/c:d-e"]


@given(st.lists(st.text(max_size=4), max_size=30))
def test_no_name_is_given_twice(wanted):
    names = Names()
    given_names = [names.unique(name) for name in wanted]
    assert len(set(given_names)) == len(given_names)


def test_many_equal_names_take_linear_time():
    names = Names()
    start = time.perf_counter()
    for _ in range(100_000):
        names.unique("x")
    assert time.perf_counter() - start < 5  # 0.2 s; quadratic would be minutes
