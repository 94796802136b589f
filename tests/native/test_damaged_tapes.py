"""Damaged tapes are refused, or run, and never end the process."""

import resource
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import operator_numbers
from pytensor_onnx.kernels.tape import with_digest
from tests.native.damaged_tapes import Seed, damaged, seeds_without_loops

TAPES = 200
"""Damaged tapes of the test; `scripts/fuzz_tapes.py` runs many more, under the sanitizers."""


MOST_BYTES = 2**32
"""Memory of their process."""


def region_of(seed: Seed, tape: bytes, outputs: list[int]) -> bytes:
    """Return the model of a region with a tape."""
    named = {f"x{i}": value for i, (value, _) in enumerate(seed.inputs)}
    node = helper.make_node(
        "Region",
        list(named),
        [f"y{i}" for i in range(len(outputs))],
        domain=native.REGION_DOMAIN,
        tape=tape,
    )
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim
        )
        for name, value in named.items()
    ]
    results = [
        helper.make_tensor_value_info(f"y{i}", dtype, None) for i, dtype in enumerate(outputs)
    ]
    domains = [helper.make_opsetid(native.REGION_DOMAIN, 1), helper.make_opsetid("", 21)]
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, results), opset_imports=domains, ir_version=10
    )
    return model.SerializeToString()


