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
from pytensor_onnx.web.controls import is_probability
from pytensor_onnx.web.network_pages import class_names, network_page, training_page
from tests.web.pages import needs_chromium, wav
from tests.web.tapes import needs_tapes

STATIC = files("pytensor_onnx.web") / "static"


def model_of(inputs, outputs, **metadata):
    """Return a model of inputs and outputs by their sizes."""
    kinds = {"bytes": ir.DataType.INT32, "sr": ir.DataType.INT64}
    made = [
        [
            ir.Value(
                name=name,
                shape=ir.Shape(shape),
                type=ir.TensorType(kinds.get(name, ir.DataType.FLOAT)),
            )
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
        f"const {{loudest, vowels, windowsOf}} = await import({(STATIC / 'sound.js').as_uri()!r});"
        f"const {{endsOf}} = await import({(STATIC / 'bytes.js').as_uri()!r});"
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


def test_windows_of_sound_follow_each_other():
    inputs = {"input": [None, None], "state": [2, None, 128], "sr": []}
    outputs = {"output": [None, 1], "stateN": [None, None, None]}
    facts = {"sample_rate": "16000", "window": "576", "hop": "512", "names": '["speech"]'}
    page = network_page(model_of(inputs, outputs, **facts))
    sound = {"label": "Sound", "kind": "sound", "rate": 16000, "hop": 512, "window": 576}
    assert page["inputs"]["input"] == sound
    assert page["fixed"] == {"sr": 16000}
    assert page["carried"] == {"state": "stateN"}
    expected = {"kind": "timeline", "label": "speech", "step": 0.032, "percent": False}
    assert page["outputs"] == {"output": expected}
    # Without the distance of windows there is one, and states are inputs as others.
    del facts["hop"]
    page = network_page(model_of(inputs, outputs, **facts))
    assert page["carried"] == {}
    assert set(page["inputs"]) == {"input", "state"}


def test_rows_of_a_sequence_are_windows():
    inputs = {"input": [None, 576], "h": [1, 1, 8], "c": [1, 1, 8]}
    outputs = {"output": [None], "hn": [1, 1, 8], "cn": [1, 1, 8]}
    page = network_page(model_of(inputs, outputs, sample_rate="16000", hop="512"))
    assert page["inputs"]["input"]["rows"]
    assert page["carried"] == {"h": "hn", "c": "cn"}


def test_bytes_are_those_of_a_text_or_of_a_file():
    facts = {"first_bytes": "1024", "last_bytes": "1024", "padding": "256"}
    model = model_of({"bytes": [None, 2048]}, {"kind": [None, 3]}, **facts)
    assert network_page(model)["inputs"]["bytes"] == {
        "kind": "bytes",
        "label": "Text or file",
        "first": 1024,
        "last": 1024,
        "padding": 256,
    }
    few = model_of({"bytes": [None, 8]}, {"kind": [None, 3]})
    assert "kind" not in network_page(few)["inputs"]["bytes"]


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((None, 48, 48, 3), None, {"kind": "image", "layout": "last"}),
        ((None, 3, 48, 48), None, {"kind": "image"}),
        ((None, 3, None, None), "[48, 192]", {"kind": "image", "size": [48, 192]}),
        ((None, 3, None, None), None, {}),
    ],
)
def test_images_are_normalised_as_the_configuration_says(shape, size, expected):
    facts = {"image_mean": "[0.5, 0.4, 0.3]", "image_std": "[2, 2, 2]"}
    facts |= {"image_size": size} if size else {}
    page = network_page(model_of({"input_3": shape}, {"dense_5": [None, 2]}, **facts))
    colours = {"mean": [0.5, 0.4, 0.3], "std": [2, 2, 2]} if expected else {}
    assert page["inputs"]["input_3"] == {"label": "Image", **expected, **colours}
    assert page["outputs"]["dense_5"] == {"label": "Result"}


def test_sliders_begin_with_the_example_of_the_export():
    rate, months = pt.dscalar("rate"), pt.iscalar("months")
    examples = [0.04, 260]
    outputs = {"left": rate * months}
    program = export_onnx([rate, months], outputs, example_inputs=examples, verify=False)
    controls = [x["control"] for x in program.page().description["inputs"]]
    kinds = {"kind": "slider", "min": 0}
    assert controls == [
        {**kinds, "label": "Rate", "value": 0.04, "max": 0.08},
        {**kinds, "label": "Months", "value": 260, "max": 500},
    ]


