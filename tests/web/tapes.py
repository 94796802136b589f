"""Models as tapes, run by Node and by browsers."""

import base64
import fcntl
import json
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from pytensor_onnx import export_onnx, native
from pytensor_onnx.errors import MissingEngineError
from pytensor_onnx.kernels.regions import fuse
from pytensor_onnx.web.tape_file import wasm_module, write_tape
from tests.web.pages import opened_page

RUN = """async (model, calls) => {
  const ARRAYS = {
    float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array,
    uint64: BigUint64Array, uint32: Uint32Array, uint8: Uint8Array, bool: Uint8Array,
  };
  const read = ([dtype, dims, text]) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return { data: new ARRAYS[dtype](bytes.buffer), dims };
  };
  const text = (data) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    let characters = "";
    for (const byte of bytes) characters += String.fromCharCode(byte);
    return btoa(characters);
  };
  const written = ({ dtype, data, dims }) => [dtype, dims, text(data)];
  const mapped = (x, change) =>
    Object.fromEntries(Object.entries(x).map(([name, y]) => [name, change(y)]));
  const answers = [];
  for (const feeds of calls) {
    try {
      answers.push(mapped(await model.run(mapped(feeds, read)), written));
    } catch (error) {
      answers.push(error.message);
    }
  }
  return answers;
}"""
"""JavaScript function of a loaded tape and calls, whose arrays are base64."""

IN_NODE = f"""
import {{ readFileSync }} from "node:fs";
const [folder] = process.argv.slice(1);
const {{ load }} = await import(`file://${{folder}}/tape.js`);
const run = {RUN};
const model = await load(`${{folder}}/model.tape`);
console.log(JSON.stringify(await run(model, JSON.parse(readFileSync(0, "utf8")))));
"""
IN_BROWSER = f"""async (calls) => {{
  const {{ load }} = await import("/tape.js");
  const run = {RUN};
  return run(await load("/model.tape"), calls);
}}"""


def needs_tapes():
    """Skip a test where Node or the module of WebAssembly is missing."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    try:
        with _turn():
            wasm_module()
    except MissingEngineError as error:
        pytest.skip(str(error))


@contextmanager
def _turn():
    """Hold the lock of the modules, which the first process of the tests builds."""
    with open(Path(tempfile.gettempdir()) / "pytensor_onnx_modules.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def saved(tmp_path, inputs, outputs, **options):
    """Return the file of a model for the web."""
    path = tmp_path / "model.onnx"
    export_onnx(inputs, outputs, path, target="web", verify=False, **options)
    return path


def natively(path):
    """Return a session that runs the tape of a model in the native library."""
    fusion = fuse(path.read_bytes(), every_size=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    native.register_with_regions(options)
    return onnxruntime.InferenceSession(fusion.model, options)


def assert_as_native(path, *calls):
    """Compare the results in Node with those of the same tape in the native library."""
    session = natively(path)
    names = [x.name for x in session.get_outputs()]
    for found, feeds in zip(run_in_node(path, path.parent, *calls), calls, strict=True):
        for name, expected in zip(names, session.run(None, feeds), strict=True):
            assert found[name].dtype == expected.dtype
            np.testing.assert_array_equal(found[name], expected, err_msg=name)


def run_in_node(model, folder, *calls):
    """Return the outputs, or the message of the error, of each call of a model's tape."""
    write_tape(model, folder)
    command = ["node", "--input-type=module", "--no-warnings", "-e", IN_NODE, str(folder)]
    run = subprocess.run(
        command, input=json.dumps(_packed(calls)), capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr
    return _unpacked(json.loads(run.stdout))


def run_in_browser(browser, model, folder, *calls):
    """Return those that a browser computes."""
    write_tape(model, folder)
    with opened_page(browser, folder, "") as (page, _):
        return _unpacked(page.evaluate(IN_BROWSER, _packed(calls)))


def in_node(folder, code):
    """Return what code prints that has the model of a folder."""
    script = f"""
    const {{ load }} = await import("{(folder / "tape.js").as_uri()}");
    const model = await load("{folder / "model.tape"}");
    {code}
    """
    command = ["node", "--input-type=module", "-e", script]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _packed(calls):
    return [{name: _packed_array(np.asarray(x)) for name, x in y.items()} for y in calls]


def _packed_array(array):
    return array.dtype.name, array.shape, base64.b64encode(array.tobytes()).decode()


def _unpacked(answers):
    return [
        x if isinstance(x, str) else {name: _unpacked_array(*y) for name, y in x.items()}
        for x in answers
    ]


def _unpacked_array(dtype, dims, text):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(dims)