def output_dtypes(seed: Seed) -> list[int]:
    """Return the types of the outputs of a tape that is not damaged."""
    words, at = seed.words, 0
    values = words[1 : 1 + words[0]]
    at = 1 + len(values)
    count, at = words[at], at + 1
    for _ in range(count):
        value, rank = words[at], words[at + 1]
        sizes = words[at + 2 : at + 2 + rank]
        width = helper.tensor_dtype_to_np_dtype(values[value]).itemsize
        at += 2 + rank - (-int(np.prod(sizes)) * width // 8)
    at += 1 + words[at] + 1
    at += 1 + words[at]
    return [values[x] for x in words[at + 1 : at + 1 + words[at]]]


def run(seed: Seed, tape: bytes, outputs: list[int]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    native.register_with_regions(options, ())
    session = onnxruntime.InferenceSession(region_of(seed, tape, outputs), options)
    return session.run(None, {f"x{i}": value for i, (value, _) in enumerate(seed.inputs)})


def run_damaged() -> None:
    """Run the tapes of the test, and print how many were done and refused."""
    # Sizes may be damaged too, and an array of 8 GB is refused or computed, which takes long.
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    found = seeds_without_loops()
    done = 0
    for number in range(TAPES):
        seed = found[number % len(found)]
        made, tape = damaged(seed, number)
        try:
            run(made, tape, output_dtypes(seed))
            done += 1
        except Exception:  # any error is right, and a signal is not
            pass
    print(done, TAPES - done)


def test_damaged_tapes_do_not_end_the_process():
    code = "from tests.native.test_damaged_tapes import run_damaged; run_damaged()"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    done, refused = map(int, run.stdout.split())
    assert done > TAPES / 10
    assert refused > TAPES / 10


FLOAT, SINGLE, INT, BOOL = 11, 1, 7, 9


def code(operator, inputs, outputs, attributes=(), sizes=0):
    """Return the words of an instruction."""
    head = [operator_numbers()[operator], len(inputs), len(outputs), len(attributes), sizes]
    return [*head, *inputs, *outputs, *attributes]


def block(inputs, outputs, *instructions):
    listed = [word for instruction in instructions for word in instruction]
    return [len(inputs), *inputs, len(outputs), *outputs, len(instructions), *listed]


def words_of(dtypes, *blocks, constants=()):
    """Return the words of a tape; constants are vectors by their values."""
    made = [word for value, x in constants for word in (value, 1, len(x), *x)]
    listed = [word for words in blocks for word in words]
    return [len(dtypes), *dtypes, len(constants), *made, 0, len(blocks), *listed]


def run_words(words, x, outputs=(FLOAT,)):
    return run(
        Seed("", words, ((x, False),)), with_digest(np.array(words, "int64").tobytes()), outputs
    )


TWO = [FLOAT, FLOAT]
RIGHT = words_of(TWO, block([0], [1], code("Neg", [0], [1])))
BODY = block([], [2], code("Neg", [0], [2]))


def test_a_right_tape_runs():
    np.testing.assert_array_equal(run_words(RIGHT, np.ones(2))[0], [-1, -1])


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([*RIGHT, 0], id="words behind the end"),
        pytest.param(RIGHT[:-1], id="cut"),
        pytest.param(words_of([FLOAT, 8], RIGHT[5:]), id="an unknown type"),
        pytest.param(words_of(TWO, block([0], [1])), id="an output without definition"),
        pytest.param(words_of(TWO, block([0, 1], [1], code("Neg", [0], [1]))), id="defined twice"),
        pytest.param(
            words_of([FLOAT] * 3, block([0], [2], code("Neg", [1], [2]), code("Neg", [0], [1]))),
            id="used before its definition",
        ),
        pytest.param(words_of(TWO, block([0], [1], code("Neg", [1], [1]))), id="defined by itself"),
        pytest.param(words_of(TWO, block([0], [1], code("Add", [0], [1]))), id="too few operands"),
        pytest.param(words_of(TWO, block([0], [1], code("Neg", [0] * 9, [1]))), id="too many"),
        pytest.param(words_of(TWO, block([0], [1], code("Add", [0, -1], [1]))), id="left out"),
        pytest.param(
            words_of(TWO, block([0], [1], code("Shape", [0], [1], [0, 9]))), id="a result"
        ),
        pytest.param(
            words_of([FLOAT, SINGLE, FLOAT], block([0, 1], [2], code("Add", [0, 1], [2]))),
            id="operands of two types",
        ),
        pytest.param(words_of(TWO, block([0], [1], code("Flatten", [0], [1]))), id="no attribute"),
        pytest.param(
            [2, *TWO, 1, 1, 8, *[2**20] * 8, 0, 1, *block([0], [1])], id="a constant without bytes"
        ),
        pytest.param([3, *TWO, FLOAT, 1, 2, 1, 2**20, *RIGHT[4:]], id="a constant behind the end"),
        pytest.param(
            [3, *TWO, FLOAT, 1, 2, 3, 0, 2**30, 2**30, *RIGHT[4:]],
            id="sizes whose product overflows beside an empty axis",
        ),
        pytest.param([2**60, *RIGHT[1:]], id="more values than words"),
        pytest.param(
            words_of([FLOAT, BOOL, FLOAT], block([0, 1], [2], code("If", [1], [2], [0, 0]))),
            id="a body around itself",
        ),
        pytest.param(
            words_of(
                [FLOAT, BOOL, FLOAT, FLOAT], block([0, 1], [3], code("If", [1], [3], [1, 1])), BODY
            ),
            id="a body of two branches",
        ),
        pytest.param(words_of([*TWO, FLOAT], RIGHT[5:], BODY), id="a body of no instruction"),
        pytest.param(
            words_of(
                [INT, BOOL, FLOAT, FLOAT],
                block([0, 1], [2], code("If", [1], [2], [1, 2])),
                block([], [3], code("Identity", [0], [3])),
                block([], [3]),
            ),
            id="a value of another branch",
        ),
    ],
)
def test_malformed_tapes_are_refused(words):
    with pytest.raises(Exception, match="malformed tape"):
        run_words(words, np.ones(2))