@needs_chromium
def test_a_line_of_one_number_is_that_number(browser, tmp_path):
    x = pt.vector("x")
    page = browser.new_page()
    program = export_onnx([x], {"y": x + 32, "z": pt.sqrt(-1 - x[0])}, target="web", verify=False)
    page.goto(program.page().save(tmp_path / "page.html").as_uri())
    page.get_by_text("Done.").wait_for()
    assert page.locator("#outputs .number").all_inner_texts() == ["32", "NaN"]
    page.get_by_text("it is not a number (NaN)").wait_for()
    assert page.locator("#outputs svg").count() == 0
    page.close()


def test_key_points_stand_on_the_image():
    names = json.dumps(["left eye", "right eye"])
    model = model_of({"image": [1, 3, 32, 32]}, {"places": [1, 4]}, keypoints=names)
    view = {"kind": "points", "label": "Places", "image": "image"}
    assert network_page(model)["outputs"]["places"] == view | {"labels": ["left eye", "right eye"]}


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"abc", {"first": 4, "last": 2, "padding": 256}, [97, 98, 99, 256, 98, 99]),
        (b" \nab c\t", {"first": 3, "last": 3, "padding": 256}, [97, 98, 32, 98, 32, 99]),
        (b"a", {"first": 3, "last": 3, "padding": 256}, [97, 256, 256, 256, 256, 97]),
        (b" ab", {}, [32, 97, 98, 0, 0, 0]),
        (b"abcdefgh", {}, [97, 98, 99, 100, 101, 102]),
        (b"  ", {"first": 3, "last": 3, "padding": 1}, [1] * 6),
    ],
)
def test_bytes_of_both_ends(content, options, expected):
    given = f"endsOf(Uint8Array.from({list(content)}), 6, {json.dumps(options)})"
    assert node(given) == expected


