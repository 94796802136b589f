import json
import re
import shutil

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import pytensor_onnx
import pytensor_onnx_command
from pytensor_onnx import VerificationError, export_onnx
from pytensor_onnx.cli.app import app, main
from pytensor_onnx.exporting.files.file_verification import FileCheck
from pytensor_onnx.graph.model_reading import external_bytes
from tests.importing.models import model_of
from tests.importing.registry.test_from_onnx import voice_detector


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})


@pytest.fixture(scope="module")
def special(tmp_path_factory):
    """A file with a model-local function, a batch dimension and a state."""
    path = tmp_path_factory.mktemp("models") / "special.onnx"
    x, total = (
        pt.matrix("x", shape=(None, 3)),
        pytensor.shared(np.zeros(3), name="total", shape=(3,)),
    )
    y = pt.tan(x)
    y.name = "y"
    export_onnx([x], y, path, updates={total: total + y.sum(axis=0)}, dynamic_axes={"x": {0: "n"}})
    return path


def test_demo_digits_writes_a_file_and_prints_a_table(tmp_path):
    pytest.importorskip("pytensor_ml")
    path = tmp_path / "small.onnx"
    result = run("demo", "digits", "--output", path, "--epochs", 1)
    assert result.exit_code == 0, result.output
    assert "450 of 450" in result.output
    assert "Gemm, Relu, Gemm, Softmax" in result.output
    assert f"{path.stat().st_size:,} bytes" in result.output


def test_inspect_shows_the_contents_of_a_file(special):
    result = run("inspect", special)
    assert result.exit_code == 0, result.output
    assert "total -> total_next" in result.output
    for text in ("x: float64[n, 3]", "y: float64[n, 3]", "total: float64[3], with a default"):
        assert text in result.output
    assert re.search(r"pytensor.standard::Tan_float64 +│ +1 ", result.output)
    assert "onnx 21, pytensor.standard 1; IR version 10" in result.output
    assert f"{special.stat().st_size:,} bytes" in result.output


@pytest.mark.slow
def test_verify_lists_the_successful_steps(special):
    result = run("verify", special)
    assert result.exit_code == 0, result.output
    assert "the ONNX checker accepts it" in result.output
    assert "ONNX Runtime loads it" in result.output
    assert "runs on sampled inputs (x [3, 3])" in result.output
    assert "y: float64[3, 3]" in result.output


def test_bench_shows_times_on_sampled_or_given_inputs(special, tmp_path):
    result = run("bench", special, "--seconds", 0)
    assert result.exit_code == 0, result.output
    assert "sampled inputs (x [3, 3])" in result.output
    assert re.search(r"│ [\d.,]+ [mµ]?s +│ 1 +│", result.output)
    np.savez(tmp_path / "given.npz", x=np.ones((7, 3)))
    given = ["--inputs", tmp_path / "given.npz", "--threads", 1, "--seconds", 0.001, "--json"]
    (found,) = json.loads(run("bench", special, *given).output)
    assert (found["file"], found["inputs"]) == (str(special), "given inputs (x [7, 3])")
    assert 0 < found["least_seconds"] <= found["median_seconds"] <= found["p99_seconds"]


def test_bench_compares_files_and_threads(special, tmp_path):
    copy = shutil.copy(special, tmp_path / "copy.onnx")
    options = ["--threads", 1, "--threads", 2, "--provider", "cpu", "--seconds", 0]
    found = json.loads(run("bench", special, copy, *options, "--json").output)
    assert [(x["file"], x["threads"]) for x in found] == [
        (str(file), n) for file in (special, copy) for n in (1, 2)
    ]
    assert "copy.onnx, threads 2: loads in" in run("bench", copy, *options).output


def test_bench_tells_a_file_that_is_given_twice_apart(special):
    options = ["--threads", 1, "--threads", 2, "--seconds", 0]
    lines = [
        x for x in run("bench", special, special, *options).output.splitlines() if "loads" in x
    ]
    assert [line.partition(": loads")[0] for line in lines] == [
        f"{special} ({copy}), threads {n}" for copy in (1, 2) for n in (1, 2)
    ]


