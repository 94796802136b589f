import numpy as np
import pytest

from pytensor_onnx.ops import draw_reference as reference

# `threefry2x32 20` of the known answers that come with Random123: counter, key, result.
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_threefry_gives_the_published_answers(counter, key, result):
    words = [np.array([word], "uint32") for word in (*key, *counter)]
    assert tuple(int(word[0]) for word in reference.threefry(*words)) == result


def test_a_state_counts_blocks_in_both_words():
    state = np.array([1, 2, 2**32 - 2, 7], "uint32")
    after, x, y = reference.blocks(state, 5)
    assert after.tolist() == [1, 2, 3, 8]
    low, high = np.array([2**32 - 2, 2**32 - 1, 0, 1, 2], "uint32"), [7, 7, 8, 8, 8]
    expected = reference.threefry(state[:1], state[1:2], low, np.array(high, "uint32"))
    np.testing.assert_array_equal([x, y], expected)


def test_the_counter_wraps_around():
    after, x, _ = reference.blocks(np.array([1, 2, 2**32 - 1, 2**32 - 1], "uint32"), 2)
    assert after.tolist() == [1, 2, 1, 0]
    np.testing.assert_array_equal(x[1:], reference.blocks(np.array([1, 2, 0, 0], "uint32"), 1)[1])


def test_several_draws_are_one_long_draw():
    state = np.array([3, 4, 0, 0], "uint32")
    _, whole = reference.uniform(state, 5, "float64")
    after, first = reference.uniform(state, 2, "float64")
    _, second = reference.uniform(after, 3, "float64")
    np.testing.assert_array_equal(whole, [*first, *second])
