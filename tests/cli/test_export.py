import json

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from click.testing import CliRunner

from pytensor_onnx import VerificationError, load
from pytensor_onnx.cli.app import app, main
from pytensor_onnx.exporting.files.file_verification import verify_file
from pytensor_onnx.exporting.verification.file_vectors import METADATA, Vectors

SOURCE = """
import numpy as np
import pytensor
import pytensor.tensor as pt

x = pt.fmatrix("x")
y = pt.tanh(x).copy("y")
graph = ([x], y)
function = pytensor.function([x], y, mode="FAST_COMPILE")
number = 3


class Nested:
    graph = ([x], {"total": y.sum()})
"""


@pytest.fixture(autouse=True)
def user_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "user_graphs", raising=False)
    (tmp_path / "user_graphs.py").write_text(SOURCE)


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.mark.parametrize("name", ["graph", "y", "function"])
def test_graphs_outputs_and_functions_are_exported(name):
    result = run(f"user_graphs:{name}")
    assert result.exit_code == 0, result.output
    assert f"wrote {name}.onnx: checked, loaded and equal to PyTensor" in result.output
    x = np.array([[0.5, 1.0]], "float32")
    session = onnxruntime.InferenceSession(f"{name}.onnx")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x), rtol=1e-6)


def test_options_reach_the_file():
    options = ["--dynamic", "x:0=row", "--dynamic", "x:1=column", "--precision", "float16"]
    options += ["--opset", "18"]
    result = run("user_graphs:Nested.graph", *options, "-o", "small.onnx", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["file"] == "small.onnx"
    assert ir.load("small.onnx").opset_imports[""] == 18
    assert found["inputs"] == ["x: float16[row, column]"]
    assert found["outputs"] == ["total: float16[]"]
    assert found["verification"]["verdict"] == "equal"
    web = json.loads(run("user_graphs:y", "--target", "web", "--json").output)
    assert web["target"] == "web"


def test_a_network_is_exported(tmp_path):
    pytest.importorskip("pytensor_ml")
    (tmp_path / "user_network.py").write_text("""
import pytensor.tensor as pt
from pytensor_ml.layers import Linear

network = Linear("linear", n_in=3, n_out=2)(pt.tensor("x", shape=(None, 3)))
""")
    assert run("user_network:network").exit_code == 0
    assert [str(v.shape) for v in ir.load("network.onnx").graph.inputs] == ["[batch,3]"]


@pytest.mark.slow
def test_a_pymc_model_is_exported(tmp_path):
    pytest.importorskip("pymc")
    source = "import pymc as pm\nwith pm.Model() as model:\n    pm.Normal('mu')\n"
    (tmp_path / "user_model.py").write_text(source)
    assert run("user_model:model").exit_code == 0
    assert load("model.onnx").inputs[0].name == "point"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["user_graphs:number"], "an object of type int has no graph: name a tuple of"),
        (["user_graphs:funktion"], "has no object 'funktion': did you mean function?"),
        (["user_graphs"], "write package.module:name"),
        (["no_such_module:x"], "No module named 'no_such_module'"),
        (["broken:x"], "ZeroDivisionError: division by zero (BROKEN:1)"),
        (["ending:x"], "ending cannot be imported, SystemExit: 3"),
        (["needs_pymc:x"], "pip install 'pytensor-onnx[pymc]'"),
        (["user_graphs:y", "--dynamic", "x"], "write an input, an axis and a name, x:0=batch"),
        (["user_graphs:y", "--dynamic", "z:0=n"], "names ['z']"),
        (["user_graphs:y", "--target", "phone"], "no target is called 'phone'"),
        (["user_graphs:y", "--precision", "float8"], "not 'float8'"),
        (["user_graphs:y", "--opset", "99"], "opset"),
        (["user_graphs:y", "-o", "missing/y.onnx"], "there is no folder 'missing'"),
    ],
)
def test_errors_are_one_line_with_the_way_out(tmp_path, capsys, arguments, message):
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "ending.py").write_text("raise SystemExit(3)")
    text = "raise ModuleNotFoundError('No module named pymc', name='pymc')"
    (tmp_path / "needs_pymc.py").write_text(text)
    with pytest.raises(SystemExit) as exit_:
        main(["export", *arguments])
    error = capsys.readouterr().err
    assert exit_.value.code == 2
    assert error.count("\n") == 1
    assert message.replace("BROKEN", str(tmp_path / "broken.py")) in error
    assert not list(tmp_path.glob("*.onnx"))


def with_vectors(change):
    """Change the test vectors of a file."""
    model = ir.load("y.onnx")
    model.metadata_props[METADATA] = change(model.metadata_props[METADATA])
    ir.save(model, "y.onnx")


def test_verify_compares_with_the_stored_vectors():
    assert run("user_graphs:y", "--vectors").exit_code == 0
    vectors = Vectors.of_text(ir.load("y.onnx").metadata_props[METADATA])
    np.testing.assert_allclose(vectors.outputs["y"], np.tanh(vectors.inputs["x"]), rtol=1e-6)
    steps = list(verify_file("y.onnx"))
    assert "its results are those of PyTensor on the stored test vectors" in steps[2]

    moved = Vectors(vectors.inputs, {"y": vectors.outputs["y"] + np.float32(1e-3)})
    with_vectors(lambda _: moved.to_text())
    with pytest.raises(VerificationError, match="output 'y' differs from PyTensor: largest"):
        list(verify_file("y.onnx"))
    allowed = Vectors(moved.inputs, moved.outputs, slack={"y": 2e-3})
    with_vectors(lambda _: allowed.to_text())
    list(verify_file("y.onnx"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"inputs": {}, "outputs": {"y": "?"}, "slack": {}}',
        Vectors({"z": np.zeros(2)}, {}).to_text(),
        Vectors({"x": np.zeros((1, 1), "float32")}, {"z": np.zeros(2)}).to_text(),
    ],
)
def test_vectors_of_another_file_are_an_error(text):
    run("user_graphs:y", "--vectors")
    with_vectors(lambda _: text)
    with pytest.raises(VerificationError, match=r"vectors|input|no output 'z'"):
        list(verify_file("y.onnx"))


def test_a_warning_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "named_twice.py").write_text(
        "import pytensor.tensor as pt\nx = pt.vector('x')\ngraph = [x], (2 * x).copy('y')\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["export", "named_twice:graph", "--dynamic", "x:0=a", "--dynamic", "y:0=b"])
    assert not exit_.value.code
    text = "warning: dynamic_axes gives axis 0 of y the name 'b', but the graph makes its size a\n"
    assert text in capsys.readouterr().err