@pytest.mark.parametrize(
    ("dtype", "constant"),
    [
        pytest.param(FLOAT, [1, 2, 0, 1000], id="no row of many columns"),
        pytest.param(BOOL, [1, 1, 64, *[0] * 8], id="elements of less than a word"),
    ],
)
def test_a_constant_has_more_elements_than_the_tape_has_words(dtype, constant):
    main = block([0], [2], code("Neg", [0], [2]))
    words = [3, FLOAT, dtype, FLOAT, 1, *constant, 0, 1, *main]
    np.testing.assert_array_equal(run_words(words, np.ones(2))[0], [-1, -1])


@pytest.mark.parametrize("count", [20, 1000])
def test_sizes_that_depend_on_each_other_need_no_stack(count):
    """Each range waits for the sum before it, which is known when the run comes to it."""
    first, one, trip, number, goes, state, added = range(1, 8)
    steps, value = [], state
    dtypes = [INT, INT, INT, INT, INT, BOOL, INT, INT]
    for _ in range(count):
        row, best = len(dtypes), len(dtypes) + 1
        dtypes += [INT, INT]
        steps.append(code("Range", [first, value, one], [row], sizes=7))
        steps.append(code("ReduceMax", [row], [best], [0, 0]))
        steps.append(code("Add", [best, added], [best + 1]))
        dtypes.append(INT)
        value = best + 1
    result = len(dtypes)
    dtypes += [INT, INT]
    loop = code("Loop", [trip, -1, 0, one], [result, result + 1], [2, 1])
    body = block([number, goes, state, added], [goes, value, added], *steps)
    constants = [(value, 0, x) for value, x in ((first, 0), (one, 1), (trip, 2))]
    listed = [word for constant in constants for word in constant]
    main = block([0], [result], loop)
    words = [len(dtypes), *dtypes, 3, *listed, 0, 2, *main, *body]
    if count < 200:
        assert run_words(words, np.array(7), [INT]) == [7]
    else:
        with pytest.raises(Exception, match="too many sizes depend on each other"):
            run_words(words, np.array(7), [INT])


def test_a_changed_digest_is_refused():
    tape = bytearray(with_digest(np.array(RIGHT, "int64").tobytes()))
    tape[8] ^= 1
    with pytest.raises(Exception, match="malformed tape"):
        run(Seed("", RIGHT, ((np.ones(2), False),)), bytes(tape), [FLOAT])


@pytest.mark.parametrize(
    ("instruction", "constants", "message"),
    [
        (code("Transpose", [0], [1], [0, 0]), [], "an axis is listed twice"),
        (code("Transpose", [0], [1], [0, 2**62]), [], "an axis is out of range"),
        (code("Reshape", [0, 2], [1], [0]), [[2**32, 2**32, 6]], "a size is out of range"),
        (code("Reshape", [0, 2], [1], [0]), [[2**31, 6]], "an array is too large"),
        (code("Expand", [0, 2], [1]), [[2**62, 1, 1]], "an array is too large"),
        (code("Tile", [0, 2], [1]), [[2**62, 2**62]], "a size is out of range"),
        (code("Slice", [0, 2, 3, 4], [1]), [[1, 1], [2, 2], [0, 0]], "an axis is listed twice"),
        (code("Split", [0, 2], [1], [0]), [[2**63 - 1]], "a Split is wrong"),
        (code("Gather", [0, 2], [1], [0]), [[-(2**63)]], "out of data bounds"),
        (code("Trilu", [0, 2], [1], [1]), [[1, 2]], "too many sizes"),
        (code("CumSum", [0, 2], [1], [0, 0]), [[]], "a size or an axis is missing"),
        (code("Pad", [0, 2, -1], [1], [0]), [[0, 0, 0, 0]], "malformed tape"),
    ],
)
def test_sizes_and_axes_are_checked(instruction, constants, message):
    dtypes = [FLOAT, FLOAT, *[INT] * len(constants)]
    words = words_of(
        dtypes, block([0], [1], instruction), constants=list(enumerate(constants, start=2))
    )
    with pytest.raises(Exception, match=message):
        run_words(words, np.ones((2, 3)))
