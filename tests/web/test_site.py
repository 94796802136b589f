import json
import re

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner

from pytensor_onnx import export_onnx
from pytensor_onnx.cli.app import app, main
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.packages import make_server
from pytensor_onnx.web.site import build_site


def test_a_site_is_complete_and_links_nothing_outside(model, tmp_path, without_npm):
    folder = build_site(
        model, tmp_path / "site", page={"title": "A <b>title</b>", "links": {"Code": "../code.py"}}
    )
    names = {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
    assert {"index.html", "model.onnx", "page.json", "main.js", "worker.js"} <= names
    assert {"runtime/ort.wasm.min.mjs"} <= names
    assert "runtime/ort-wasm-simd-threaded.wasm.gz" in names
    assert (folder / "model.onnx").read_bytes() == model.read_bytes()
    page = json.loads((folder / "page.json").read_text())
    assert page["title"] == "A <b>title</b>"
    assert [text for text, _ in page["links"]] == ["Model file", "Code", "About such pages"]
    percent = {x["name"]: x["view"].get("percent") for x in page["outputs"]}
    assert (percent["shares"], percent["total"]) == (True, False)
    assert [entry["control"]["kind"] for entry in page["inputs"]] == [
        *("slider", "sliders", "sliders", "checkbox")
    ]
    html = (folder / "index.html").read_text()
    modules = {file.name for file in folder.glob("*.js")} - {"worker.js", "tape.js"}
    assert modules == set(re.findall(r'(?:href|src)="(\w+\.js)"', html)), "all arrive at once"
    assert "http" not in html.replace("http-equiv", "")
    assert "unsafe-eval'" not in html.replace("'wasm-unsafe-eval'", "")
    assert "<b>" not in html


def test_pages_are_utf_8_wherever_they_are_made(model, tmp_path, without_npm, monkeypatch):
    monkeypatch.setattr("io.text_encoding", lambda encoding, level=2: encoding or "cp1252")
    folder = build_site(model, tmp_path / "site")
    assert "…" in (folder / "index.html").read_bytes().decode("utf-8")


def test_the_runtime_may_be_linked(model, tmp_path, without_npm):
    folder = build_site(model, tmp_path / "site", runtime="cdn")
    assert not (folder / "runtime").exists()
    html = (folder / "index.html").read_text()
    assert "script-src 'self' 'wasm-unsafe-eval' https://cdn.jsdelivr.net;" in html
    runtime = json.loads((folder / "page.json").read_text())["runtime"]
    assert runtime["folder"].startswith("https://cdn.jsdelivr.net/npm/onnxruntime-web@")


def test_states_are_stored_beside_the_model(tmp_path, without_npm):
    x, total = pt.scalar("x"), pytensor.shared(np.array([1.5, 2.5]), name="total")
    count = pytensor.shared(np.array(3, "int8"), name="count")
    path, state = tmp_path / "model.onnx", tmp_path / "state.npz"
    options = {"target": "web", "state_path": state}
    export_onnx([x], x * 2, path, updates={total: total + x, count: count + 1}, **options)
    with pytest.raises(PyTensorONNXError, match="--state FILE"):
        build_site(path, tmp_path / "site")
    folder = build_site(path, tmp_path / "site", state=state)
    page = json.loads((folder / "page.json").read_text())
    assert page["state"]["pairs"] == {"total": "total_next", "count": "count_next"}
    entry, counted = page["state"]["values"]
    assert (entry["dims"], counted["dims"], counted["dtype"]) == ([2], [], "int8")
    np.testing.assert_array_equal(np.fromfile(folder / entry["file"], "<f4"), [1.5, 2.5])
    assert [value["name"] for value in page["inputs"]] == ["x"]
    assert page["run"] == "button"


def test_views_may_name_inputs_and_images_are_copied(model, tmp_path, without_npm):
    (tmp_path / "page.yaml").write_text(
        "inputs: {data: {kind: image, example: cat.png}}\n"
        "outputs: {curve: {kind: lines, points: data}}\n"
    )
    (tmp_path / "cat.png").write_bytes(b"png")
    page = read_description(tmp_path / "page.yaml")
    folder = build_site(model, tmp_path / "site", page=page, runtime="../runtime/")
    described = json.loads((folder / "page.json").read_text())
    assert described["shown"] == ["data"]
    assert described["inputs"][2]["control"]["example"] == "examples/cat.png"
    assert (folder / "examples" / "cat.png").read_bytes() == b"png"
    assert described["runtime"]["folder"] == "../runtime/"
    assert not (folder / "runtime").exists()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            {"titel": "x"},
            "unknown keys in the description of the page: titel; it has configuration, inputs",
        ),
        ({"inputs": {"weight": {}}}, "the model has no inputs weight"),
        ({"outputs": {"curve": {"kind": "pie"}}}, "output curve: kind is one of number"),
        ({"outputs": {"curve": {"x": "time"}}}, "output curve: the model has no input or .* time"),
        ({"inputs": {"data": {"kind": "image", "example": "no.png"}}}, "data: there is no file no"),
        ({"links": {"Code": "javascript:alert(1)"}}, "link Code: .* is neither an https address"),
        ({"repeat": 0}, "repeat is a number of runs from 1 on, not 0"),
    ],
)
def test_wrong_descriptions_write_nothing(model, tmp_path, without_npm, page, message):
    with pytest.raises(PyTensorONNXError, match=message):
        build_site(model, tmp_path / "site", page=page)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "is no YAML"),
        ("- a\n- b\n", "has no keys such as title"),
        ("inputs: [x]\n", "inputs is a mapping from names to options"),
    ],
)
def test_files_that_are_no_descriptions_are_refused(tmp_path, text, message):
    file = tmp_path / "page.yaml"
    file.write_text(text)
    with pytest.raises(PyTensorONNXError, match=message):
        read_description(file)


