"""Sessions whose results have the same bits on all machines, and fingerprints."""

from contextlib import nullcontext

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, SessionOptions, export_onnx
from pytensor_onnx.errors import InputError, PyTensorONNXError, UncoveredError, UnsupportedOpError
from tests.kernels.conftest import assert_same_bits
from tests.kernels.test_functions import narrow_vectors
from tests.native.machines import digest
from tests.web.tapes import natively, needs_tapes, run_in_node

OPTIONS = SessionOptions(reproducible=True)


def model():
    """A softmax regression, whose arrays are above the limits of regions at 3,000 rows."""
    x, w = pt.matrix("x", shape=(None, 400)), pt.matrix("w", shape=(400, 20))
    logits = pt.log1p(pt.exp(x @ w)) - pt.tanh(x).sum(axis=1, keepdims=True)
    loss = -pt.special.log_softmax(logits, axis=1)[:, 0].mean()
    return [x, w], {"loss": loss, "gradient": pt.grad(loss, w)}


def test_a_whole_model_is_one_region_for_all_sizes():
    program = export_onnx(*model(), precision="float64", session_options=OPTIONS)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(400, 20)) / 20
    for rows in (3, 3000):
        x = rng.normal(size=(rows, 400))
        found = program(x, w)
        with narrow_vectors():
            again = export_onnx(
                *model(), precision="float64", verify=False, session_options=OPTIONS
            )(x, w)
        for one, other in zip(found, again, strict=True):
            assert_same_bits(one, other)
        assert program.session.has_regions
    assert [len(x.operators) > 1 for x in program.session.regions] == [True]
    digest = program.fingerprint().sha256
    assert program.model.metadata_props["pytensor_fingerprint"] == digest


def with_sizes_from_values():
    x = pt.vector("x")
    return [x], {"kept": x[: pt.argmax(x)], "sum": pt.exp(x).sum()}


def test_a_model_with_other_nodes_is_refused_by_name():
    with pytest.raises(UncoveredError, match="Slice"):
        export_onnx(*with_sizes_from_values(), session_options=OPTIONS)


def test_a_fingerprint_tells_the_results_that_depend_on_other_nodes():
    found = export_onnx(*with_sizes_from_values()).fingerprint()
    assert not found.is_reproducible
    assert found.stayed["sum"] == ()
    assert {x.operator for x in found.stayed["kept"]} == {"Slice"}
    kept, total = str(found).splitlines()[1:]
    assert kept.startswith("kept: depends on Slice (")
    assert total == "sum: the same bits on all machines"


def test_a_fingerprint_is_that_of_the_computation():
    x = pt.vector("x")

    def digest(y):
        return export_onnx([x], {"y": y}).fingerprint().sha256

    assert digest(pt.exp(x) * 2) == digest(pt.exp(x) * 2)
    assert digest(pt.exp(x) * 2) != digest(pt.exp(x) * 3)
    assert digest(x[: pt.argmax(x)]) != digest(x[pt.argmax(x) :])


def test_mode_onnx_runs_no_node_in_python():
    x = pt.vector("x")

    @pytensor.wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def doubled(value):
        return 2 * value

    linker = ONNXLinker(session_options=OPTIONS)
    with pytest.raises(UnsupportedOpError):
        pytensor.function([x], pt.exp(doubled(x)), mode=Mode(linker, "fast_run"))
    f = pytensor.function([x], pt.exp(x), mode=Mode(linker, "fast_run"))
    np.testing.assert_allclose(f([0.0, 1.0]), [1, np.e])


def test_inputs_that_the_library_refuses_are_errors():
    x = pt.TensorType("float64", (None,) * 3)("x")
    program = export_onnx([x], {"y": x.reshape((-1, 5))}, verify=False, session_options=OPTIONS)
    assert program(np.zeros((2, 5, 3))).shape == (6, 5)
    with pytest.raises((InputError, ValueError)):
        program(np.zeros((2, 4, 3)))


@pytest.mark.parametrize("options", [{"kernels": False}, {"profile_prefix": "times"}])
def test_without_the_library_there_is_no_such_session(options):
    x = pt.vector("x")
    options = SessionOptions(reproducible=True, **options)
    with pytest.raises(PyTensorONNXError, match="reproducible=True needs"):
        export_onnx([x], {"y": pt.exp(x)}, verify=False, session_options=options)([1.0])


@pytest.mark.parametrize(
    "name",
    [
        "density and gradient: radon, 919 rows",
        "density and gradient: negative binomial",
        "training step",
    ],
)
def test_results_have_equal_bits_on_three_kinds_of_machines(name, tmp_path):
    """Models of the page on reproducible results: natively, without AVX2, and in Node."""
    pytest.importorskip("pymc")
    from scripts.reproducible import NINE, of_tape

    needs_tapes()
    program, feed = NINE[name]()
    path = tmp_path / "model.onnx"
    onnx.save(program.proto, path)
    found = []
    for vectors in (nullcontext, narrow_vectors):
        with vectors():
            session = natively(path)
            names = [x.name for x in session.get_outputs()]
            found.append(dict(zip(names, session.run(None, feed), strict=True)))
    found.append(of_tape(run_in_node, program, feed))
    assert len({digest([x[name] for name in sorted(x)]) for x in found}) == 1
