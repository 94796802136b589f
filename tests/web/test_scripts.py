"""Scripts of the page that need no browser, run by node."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

STATIC = files("pytensor_onnx.web") / "static"
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


def run(code):
    """Return the value of an expression of the page's functions, through JSON."""
    names = {
        "csv.js": "readRows, sizesOf, writeCsv",
        "npz.js": "writeNpz",
        "tensors.js": "toHalf, fromHalf, tensor, shown, percentage",
    }
    lines = [f"import {{{n}}} from {(STATIC / f).as_uri()!r};" for f, n in names.items()]
    script = "\n".join([*lines, f"console.log(JSON.stringify({code}))"])
    command = ["node", "--input-type=module", "--no-warnings", "-e", script]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not result.returncode, result.stderr
    return json.loads(result.stdout)


def test_halves_are_rounded_as_numpy_rounds_them():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            rng.normal(size=300) * 10.0 ** rng.integers(-9, 6, 300),
            [0, -0.0, 65504, 65519, 65520, 1e9, 2**-24, 2**-25, 3 * 2**-25, 1 + 2**-11],
        ]
    ).astype("float32")
    with np.errstate(over="ignore"):
        halves = values.astype("float16").view("uint16")
    found = run(f"{json.dumps(values.astype(float).tolist())}.map(toHalf)")
    np.testing.assert_array_equal(found, halves)
    back = run(f"{halves.tolist()}.map(fromHalf).map(String)")
    np.testing.assert_array_equal(np.array(back, float), halves.view("float16").astype(float))


def test_rows_are_read_with_any_separator_and_without_a_header():
    assert run(r"readRows('a,b\n1, 2\n3;4\n\n5\t-6e1')") == [[1, 2], [3, 4], [5, -60]]
    message = r"(() => { try { readRows('1,2\n3') } catch (e) { return e.message } })()"
    assert run(message) == "row 2 has 1 numbers, the first row 2"


def test_rows_of_the_last_axis_fill_arrays_of_more_axes():
    rows = [[1, 2]] * 6
    sizes = {(2, 3, 2): [2, 3, 2], (None, 3, 2): [2, 3, 2], (1, 6, None): [1, 6, 2]}
    # Rows that do not fit keep their own sizes, which the message shows.
    sizes |= {(None, 2): [6, 2], (4, 2): [6, 2], (None, 4, 2): [6, 2], (1, 1, 2): [6, 2]}
    given = json.dumps(list(sizes))
    assert run(f"{given}.map((dims) => sizesOf(dims, {rows}))") == list(sizes.values())


def test_results_are_written_in_columns_and_no_name_is_a_formula():
    results = "{'=x': {dims: [2], numbers: [1, 2]}, 'a,b': {dims: [1, 2], numbers: [3, 4]}}"
    assert run(f"writeCsv({results})").splitlines() == [
        '\'=x,"a,b[0]","a,b[1]"',
        "1,3,4",
        "2,,",
    ]


def test_results_of_very_different_lengths_are_written_one_in_a_line():
    sizes = "{a: [[3000], 3000, 5], b: [[1, 999], 999, 7]}"
    made = "([name, [dims, n, x]]) => [name, {dims, numbers: Array(n).fill(x)}]"
    results = f"Object.fromEntries(Object.entries({sizes}).map({made}))"
    lines = run(f"writeCsv({results})").splitlines()
    assert lines[:2] == ["output,position,value", "a,0,5"]
    assert lines[-1] == "b,998,7"
    assert len(lines) == 4000


def test_wrong_numbers_are_named():
    cases = "[['int64', 1.5], ['uint8', -1], ['int8', 128], ['uint64', -1], ['int64', 2 ** 53]]"
    message = "([t, x]) => { try { tensor(t, [x], [1]) } catch (e) { return e.message } }"
    assert run(f"{cases}.map({message})") == [
        "1.5 is not a whole number",
        "-1 does not fit uint8",
        "128 does not fit int8",
        "-1 does not fit uint64",
        "9007199254740992 is beyond 2^53, up to which whole numbers are exact here",
    ]
    assert run(r"readRows('nan, 1\n1, x').map((row) => row.map(String))") == [
        ["NaN", "1"],
        ["1", "null"],
    ]


def test_probabilities_are_percentages_that_are_never_rounded_to_certainty():
    assert run("[0, 1e-5, 0.1234, 0.9999, 1, NaN].map(percentage)") == [
        *("0.0%", "< 0.1%", "12.3%", "> 99.9%", "100.0%", "NaN"),
    ]


def test_states_are_saved_as_numpy_reads_them(tmp_path):
    tensors = """{
        rate: tensor('float32', [0.5], []),
        'layer/W': tensor('float64', [1, 2, 3, 4, 5, 6], [2, 3]),
        count: tensor('int64', [7], [1]),
        used: tensor('bool', [1, 0], [2]),
        none: tensor('uint8', [], [0, 3]),
    }"""
    code = f"[...new Uint8Array(await writeNpz({tensors}).arrayBuffer())]"
    file = tmp_path / "state.npz"
    file.write_bytes(bytes(run(code)))
    found = np.load(file)
    expected = {
        "rate": np.float32(0.5),
        "layer/W": np.arange(1.0, 7).reshape(2, 3),
        "count": np.array([7]),
        "used": np.array([True, False]),
        "none": np.zeros((0, 3), "uint8"),
    }
    assert set(found.files) == set(expected)
    for name, value in expected.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found[name], value)


TYPESCRIPT = "typescript@5.9"
STRICT = "--noEmit --allowJs --checkJs --strict --target es2022 --module esnext"
LIBRARIES = "--moduleResolution bundler --lib es2023,dom,dom.iterable"


@pytest.mark.slow
def test_the_types_of_the_page_fit_together(tmp_path):
    scripts = [path for path in Path(str(STATIC)).iterdir() if path.suffix == ".js"]
    for path in scripts:
        shutil.copy(path, tmp_path)
    options = [*STRICT.split(), *LIBRARIES.split(), *(path.name for path in scripts)]
    command = ["npx", "--yes", "-p", TYPESCRIPT, "tsc", *options]
    try:
        found = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npx cannot run {TYPESCRIPT}: {error}")
    if found.returncode and "error TS" not in found.stdout:
        pytest.skip(f"npx cannot run {TYPESCRIPT}: {found.stderr[-300:]}")
    assert not found.returncode, found.stdout