@pytest.mark.parametrize(("count", "size", "hop"), [(10, 4, 3), (9, 3, 3), (2, 4, 3), (1, 1, 1)])
def test_windows_begin_with_silence(count, size, hop):
    samples = np.arange(1.0, count + 1)
    steps = -(-count // hop)
    padded = np.concatenate([np.zeros(size - hop), samples, np.zeros(steps * hop - count)])
    expected = [padded[i * hop : i * hop + size].tolist() for i in range(steps)]
    for rows, shape in ((False, [1, size]), (True, [size])):
        control = json.dumps({"rows": rows})
        inputs = f"{{dtype: 'float32', dims: [1, null], control: {control}}}"
        call = f"windowsOf(Float32Array.from({samples.tolist()}), {inputs}, {size}, {hop})"
        found = node(f"(({call}))")
        assert found["dims"] == [steps, *shape]
        assert found.get("steps") == (None if rows else steps)
        values = [found["data"][str(i)] for i in range(steps * size)]
        assert np.reshape(values, (steps, size)).tolist() == expected


def test_the_example_of_a_voice_is_quiet_at_its_ends():
    largest = "((x) => Math.max(...x.map(Math.abs)))"
    voice = "vowels(8000)"
    ends = [
        node(f"{largest}({voice}.slice({part}))") for part in ("0, 3000", "-3000", "5000, 9000")
    ]
    assert ends == pytest.approx([0.0015, 0.0015, 0.3], rel=0.02)
    assert node(f"{voice}.length") == 21600


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
    wave = np.zeros(4000)
    wave[2000:2400] = 16384
    (tmp_path / "step.wav").write_bytes(wav(wave, 8000))
    page.get_by_label("Sound, file").set_input_files(tmp_path / "step.wav")
    page.get_by_text("step.wav, 0.5 seconds").wait_for()
    page.get_by_text("0.25", exact=True).wait_for()
    (tmp_path / "no.wav").write_bytes(b"no sound")
    page.get_by_label("Sound, file").set_input_files(tmp_path / "no.wav")
    page.get_by_text("no.wav is no sound that the browser can read.").wait_for()
    assert not said
    page.close()


@needs_chromium
@pytest.mark.parametrize("is_rows", [False, True])
def test_a_state_is_handed_from_window_to_window(browser, tmp_path, is_rows):
    needs_tapes()
    sound = pt.tensor("sound", shape=(None if is_rows else 1, 200), dtype="float32")
    state = pt.tensor("state", shape=(1, 1), dtype="float32")
    sums = state + pt.cumsum(sound.sum(axis=1, keepdims=True), axis=0)
    rate = pt.lscalar("sr")
    total = (sums[:, 0] if is_rows else sums) * rate.astype("float32") / 8000
    results = {"total": total, "state_n": sums[-1:]}
    program = export_onnx([sound, rate, state], results, target="web", verify=False)
    program.model.metadata_props.update({"sample_rate": "8000", "hop": "160"})
    page, said = browser.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(program.page().save(tmp_path / "page.html").as_uri())
    page.get_by_text("Example: five vowels").wait_for()
    samples = np.random.default_rng(0).integers(-9000, 9000, 1000)
    (tmp_path / "noise.wav").write_bytes(wav(samples, 8000))
    page.get_by_label("Sound, file").set_input_files(tmp_path / "noise.wav")
    page.get_by_text("noise.wav, 0.125 seconds").wait_for()
    page.locator("#outputs[aria-busy=false]").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download results").click()
    found = np.loadtxt(saved.value.path(), skiprows=1)
    padded = np.concatenate([np.zeros(40), samples / 32768, np.zeros(120)])
    expected = np.cumsum([padded[i : i + 200].sum() for i in range(0, 1000, 160)])
    # Browsers divide positive samples by 32767.
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert not said
    page.close()


@needs_chromium
def test_colours_may_be_last_and_normalised(browser, tmp_path):
    needs_tapes()
    from PIL import Image

    image = pt.tensor("image", shape=(1, 6, 8, 3), dtype="float32")
    program = export_onnx([image], {"same": image.flatten()}, target="web", verify=False)
    facts = {"image_mean": "[0.5, 0.4, 0.3]", "image_std": "[0.5, 0.25, 2]"}
    program.model.metadata_props.update(facts)
    page = browser.new_page()
    page.goto(program.page().save(tmp_path / "page.html").as_uri())
    page.get_by_text("Choose an image, or drop one on the page.").wait_for()
    colours = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype("uint8")
    colours[:3, :4] = [10, 200, 30]
    Image.fromarray(colours).save(tmp_path / "colours.png")
    page.get_by_label("Image, file").set_input_files(tmp_path / "colours.png")
    page.get_by_text("Done.").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download results").click()
    found = np.loadtxt(saved.value.path(), skiprows=1).reshape(6, 8, 3)
    expected = (colours / 255 - [0.5, 0.4, 0.3]) / [0.5, 0.25, 2]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    page.get_by_text("Cut out a part").click()
    zoom = page.get_by_label("Zoom")
    zoom.fill("8")
    page.get_by_label("From the left").fill("0")
    page.get_by_label("From the top").fill("0")
    page.locator("#outputs[aria-busy=false]").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download results").click()
    corner = np.loadtxt(saved.value.path(), skiprows=1).reshape(6, 8, 3)
    np.testing.assert_allclose(corner, np.broadcast_to(expected[0, 0], (6, 8, 3)), atol=1e-5)
    page.close()


def value_of(nodes, name):
    """Return a value that nodes compute, given as the operator, its inputs and its output."""
    known = {}
    for operator, given, result in nodes:
        inputs = [known.setdefault(x, ir.Value(name=x)) for x in given]
        known[result] = ir.node(operator, inputs).outputs[0]
    return known[name]


@pytest.mark.parametrize(
    ("below", "expected"), [("exponential", True), ("other", False), ("x", False)]
)
def test_a_softmax_that_is_written_out_is_a_probability(below, expected):
    nodes = [
        ("Exp", ["x"], "exponential"),
        ("Exp", ["y"], "other"),
        ("ReduceSum", [below], "sum"),
        ("Expand", ["sum", "shape"], "sums"),
        ("Div", ["exponential", "sums"], "share"),
        ("ReduceMean", ["share"], "mean"),
        ("Neg", ["mean"], "negative"),
    ]
    assert is_probability(value_of(nodes, "share")) is expected
    assert is_probability(value_of(nodes, "mean")) is expected
    assert not is_probability(value_of(nodes, "negative"))


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
