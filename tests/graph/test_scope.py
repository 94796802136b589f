"""Equal dimensions are known as such."""

import time

import onnx_ir as ir
from hypothesis import given, strategies as st

from pytensor_onnx.graph.scope import ModelScope

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


@given(
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from([*"abcdefg", 3]))),
    st.sets(st.sampled_from("abcdefg"), max_size=2),
)
def test_equal_dimensions_are_those_of_the_closure_of_all_equations(equations, named_by_user):
    scope = ModelScope(21)
    for name in named_by_user:
        scope.name_dim(name)
    classes = [{dim} for dim in [*"abcdefg", 3]]
    for first, second in equations:
        scope.equate_dims(first, second)
        joined = [c for c in classes if first in c or second in c]
        classes = [c for c in classes if c not in joined] + [set().union(*joined)]
    for members in classes:
        roots = {scope.canonical_dim(dim) for dim in members}
        assert len(roots) == 1
        (root,) = roots
        assert root in members
        if 3 in members:
            assert root == 3
        elif members & named_by_user:
            assert root in named_by_user


def test_long_chains_of_equal_dimensions_are_followed_in_linear_time():
    scope = ModelScope(21)
    n = 20_000
    start = time.perf_counter()
    for i in reversed(range(n)):
        scope.equate_dims(f"d{i}", f"d{i + 1}")
    assert {scope.canonical_dim(f"d{i}") for i in range(n)} == {"d0"}
    assert time.perf_counter() - start < 5