def test_inspect_lists_nodes_and_functions(special):
    nodes = run("inspect", special, "--nodes").output.splitlines()
    assert "y = pytensor.standard::Tan_float64(x)" in nodes
    functions = run("inspect", special, "--functions").output.splitlines()
    assert functions[0].startswith("pytensor.standard::Tan_float64(")
    assert all(line.startswith("  ") for line in functions[1:])
    found = json.loads(run("inspect", special, "--nodes", "--functions", "--json").output)
    assert found["nodes"][0]["outputs"] == ["y"]
    assert len(found["functions"][0]["nodes"]) == len(functions) - 1


def test_inspect_draws_the_graph(special, tmp_path):
    picture = tmp_path / "graph.svg"
    assert "graph.svg" in run("inspect", special, "--svg", "-o", picture).output
    assert "Tan" in picture.read_text(encoding="utf-8")
    assert json.loads(run("inspect", special, "--svg", "-o", picture, "--json").output) == {
        "file": str(special),
        "svg": str(picture),
    }
    assert run("inspect", special, "-o", picture).exit_code == 2


def test_inspect_tells_what_an_import_makes_of_a_file_or_all_that_stops_it(special, tmp_path):
    assert "from_onnx imports" in run("inspect", special, "--import").output
    assert json.loads(run("inspect", special, "--import", "--json").output)["obstacles"] == []
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], [y], keepdims=0) for y in ("y", "z")]
    nodes.append(helper.make_node("Strange", ["y"], ["w"], domain="far"))
    outputs = {"z": (None,), "w": (None,)}
    inputs, dtypes = {"x": (2, 3), "axes": (1,)}, {"axes": TensorProto.INT64}
    model = model_of(nodes, inputs=inputs, outputs=outputs, dtypes=dtypes)
    path = tmp_path / "sums.onnx"
    onnx.save(model, path)
    found = json.loads(run("inspect", path, "--import", "--json").output)
    counts = {x["kind"]: x["count"] for x in found["obstacles"]}
    assert counts == {"ReduceSum": 2, "far.Strange": 1}
    assert "inputs={'axes': value}" in found["obstacles"][0]["instead"]
    assert "stops the import" in run("inspect", path, "--import").output


def test_inspect_names_a_call_that_imports_the_file(tmp_path):
    path = tmp_path / "voice.onnx"
    onnx.save(voice_detector(), path)
    found = json.loads(run("inspect", path, "--import", "--json").output)
    assert found["call"].startswith("from_onnx(model, ")
    assert found["call"] in run("inspect", path, "--import").output.replace("\n", " ")


def test_inspect_prints_the_imported_graph(special):
    lines = run("inspect", special, "--pytensor").output.splitlines()
    assert lines[0].startswith("Tan [id A] <Matrix(float64, shape=(?, 3))> 'y'")
    found = json.loads(run("inspect", special, "--pytensor", "--nodes", "--json").output)
    assert found["pytensor"] == lines
    both = run("inspect", special, "--pytensor", "--nodes").output.splitlines()
    assert both == [*run("inspect", special, "--nodes").output.splitlines(), *lines]
    assert len(found["nodes"]) == len(both) - len(lines)


def test_inspect_shows_test_vectors_by_their_shapes(tmp_path):
    x = pt.vector("x")
    file = export_onnx([x], (2 * x).copy("y")).save(tmp_path / "model.onnx", vectors=True)
    found = json.loads(run("inspect", file, "--json").output)
    assert found["test_vectors"] == ["x: float64[3]", "y: float64[3]"]
    assert "test_vectors" not in found["metadata"]


