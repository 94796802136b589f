import numpy as np
import pytest

from pytensor_onnx.ops.random import draw_reference as reference

# `threefry2x64 20` of the known answers that come with Random123: counter, key, result.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)),
    (
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
        (0xE02CB7C4D95D277A, 0xD06633D0893B8B68),
    ),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344),
        (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    ),
]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_threefry_gives_the_published_answers(counter, key, result):
    words = [np.array([word], "uint64") for word in (*key, *counter)]
    assert tuple(int(word[0]) for word in reference.threefry(*words)) == result


@pytest.mark.parametrize("counter", [6, 7, 2**64 - 3])
def test_a_state_counts_words_of_blocks(counter):
    after, words = reference.bits(np.array([1, 2, counter], "uint64"), 5)
    assert after.tolist() == [1, 2, (counter + 5) % 2**64]
    key = [np.array([word], "uint64") for word in (1, 2)]
    for i, word in enumerate(words):
        place = (counter + i) % 2**64
        block = reference.threefry(*key, np.array([place // 2], "uint64"), np.zeros(1, "uint64"))
        assert word == block[place % 2][0]


@pytest.mark.parametrize("draw", [reference.uniform, reference.open_uniform])
def test_several_draws_are_one_long_draw(draw):
    state = np.array([3, 4, 0], "uint64")
    _, whole = draw(state, 5, "float64")
    after, first = draw(state, 1, "float64")
    after, second = draw(after, 1, "float64")
    _, third = draw(after, 3, "float64")
    np.testing.assert_array_equal(whole, [*first, *second, *third])
