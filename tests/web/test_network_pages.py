"""Pages of networks and of training steps that nobody described."""

import json
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, export_training_step
from pytensor_onnx.web.network_pages import class_names, network_page, training_page
from tests.web.pages import needs_chromium
from tests.web.tapes import needs_tapes

STATIC = files("pytensor_onnx.web") / "static"


def model_of(inputs, outputs, **metadata):
    """Return a model of inputs and outputs by their sizes."""
    made = [
        [
            ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(ir.DataType.FLOAT))
            for name, shape in values.items()
        ]
        for values in (inputs, outputs)
    ]
    model = ir.Model(ir.Graph(*made, nodes=[], name="main_graph"), ir_version=10)
    model.metadata_props.update(metadata)
    return model


def node(code):
    """Return the value of an expression of the page's functions."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    script = (
        "globalThis.document = {};"
        f"const {{apart}} = await import({(STATIC / 'views.js').as_uri()!r});"
        f"const {{loudest}} = await import({(STATIC / 'sound.js').as_uri()!r});"
        f"const {{inDigitsOf}} = await import({(STATIC / 'tensors.js').as_uri()!r});"
        f"console.log(JSON.stringify({code}));"
    )
    command = ["node", "--input-type=module", "--no-warnings", "-e", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("name", ["sound", "audio_window", "pcm"])
def test_windows_of_sound_have_the_rate_of_the_metadata(name):
    model = model_of({name: [1, 512]}, {"speech": [1, 1]}, sample_rate="8000")
    assert network_page(model)["inputs"][name]["kind"] == "sound"
    assert network_page(model)["inputs"][name]["rate"] == 8000
    few = model_of({name: [1, 12]}, {"speech": [1, 1]})
    assert "kind" not in network_page(few)["inputs"][name]


def test_pixels_of_a_square_are_drawn():
    drawn = model_of({"pixels": [None, 784]}, {"digit": [None, 10]})
    assert network_page(drawn)["inputs"]["pixels"]["kind"] == "drawing"
    row = model_of({"pixels": [None, 783]}, {"digit": [None, 10]})
    assert "kind" not in network_page(row)["inputs"]["pixels"]


def test_boxes_stand_beside_an_image_only():
    names = json.dumps({"0": "cat", "1": "dog"})
    image = {"images": [1, 3, 64, 64]}
    for shape, form in {(1, 300, 6): None, (20, 6): None, (1, 6, 84): "columns"}.items():
        view = network_page(model_of(image, {"output0": shape}, names=names))["outputs"]["output0"]
        assert (view["kind"], view["image"], view.get("format")) == ("boxes", "images", form)
        assert view["labels"] == ["cat", "dog"]
    table = network_page(model_of({"x": [20, 4]}, {"y": [20, 6]}, names=names))
    assert "kind" not in table["outputs"]["y"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"names": "{0: 'person', 1: 'car'}"}, ["person", "car"]),
        ({"classes": '["a", "b"]'}, ["a", "b"]),
        ({"labels": "a, b"}, []),
        ({"names": "[1, 2]"}, []),
        ({}, []),
    ],
)
def test_names_of_classes_are_read_as_exporters_write_them(metadata, expected):
    assert class_names(metadata) == expected


def test_of_boxes_that_overlap_the_best_of_a_class_is_kept():
    boxes = [[0, 0, 10, 10, 0.5, 0], [1, 0, 11, 10, 0.9, 0], [0, 0, 10, 10, 0.4, 1]]
    apart = [[30, 30, 40, 40, 0.3, 0]]
    kept = node(f"apart({boxes + apart})")
    assert kept == [boxes[1], boxes[2], apart[0]]


def test_the_loudest_window_is_found():
    samples = np.zeros(1000)
    samples[600:700] = 1
    start = node(f"loudest(Float32Array.from({samples.tolist()}), 100)")
    assert abs(start - 600) < 100
    assert node("loudest(new Float32Array(5), 100)") == 0


def test_numbers_have_the_digits_of_their_spread():
    assert node("[24, 15.44, -0.001, 12345678.5].map(inDigitsOf(2.3))") == [
        "24.0",
        "15.4",
        "0.0",
        "1.23e+7",
    ]
    assert node("[1234.5, -3].map(inDigitsOf(140))") == ["1235", "-3"]
    assert node("[0.5].map(inDigitsOf(0))") == ["0.5"]


def step():
    """Return a step of training of a line."""
    weight = pytensor.shared(np.float32(0.0), name="weight")
    x, y = pt.vector("x", dtype="float32"), pt.vector("y", dtype="float32")
    fitted = weight * x
    fitted.name = "fitted"
    examples = [np.float32([3, 1, 2]), np.float32([6, 2, 4]), np.float32(0.1)]

    def descent(learning_rate):
        return lambda loss, params: {p: p - learning_rate * pt.grad(loss, p) for p in params}

    return export_training_step(
        ((fitted - y) ** 2).mean(),
        [weight],
        descent,
        inputs=[x, y],
        extra_outputs=[fitted],
        example_inputs=examples,
        target="web",
        verify=False,
    )


def test_a_training_step_has_its_data_as_columns(tmp_path):
    file = step().save_for_page(tmp_path / "step.onnx")
    page = training_page(ir.load(file))
    assert page["inputs"]["x"]["value"] == [3, 1, 2]
    assert page["inputs"]["x"]["group"] == page["inputs"]["y"]["group"] == "3 rows"
    assert page["outputs"]["fitted"] == {
        "label": "Fitted",
        "kind": "lines",
        "x": "x",
        "points": ["x", "y"],
    }
    assert page["title"] == "Training on x and y"
    x = pt.vector("x")
    assert training_page(export_onnx([x], {"loss": x.sum()}, verify=False).model) is None


@needs_chromium
def test_a_page_of_a_training_step_learns(browser, tmp_path):
    needs_tapes()
    page = browser.new_page()
    page.goto(step().page().save(tmp_path / "page.html").as_uri())
    page.get_by_text("run 10, ").wait_for()
    for _ in range(3):
        page.get_by_role("button", name="Train 10 steps").click()
    page.get_by_text("run 40, ").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download state").click()
    state = np.load(saved.value.path())
    assert state["weight"] == pytest.approx(2, abs=0.01)
    page.close()


@needs_chromium
def test_a_sound_file_is_heard_from_its_loudest_window(browser, tmp_path):
    needs_tapes()
    sound = pt.tensor("sound", shape=(1, 200), dtype="float32")
    program = export_onnx([sound], {"power": (sound**2).mean()}, target="web", verify=False)
    program.model.metadata_props["sample_rate"] = "8000"
    page, said = browser.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(program.page().save(tmp_path / "page.html").as_uri())
    page.get_by_text("Example: a tone of 440 Hz.").wait_for()
    page.get_by_text("0.125", exact=True).wait_for()
    wave = np.zeros(4000, "<i2")
    wave[2000:2400] = 16384
    header = b"RIFF" + np.uint32(36 + wave.nbytes).tobytes() + b"WAVEfmt "
    header += (
        np.uint32(16).tobytes() + np.uint16([1, 1]).tobytes() + np.uint32([8000, 16000]).tobytes()
    )
    header += np.uint16([2, 16]).tobytes() + b"data" + np.uint32(wave.nbytes).tobytes()
    (tmp_path / "step.wav").write_bytes(header + wave.tobytes())
    page.get_by_label("Sound, file").set_input_files(tmp_path / "step.wav")
    page.get_by_text("step.wav, 0.5 seconds").wait_for()
    page.get_by_text("0.25", exact=True).wait_for()
    (tmp_path / "no.wav").write_bytes(b"no sound")
    page.get_by_label("Sound, file").set_input_files(tmp_path / "no.wav")
    page.get_by_text("no.wav is no sound that the browser can read.").wait_for()
    assert not said
    page.close()


def test_images_begin_with_the_example_of_the_export():
    needs_tapes()
    image = pt.tensor("image", shape=(1, 3, 8, 8), dtype="float32")
    example = np.linspace(0, 1, 192, dtype="float32").reshape(1, 3, 8, 8)
    program = export_onnx([image], {"mean": image.mean()}, example_inputs=[example], verify=False)
    (control,) = (x["control"] for x in program.page().description["inputs"])
    assert control["kind"] == "image"
    np.testing.assert_allclose(control["example"]["numbers"], example.ravel(), rtol=1e-4)
    described = program.page(inputs={"image": {"label": "A picture"}}).description["inputs"][0]
    assert "example" not in described["control"]