def test_verify_ends_a_file_that_does_not(tmp_path, monkeypatch):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"\x08\x0a")
    given = []

    def verify(path, *, timeout):
        given.append((path, timeout))
        return FileCheck(["it loads"], "it did not end")

    monkeypatch.setattr("pytensor_onnx.exporting.files.file_verification.verify_file_apart", verify)
    result = run("verify", file)
    assert isinstance(result.exception, VerificationError)
    assert str(result.exception) == "it did not end"
    assert result.output == "ok: it loads\n"
    result = run("verify", file, "--timeout", "2.5", "--json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert found.pop("seconds") >= 0
    assert found == {
        "file": str(file),
        "verified": False,
        "steps": ["it loads"],
        "error": "it did not end",
    }
    assert given == [(file, 60.0), (file, 2.5)]
    assert run("verify", file, "--timeout", "0").exit_code == 2


def test_weights_beside_a_file_count_as_its_memory(tmp_path):
    x, w = pt.fmatrix("x"), pytensor.shared(np.ones((64, 64), "float32"), name="w")
    model = export_onnx([x], x @ w, verify=False).model
    ir.save(model, tmp_path / "model.onnx", external_data="model.data")
    size = (tmp_path / "model.data").stat().st_size
    assert size >= 64 * 64 * 4
    assert external_bytes(tmp_path / "model.onnx") == size


EVIL = "e\x1b]0;owned\x07\x1b[31m\x9b2J[red]x[/red]\n\r\u202e"
SHOWN = r"e\x1b]0;owned\x07\x1b[31m\x9b2J[red]x[/red]\n\r\u202e"


@pytest.fixture
def evil(tmp_path):
    """A file with escape codes and markup in every text that it has."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node(EVIL, [EVIL], [f"{EVIL}y"], domain=EVIL)
    graph = onnx.helper.make_graph(
        [node], EVIL, [info(EVIL, 1, [EVIL, 2])], [info(f"{EVIL}y", 1, [EVIL, 2])]
    )
    opsets = [onnx.helper.make_opsetid(name, 21) for name in ("", EVIL)]
    inner = onnx.helper.make_node("Identity", ["a"], ["b"])
    function = onnx.helper.make_function(EVIL, EVIL, ["a"], ["b"], [inner], opsets[:1])
    model = onnx.helper.make_model(
        graph, opset_imports=opsets, ir_version=10, functions=[function], producer_name=EVIL
    )
    onnx.helper.set_model_props(model, {EVIL: EVIL, "state": json.dumps({EVIL: EVIL})})
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def assert_harmless(text):
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_names_in_a_file_reach_no_terminal_as_they_are(evil, capsys, monkeypatch, command):
    told = FileCheck([f"it runs on {EVIL}"], f"it has no {EVIL}")
    monkeypatch.setattr(
        "pytensor_onnx.exporting.files.file_verification.verify_file_apart", lambda *_, **__: told
    )
    with pytest.raises(SystemExit):
        main([command, str(evil)])
    printed = capsys.readouterr()
    assert_harmless(printed.out + printed.err)
    text = "".join(f"{printed.out}{printed.err}".replace("│", "").split())
    # The line end of a message is none of a name.
    shown = SHOWN if command == "inspect" else SHOWN.replace(r"\n", "")
    assert text.count(shown) >= (11 if command == "inspect" else 2)


def test_names_in_errors_reach_no_terminal_as_they_are(tmp_path, capsys):
    file = tmp_path / "a\x1b[31m[red]b.onnx"
    file.write_bytes(b"nonsense")
    with pytest.raises(SystemExit):
        main(["inspect", str(file)])
    error = capsys.readouterr().err
    assert_harmless(error)
    assert r"a\x1b[31m[red]b.onnx" in error.replace("\n", "")


def test_inspect_prints_json(special):
    found = json.loads(run("inspect", special, "--json").output)
    assert found["inputs"] == ["x: float64[n, 3]"]
    assert found["defaults"] == ["total: float64[3]"]
    assert found["outputs"] == ["y: float64[n, 3]", "total_next: float64[3]"]
    assert found["state"] == {"total": "total_next"}
    assert found["operators"]["pytensor.standard::Tan_float64"] == 1
    assert found["file_bytes"] == special.stat().st_size
    assert found["metadata"]["pytensor_version"] == pytensor.__version__


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": 1}', "[" * 100_000])
def test_state_that_is_no_state_is_not_shown(tmp_path, special, text):
    model = ir.load(special)
    model.metadata_props["state"] = text
    ir.save(model, tmp_path / "model.onnx")
    assert json.loads(run("inspect", tmp_path / "model.onnx", "--json").output)["state"] == {}


def test_a_size_of_minus_one_is_an_open_axis(tmp_path):
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [-1, 3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, ir_version=10), tmp_path / "model.onnx")
    for command in (["bench", "--seconds", 0], ["verify"], ["optimize"], ["inspect", "--pytensor"]):
        result = run(command[0], tmp_path / "model.onnx", *command[1:])
        assert result.exit_code == 0, result.exception


def test_sizes_that_no_memory_holds_are_no_sample(tmp_path, capsys):
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [10**6, 10**6, 10**3]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, ir_version=10), tmp_path / "model.onnx")
    with pytest.raises(SystemExit, match="1"):
        main(["bench", str(tmp_path / "model.onnx")])
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: the memory does not suffice: Unable to allocate .*\n", error)


def test_sizes_that_are_claimed_only_take_no_memory_to_inspect(tmp_path):
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[10**6, 10**6])
    node = onnx.helper.make_node("Identity", ["w"], ["y"])
    output = onnx.helper.make_tensor_value_info("y", 1, [None, None])
    graph = onnx.helper.make_graph([node], "g", [], [output], initializer=[tensor])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    assert "1, 4,000,000,000,000 bytes" in run("inspect", tmp_path / "model.onnx").output


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_an_empty_file_is_an_error(tmp_path, command):
    file = tmp_path / "model.onnx"
    file.touch()
    result = run(command, file)
    assert str(result.exception) == f"{file} cannot be read as an ONNX model: it is empty"


def test_demo_checks_its_folder_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr("pytensor_onnx.cli.demo.run_digits", None)
    file = tmp_path / "missing" / "digits.onnx"
    result = run("demo", "digits", "-o", file)
    assert str(result.exception) == (
        f"--output={str(file)!r} cannot be written: there is no folder {str(file.parent)!r}"
    )


def test_version_and_help_have_short_ways(special):
    assert run("--version").output == f"pytensor-onnx {pytensor_onnx.__version__}\n"
    for command in ([], ["inspect"], ["verify"], ["ops"], ["demo"], ["demo", "digits"]):
        assert run(*command, "-h").output == run(*command, "--help").output
        assert "Usage" in run(*command, "-h").output


def error_of(capsys, *arguments):
    """Return the one line of error of a command that ends with status 2."""
    with pytest.raises(SystemExit) as exit_:
        main([str(a) for a in arguments])
    printed = capsys.readouterr()
    assert exit_.value.code == 2
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize("command", ["inspect", "verify", "bench", "web"])
def test_files_that_are_no_models_give_an_error_of_one_line(tmp_path, capsys, command):
    text, empty = tmp_path / "text.onnx", tmp_path / "empty.onnx"
    text.write_text("this is no model")
    empty.touch()
    without_graph = tmp_path / "bare.onnx"
    without_graph.write_bytes(onnx.ModelProto(ir_version=10).SerializeToString())
    output = ["-o", tmp_path / "site"] if command == "web" else []
    for file, message in (
        (text, "cannot be read as an ONNX model"),
        (empty, "cannot be read as an ONNX model: it is empty"),
        (without_graph, "cannot be read as an ONNX model: it has no graph"),
        (tmp_path, "is a directory"),
        (tmp_path / "none.onnx", "does not exist"),
    ):
        assert message in error_of(capsys, command, file, *output)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("command", ["verify", "bench", "web"])
def test_missing_weights_give_an_error_of_one_line(tmp_path, capsys, command):
    file = tmp_path / "model.onnx"
    x, w = pt.fmatrix("x"), pytensor.shared(np.ones((64, 64), "float32"), name="w")
    ir.save(export_onnx([x], x @ w, verify=False).model, file, external_data="model.data")
    (tmp_path / "model.data").unlink()
    assert "model.data, and there is no such file" in error_of(capsys, command, file)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["nothing"], id="no command"),
        pytest.param(["inspect"], id="no file"),
        pytest.param(["inspect", "--depth", "3"], id="no option"),
        pytest.param(["web", "pyproject.toml", "--runtime", "local"], id="no choice"),
        pytest.param(["verify", "pyproject.toml", "--timeout", "soon"], id="no number"),
        pytest.param(["bench", "pyproject.toml", "--threads", "0"], id="no threads"),
        pytest.param(["bench", "pyproject.toml", "--threads", "99999"], id="too many threads"),
        pytest.param(["ops", "nothing"], id="no operation"),
        pytest.param(["demo", "digits", "-o", "missing/digits.onnx"], id="no folder"),
    ],
)
def test_wrong_arguments_give_an_error_of_one_line(capsys, arguments):
    error_of(capsys, *arguments)


def test_an_error_that_is_not_expected_is_one_line(special, capsys, monkeypatch):
    def fail(file):
        raise ValueError("negative\n\tdimensions")

    monkeypatch.setattr("pytensor_onnx.cli.inspection.inspect_file", fail)
    with pytest.raises(SystemExit, match="1"):
        main(["inspect", str(special)])
    error = capsys.readouterr().err
    assert error == (
        "error: ValueError: negative dimensions (PYTENSOR_ONNX_TRACEBACK=1 shows the traceback)\n"
    )
    monkeypatch.setenv("PYTENSOR_ONNX_TRACEBACK", "1")
    with pytest.raises(ValueError, match="negative"):
        main(["inspect", str(special)])


def test_a_model_with_unknown_values_gives_one_warning(tmp_path, capsys):
    y = onnx.helper.make_tensor_value_info("y", 1, [3])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [], [y])
    onnx.save(onnx.helper.make_model(graph, ir_version=10), tmp_path / "model.onnx")
    with pytest.raises(SystemExit):
        main(["bench", str(tmp_path / "model.onnx")])
    warning, error = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: Input 'x' of node")
    assert error.startswith("error: ONNX Runtime refuses the model")


def test_ctrl_c_while_modules_are_imported_ends_with_130(monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("pytensor_onnx.cli.app.main", interrupt)
    with pytest.raises(SystemExit, match="130"):
        pytensor_onnx_command.main(["inspect"])


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["softmx"], "no operation of PyTensor has 'softmx' in its name: did you mean softmax?"),
        (["zzzz"], "without a name, ops lists all"),
        (["gemmm", "--kernels"], "did you mean gemm?"),
    ],
)
def test_ops_suggests_a_similar_name(capsys, arguments, hint):
    assert hint in error_of(capsys, "ops", *arguments)


def test_a_wrong_command_is_answered_by_a_similar_one(capsys):
    assert "No such command 'inspct': did you mean inspect?" in error_of(capsys, "inspct")
    assert "No such command 'mnist': there are digits" in error_of(capsys, "demo", "mnist")


@pytest.mark.parametrize("arguments", [[], ["demo"]])
def test_no_command_shows_the_help(capsys, arguments):
    with pytest.raises(SystemExit):
        main(arguments)
    printed = capsys.readouterr()
    assert "Usage" in printed.out
    assert not printed.err


def test_a_file_that_does_not_run_ends_with_status_1(capsys, monkeypatch, special):
    monkeypatch.setattr(
        "pytensor_onnx.exporting.files.file_verification.verify_file_apart",
        lambda *_, **__: FileCheck([], "it did not end"),
    )
    with pytest.raises(SystemExit) as exit_:
        main(["verify", str(special)])
    assert exit_.value.code == 1
    assert capsys.readouterr().err == "error: it did not end\n"


def test_a_file_that_fails_or_does_not_load_is_not_measured(tmp_path, capsys):
    file, rows = tmp_path / "model.onnx", pt.lvector("rows")
    export_onnx([rows], pt.arange(3)[rows], file)
    np.savez(tmp_path / "given.npz", rows=np.array([9]))
    with pytest.raises(SystemExit) as exit_:
        main(["bench", str(file), "--inputs", str(tmp_path / "given.npz")])
    assert exit_.value.code == 1
    assert "index 9" in capsys.readouterr().err
    np.save(tmp_path / "given.npy", np.array([1]))
    with pytest.raises(SystemExit):
        main(["bench", str(file), "--inputs", str(tmp_path / "given.npy")])
    assert "is one array: numpy.savez(" in capsys.readouterr().err
    model = ir.load(file)
    model.graph[0].op_type = "Nothing"
    ir.save(model, file)
    with pytest.raises(SystemExit) as exit_:
        main(["bench", str(file)])
    assert exit_.value.code == 1
    assert "ONNX Runtime refuses the model" in capsys.readouterr().err


def test_ops_lists_native_kernels():
    lines = run("ops", "--kernels").output.splitlines()
    assert "Exp: float64, float32" in lines
    assert "MatMul: float64, float32, int64, int32, uint64, uint32" in lines
    assert "Cholesky_lower_float64: a function" in lines
    found = json.loads(run("ops", "chol", "--kernels", "--json").output)
    assert found["operators"] == {}
    assert "Cholesky_lower_float64" in found["functions"]


@pytest.mark.parametrize(
    ("shell", "words", "completed"),
    [
        ("bash", ["pytensor-onnx", "ins"], "plain,inspect\n"),
        ("bash", ["pytensor-onnx", "bench", "--th"], "plain,--threads\n"),
        ("zsh", ["pytensor-onnx", "ins"], "plain\ninspect\nShow the contents"),
        ("fish", ["pytensor-onnx", "bench", "--th"], "plain,--threads"),
    ],
)
def test_shells_complete_commands_and_options(monkeypatch, capfd, shell, words, completed):
    monkeypatch.setenv("_PYTENSOR_ONNX_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    # fish gives the word itself, the other shells its place.
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert completed in capfd.readouterr().out


def test_an_interrupted_command_ends_with_130(special, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pytensor_onnx.cli.inspection.inspect_file", interrupt)
    with pytest.raises(SystemExit) as exit_:
        main(["inspect", str(special)])
    assert exit_.value.code == 130


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_names_the_program(capfd, shell):
    with pytest.raises(SystemExit) as exit_:
        main(["--show-completion", shell])
    assert not exit_.value.code
    assert f"_PYTENSOR_ONNX_COMPLETE={shell}_complete" in capfd.readouterr().out


def test_a_port_out_of_range_is_a_wrong_argument(special):
    result = run("web", special, "--port", 70_000)
    assert result.exit_code == 2
    assert "65535" in result.output


@pytest.mark.parametrize("seconds", ["nan", "inf"])
@pytest.mark.parametrize("option", [("verify", "--timeout"), ("bench", "--seconds")])
def test_times_are_finite(special, option, seconds):
    result = run(option[0], special, option[1], seconds)
    assert result.exit_code == 2
    assert "is not a finite number" in result.output


def test_calibrate_prints_p_values_and_tells_by_its_status(tmp_path, monkeypatch, capsys):
    code = "import pymc as pm, warnings\nwarnings.simplefilter('ignore')\n"
    code += "with pm.Model() as model:\n    a = pm.Normal('a')\n"
    code += "    pm.Normal('y', a, observed=[0.0, 0.0])\n"
    code += "with pm.Model() as wrong:\n    b = pm.Normal('b')\n"
    code += "    pm.Normal('y', b, observed=[0.0, 0.0])\n    pm.Potential('p', -9 * b**2)\n"
    (tmp_path / "calibrated_models.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    options = ("--simulations", "40", "--draws", "19", "--warmup", "100")
    good = run("calibrate", "calibrated_models:model", *options, "--json")
    assert json.loads(good.output)["is_calibrated"]
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "calibrated_models:wrong", *options])
    assert ended.value.code == 1
    assert "NOT equally frequent" in capsys.readouterr().out