def run(*arguments):
    return CliRunner().invoke(app, ["web", *map(str, arguments)])


def test_the_command_writes_a_site(model, tmp_path, without_npm):
    page = tmp_path / "page.yaml"
    page.write_text("title: Decay\ninputs:\n  height: {min: 0, max: 10, value: 2}\n")
    result = run(model, "-o", tmp_path / "site", "--page", page)
    assert result.exit_code == 0
    assert "wrote" in result.output
    # The inputs of the fixture have several dtypes, which an export leaves as they are.
    assert "its numbers are float64" in " ".join(result.output.split())
    described = json.loads((tmp_path / "site" / "page.json").read_text())
    assert described["inputs"][0]["control"]["max"] == 10


def error_of(capsys, *arguments):
    """Return the one line of error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as exit_:
        main(["web", *map(str, arguments)])
    error = capsys.readouterr().err
    assert exit_.value.code == 2
    assert error.count("\n") == 1
    return error


def test_the_command_ends_with_status_2_and_one_line(model, tmp_path, without_npm, capsys):
    (tmp_path / "note.txt").touch()
    error = error_of(capsys, model, "-o", tmp_path)
    assert "is not an empty folder" in error
    assert {p.name for p in tmp_path.iterdir()} == {"note.txt"}


def test_force_replaces_a_page_and_nothing_else(model, tmp_path, without_npm, capsys):
    folder = build_site(model, tmp_path / "site", page={"title": "first"})
    (folder / "extra").touch()
    assert "replace a page by --force" in error_of(capsys, model, "-o", folder)
    assert run(model, "-o", folder, "--force").exit_code == 0
    assert "first" not in (folder / "page.json").read_text()
    assert not (folder / "extra").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"npm", "site"}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.tex").touch()
    assert "no page that" in error_of(capsys, model, "-o", tmp_path / "own", "--force")
    assert (tmp_path / "own" / "thesis.tex").exists()


@pytest.mark.parametrize("metadata", [{"pymc": '{"sampler": {}}'}, {"pymc": "["}, {}])
def test_samplers_are_not_told_to_be_float32(tmp_path, without_npm, metadata):
    x = pt.scalar("x")
    path = tmp_path / "model.onnx"
    export_onnx([x], x * 2, path)
    made = onnx.load(path)
    onnx.helper.set_model_props(made, metadata)
    onnx.save(made, path)
    output = " ".join(run(path, "-o", tmp_path / "site").output.split())
    assert ('target="web" exports float32' in output) == ("sampler" not in str(metadata))


def test_a_model_that_no_runtime_loads_ends_with_status_1(tmp_path, without_npm, capsys):
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [3]) for name in "xy")
    node = onnx.helper.make_node("Foo", ["x"], ["y"], domain="my.ops")
    made = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]), ir_version=10)
    onnx.save(made, tmp_path / "model.onnx")
    with pytest.raises(SystemExit, match="1"):
        main(["web", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "site")])
    assert "No opset import for domain" in capsys.readouterr().err


def test_files_of_other_kinds_are_named(model, tmp_path, without_npm, capsys):
    note = tmp_path / "note.txt"
    note.write_text("no model")
    error = error_of(capsys, note, "-o", tmp_path / "site")
    assert "cannot be read as an ONNX model" in error
    x, total = pt.scalar("x"), pytensor.shared(np.array(1.5), name="total")
    step = tmp_path / "step.onnx"
    options = {"state_path": tmp_path / "state.npz", "target": "web"}
    export_onnx([x], total * x, step, updates={total: total + x}, **options)
    error = error_of(capsys, step, "-o", tmp_path / "site", "--state", note)
    assert "note.txt is no state" in error
    assert not (tmp_path / "site").exists()


def test_a_port_in_use_is_named(model, tmp_path, without_npm, capsys):
    with make_server(tmp_path) as server:
        port = server.server_address[1]
        error = error_of(capsys, model, "-o", tmp_path / "site", "--serve", "--port", port)
    assert "name another by --port" in error


def test_without_npm_and_cache_the_command_says_what_to_do(
    model, tmp_path, empty_cache, monkeypatch, capsys
):
    monkeypatch.setenv("PATH", "")
    error = error_of(capsys, model, "-o", tmp_path / "site")
    assert "no npm to download it: install Node.js" in error
    assert not (tmp_path / "site").exists()
    assert not empty_cache.exists()


def test_weights_in_another_file_are_part_of_the_page(tmp_path, without_npm):
    x, w = pt.fmatrix("x"), pytensor.shared(np.ones((64, 64), "float32"), name="w")
    file = tmp_path / "model.onnx"
    onnx.save(
        export_onnx([x], x @ w, verify=False).proto,
        file,
        save_as_external_data=True,
        location="weights",
        size_threshold=0,
    )
    written = build_site(file, tmp_path / "site") / "model.onnx"
    assert (tmp_path / "weights").stat().st_size > file.stat().st_size
    assert onnxruntime.InferenceSession(written.read_bytes()).run(
        None, {"x": np.ones((1, 64), "float32")}
    )


def test_folders_that_cannot_be_made_are_named(model, tmp_path, without_npm):
    note = tmp_path / "note.txt"
    note.touch()
    with pytest.raises(PyTensorONNXError, match="cannot be written: name another folder"):
        build_site(model, note / "site")
