import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.basic import inverse_permutation, permute_row_elements

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.dispatch.values import DTYPES, INTEGERS, elements, special_values
from tests.properties import holds_for


class TestChoose:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes_of_choices(self, dtype):
        a, choices = pt.lvector("a"), pt.tensor("choices", dtype=dtype, shape=(None, 3))
        values = np.resize(special_values(dtype), (4, 3))
        compare_onnx_and_py([a, choices], pt.choose(a, choices), [np.array([3, 0, 2]), values])

    @pytest.mark.parametrize("dtype", [d for d in INTEGERS if d != "uint64"])  # refused by NumPy
    @pytest.mark.parametrize("mode", ["wrap", "clip"])
    def test_modes(self, dtype, mode):
        a, choices = pt.tensor("a", dtype=dtype, shape=(None,)), pt.matrix("choices")
        index = np.array([0, 5, 100, 1, 7]) - (0 if dtype.startswith("u") else 4)
        values = [index.astype(dtype), np.arange(15.0).reshape(3, 5)]
        compare_onnx_and_py([a, choices], pt.choose(a, choices, mode=mode), values)

    @pytest.mark.parametrize("bad", [-1, 3])
    def test_a_number_that_is_no_choice_raises(self, bad):
        a, choices = pt.lvector("a"), pt.matrix("choices")
        program = compile_onnx([a, choices], pt.choose(a, choices), verify=False)
        with pytest.raises(ValueError, match="invalid entry"):
            program(np.array([0, bad]), np.ones((3, 2)))

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ((2, 3), (4, 1, 3)),
            ((1, 3), (4, 2, 1)),
            ((3,), (4, 2, 3)),
            ((2, 3), (4, 3)),
            ((), (4,)),
            ((0,), (4, 0)),
        ],
    )
    @pytest.mark.parametrize("known", [False, True])
    def test_arrays_are_broadcast(self, first, second, known):
        static = [tuple(1 if n == 1 and known else None for n in x) for x in (first, second)]
        a, choices = pt.tensor("a", dtype="int64", shape=static[0]), pt.tensor("c", shape=static[1])
        rng = np.random.default_rng(1)
        values = [rng.integers(0, 4, first), rng.normal(size=second)]
        chosen = pt.choose(a, choices)
        compare_onnx_and_py(
            [a, choices], [chosen, chosen.sum(axis=0) if chosen.ndim else chosen], values
        )


class TestPermuteRowElements:
    @pytest.mark.each_value
    @pytest.mark.parametrize("inverse", [False, True])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, inverse, dtype):
        x, p = pt.tensor("x", dtype=dtype, shape=(None, None)), pt.lvector("p")
        values = np.resize(special_values(dtype), (2, 4))
        outputs = permute_row_elements(x, p, inverse=inverse)
        compare_onnx_and_py([x, p], outputs, [values, np.array([2, 0, 3, 1])])

    @pytest.mark.parametrize("inverse", [False, True])
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ((4,), (4,)),
            ((2, 4), (2, 4)),
            ((3, 2, 4), (2, 4)),
            ((4,), (2, 4)),
            ((0, 4), (4,)),
            ((2, 0), (0,)),
            ((3, 1, 4), (1, 2, 4)),
        ],
    )
    def test_rows_are_broadcast(self, first, second, inverse):
        static = [tuple(1 if n == 1 else None for n in shape) for shape in (first, second)]
        x, p = pt.tensor("x", shape=static[0]), pt.tensor("p", dtype="int32", shape=static[1])
        rng = np.random.default_rng(2)
        order = rng.permuted(np.broadcast_to(np.arange(second[-1], dtype="int32"), second), axis=-1)
        outputs = permute_row_elements(x, p, inverse=inverse)
        compare_onnx_and_py([x, p], outputs, [rng.normal(size=first), order])

    def test_inverse_permutation(self):
        p = pt.lmatrix("p")
        compare_onnx_and_py([p], inverse_permutation(p), [np.array([[2, 0, 1], [0, 2, 1]])])

    def test_a_permutation_of_another_length_raises(self):
        x, p = pt.matrix("x"), pt.lvector("p")
        program = compile_onnx([x, p], permute_row_elements(x, p), verify=False)
        with pytest.raises(ValueError, match="another length"):
            program(np.ones((2, 3)), np.array([0, 1]))

    @pytest.mark.parametrize("inverse", [False, True])
    def test_gradient(self, inverse):
        x, p = pt.row("x"), pt.lmatrix("p")
        weights = np.arange(6.0).reshape(2, 3)
        cost = (permute_row_elements(x, p, inverse=inverse) * weights).sum()
        values = [np.ones((1, 3)), np.array([[2, 0, 1], [0, 2, 1]])]
        compare_onnx_and_py([x, p], pytensor.grad(cost, x), values)


@pytest.mark.slow
@holds_for(data=st.data(), dtype=st.sampled_from(DTYPES), mode=st.sampled_from(["wrap", "clip"]))
def test_any_choice_is_that_of_numpy(data, dtype, mode):
    count, size = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
    values = data.draw(hnp.arrays(dtype, (count, size), elements=elements(dtype)))
    # NumPy wraps by repeated addition, which takes for ever far from zero.
    index = data.draw(hnp.arrays("int64", size, elements=st.integers(-1000, 1000)))
    a, choices = pt.lvector("a"), pt.tensor("choices", dtype=dtype, shape=(None, None))
    compare_onnx_and_py([a, choices], pt.choose(a, choices, mode=mode), [index, values])
