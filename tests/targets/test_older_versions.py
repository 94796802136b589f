"""Files for earlier versions of ONNX Runtime: `runtime_version` of an export."""

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, UnsupportedOpError, export_onnx
from pytensor_onnx.passes.legaliser.missing_kernels import missing_kernels
from pytensor_onnx.targets import get_profile, profiles
from pytensor_onnx.targets.kernel_tables import load_kernels
from pytensor_onnx.targets.profiles import PROMISED_VERSION
from tests.conftest import compare_onnx_and_py, op_types
from tests.runtimes.portable_models import MODELS
from tests.runtimes.results import OLDER, run_files

OLDEST = get_profile("onnxruntime", "1.18")


def test_the_promised_version_is_the_lowest_of_its_table():
    lowest = load_kernels("kernels_onnxruntime.json").versions[0]
    assert lowest.rpartition(".")[0] == PROMISED_VERSION


@pytest.mark.parametrize(
    ("version", "served_by"),
    [("1.18.1", "1.18"), ("1.21", "1.18"), ("1.22", "1.22"), ("1.29.0", "1.22")],
)
def test_a_version_between_is_served_by_the_table_before_it(version, served_by):
    profile = get_profile("onnxruntime", version)
    assert profile.name == f"onnxruntime {served_by}"
    assert profile is get_profile("onnxruntime", served_by)


@pytest.mark.parametrize("version", ["1.32.0", "2.0"])
def test_later_versions_are_served_by_the_default(version):
    assert get_profile("onnxruntime", version) is get_profile("onnxruntime")


def test_the_promised_version_has_the_kernels_of_the_default_and_fewer_opsets():
    promised, default = get_profile("onnxruntime", PROMISED_VERSION), get_profile("onnxruntime")
    assert (promised.max_opset, default.max_opset) == (26, 28)
    assert promised.kernels == default.kernels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime_version": "1.17"}, "'1.17' is too low: files are for ONNX Runtime 1.18"),
        ({"runtime_version": "new"}, "a text such as '1.20', not 'new'"),
        ({"runtime_version": 1.2}, "a text such as '1.20', not 1.2"),
        ({"runtime_version": "1.18", "target": "web"}, "is for target='onnxruntime', not 'web'"),
        (
            {"runtime_version": "1.18", "opset_version": 23},
            "from 13 to 21 for the target 'onnxruntime 1.18'",
        ),
        (
            {"runtime_version": "1.31", "opset_version": 27},
            "from 13 to 26 for the target 'onnxruntime'",
        ),
        ({"target": "node", "opset_version": 28}, "from 13 to 26 for the target 'node'"),
        ({"target": "tract", "opset_version": 26}, "from 13 to 24 for the target 'tract'"),
    ],
)
def test_versions_that_do_not_fit_are_refused(options, message):
    x = pt.vector("x")
    with pytest.raises(ArgumentError, match=message):
        export_onnx([x], pt.exp(x), **options)


def test_the_latest_opset_is_one_that_the_version_knows():
    x = pt.vector("x")
    program = export_onnx([x], pt.exp(x), opset_version="latest", runtime_version="1.18")
    assert program.model.opset_imports[""] == 21
    assert "target onnxruntime from version 1.18 on" in program.report()


WORDS = np.array([0, 1, 7, 2**32, 2**63 - 1, 2**63, 2**64 - 1], dtype="uint64")


@pytest.mark.parametrize(
    "compute",
    [
        *(pt.add, pt.sub, pt.mul, pt.lt, pt.le, pt.gt, pt.ge, pt.eq, pt.int_div, pt.mod),
    ],
)
def test_words_of_64_bits_are_computed_by_other_kernels(compute):
    x = pt.tensor("x", dtype="uint64", shape=(None, 1))
    y = pt.tensor("y", dtype="uint64", shape=(None,))
    values = [WORDS[:, None], WORDS[1:]]
    program = compare_onnx_and_py([x, y], compute(x, y), values, runtime_version="1.18")
    assert missing_kernels(program.model, OLDEST) == []


def test_operators_without_a_kernel_are_replaced():
    x, n = pt.dmatrix("x"), pt.lmatrix("n")
    results = [x.prod(axis=1), pt.cos(x), n.argmax(axis=1), n.argmin(axis=0), n.argmax()]
    values = [np.linspace(-3, 3, 15).reshape(3, 5), np.array([[3, 2**40, 2**40], [1, -9, 1]])]
    program = compare_onnx_and_py([x, n], results, values, rtol=1e-14, runtime_version="1.18")
    assert missing_kernels(program.model, OLDEST) == []
    assert "ReduceProd of float64 computed in pairs: no kernel" in map(str, program.changes)


def test_draws_need_no_kernels_of_later_versions():
    model = MODELS["normal draws"]()
    program = export_onnx(
        list(model.inputs),
        list(model.outputs),
        runtime_version="1.18",
        precision="float32",
        **model.options,
    )
    assert missing_kernels(program.model, OLDEST) == []
    np.testing.assert_array_equal(program(), model.export("onnxruntime")())


def test_functions_are_written_out_and_constants_computed():
    x = pt.tensor("x", shape=(3, 3))
    graph = pt.linalg.cholesky(pt.dot(x, x.T) + pt.eye(3))
    program = export_onnx([x], graph, runtime_version="1.24")
    assert not program.model.functions


def test_transposed_products_are_kept_apart():
    x, y = pt.dtensor3("x"), pt.dtensor3("y")
    product = pt.matmul(x.transpose(0, 2, 1), y)
    [fused, apart] = (
        op_types(export_onnx([x, y], product, runtime_version=v)) for v in (None, "1.18")
    )
    assert "Max" not in fused
    assert apart.count("Max") == 1
    assert "Max" not in op_types(
        export_onnx([x, y], product, runtime_version="1.18", precision="float32")
    )


def test_what_a_version_cannot_run_is_refused_with_the_way_out(monkeypatch):
    without = replace(OLDEST, avoided=frozenset({"Exp"}))
    monkeypatch.setitem(profiles._OLDER, "1.18", without)
    x = pt.vector("x")
    with pytest.raises(UnsupportedOpError, match=r"Exp of float64(.|\n)*a later runtime_version"):
        export_onnx([x], pt.exp(x), runtime_version="1.18")


@pytest.mark.sweep
@pytest.mark.parametrize("version", OLDER)
def test_all_models_run_in_the_version(version, tmp_path):
    for name, make in MODELS.items():
        model = make()
        names = [f"result{i}" for i in range(len(model.outputs))]
        program = export_onnx(
            list(model.inputs),
            list(model.outputs),
            output_names=names,
            runtime_version=version,
            **model.options,
        )
        program.save(tmp_path / f"{name}.onnx")
        inputs = [str(value.name) for value in program.inputs]
        given = dict(zip(inputs, program.conversion.arrays(list(model.values)), strict=True))
        results = program.session.run({**given, **program.state})
        outputs = zip(program.conversion.output_names, results, strict=True)
        np.savez(tmp_path / f"{name}.npz", **given, **program.state)
        np.savez(tmp_path / f"{name}.wanted.npz", **dict(outputs))
    _, answers = run_files(f"onnxruntime=={version}", list(MODELS), tmp_path)
    assert not {name: answer for name, answer in answers.items() if answer}
