"""Equal dimensions are known as such."""

import time

from hypothesis import given, strategies as st

from pytensor_onnx.graph.dimensions import Dimensions


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from([*"abcdefg", 3]))),
    st.sets(st.sampled_from("abcdefg"), max_size=2),
)
def test_equal_dimensions_are_those_of_the_closure_of_all_equations(equations, named_by_user):
    dims = Dimensions()
    for name in named_by_user:
        dims.name(name)
    classes = [{dim} for dim in [*"abcdefg", 3]]
    for first, second in equations:
        dims.equate(first, second)
        joined = [c for c in classes if first in c or second in c]
        classes = [c for c in classes if c not in joined] + [set().union(*joined)]
    for members in classes:
        roots = {dims.canonical(dim) for dim in members}
        assert len(roots) == 1
        (root,) = roots
        assert root in members
        if 3 in members:
            assert root == 3
        elif members & named_by_user:
            assert root in named_by_user


def test_long_chains_of_equal_dimensions_are_followed_in_linear_time():
    dims = Dimensions()
    n = 20_000
    start = time.perf_counter()
    for i in reversed(range(n)):
        dims.equate(f"d{i}", f"d{i + 1}")
    assert {dims.canonical(f"d{i}") for i in range(n)} == {"d0"}
    assert time.perf_counter() - start < 5
