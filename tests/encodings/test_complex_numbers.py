"""Complex arrays go in and come out as NumPy's, and are pairs of real numbers in a file."""

import json
import pickle

import numpy as np
import onnxruntime
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.conditional import ifelse
from pytensor.scan.utils import until

from pytensor_onnx import ONNXLinker, UnsupportedOpError, export_function_onnx, export_onnx
from tests.conftest import compare_onnx_and_py, op_types

Z = np.array([1 + 2j, -0.5j, 3.0])
W = np.array([[1 + 2j, 3 - 1j, 0.5j], [0.5j, -2.0, 1.0]])


def test_files_have_pairs_and_say_so():
    z = pt.zvector("z")
    doubled = z * 2
    doubled.name = "doubled"
    program = export_onnx([z], [doubled, z], dynamic_axes={"z": {0: "time"}})
    assert "equal to PyTensor" in str(program.verification)
    (given,) = program.model.graph.inputs
    assert (given.name, str(given.shape)) == ("z", "[time,2]")
    described = json.loads(program.model.metadata_props["encodings"])
    assert described["inputs"] == {"z": {"encoding": "complex", "parts": {"pairs": "z"}}}
    assert described["outputs"]["doubled"]["parts"] == {"pairs": "doubled"}
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    pairs = np.stack([Z.real, Z.imag], axis=-1)
    np.testing.assert_array_equal(session.run(["doubled"], {"z": pairs})[0], 2 * pairs)
    for run in (program, pickle.loads(pickle.dumps(program))):
        np.testing.assert_array_equal(run(Z)[0], 2 * Z)


def test_values_that_a_complex_type_takes_are_taken():
    z = pt.zvector("z")
    f = pytensor.function([z], [z * 1], mode="ONNX")
    program = export_onnx([z], z * 1, verify=False)
    for value in (Z[::2], Z[::-1], [1, 2j], np.arange(3), Z.astype("complex64")):
        for found in (f(value)[0], program(value)):
            np.testing.assert_array_equal(found, np.asarray(value, "complex128"), strict=True)


def test_shapes_of_examples_become_static():
    z = pt.cmatrix("z")
    program = export_onnx([z], z * 1, example_inputs=[W.astype("complex64")])
    assert str(program.model.graph.inputs[0].shape) == "[2,3,2]"


def test_shared_values_and_updates():
    shared = pytensor.shared(Z, name="shared")
    update = {shared: shared * 1j}
    program = export_onnx([], shared[0], updates=update)
    f = pytensor.function([], shared[0], updates=update, mode="ONNX")
    for run in (program, export_function_onnx(f), f, pickle.loads(pickle.dumps(f))):
        assert [run() for _ in range(3)] == [1 + 2j, -2 + 1j, -1 - 2j]
    np.testing.assert_array_equal(shared.get_value(), Z * 1j**3)
    shared.set_value(np.array([5j]))
    assert f() == 5j


@pytest.mark.parametrize("freeze", [False, True])
def test_shared_values_without_an_update_and_constants(freeze):
    shared, z = pytensor.shared(Z, name="shared"), pt.zvector("z")
    results = [shared + z, shared, pt.constant(W)]
    f = pytensor.function([z], results, mode=Mode(ONNXLinker(freeze=freeze)))
    for run in (f, export_onnx([z], results)):
        for found, expected in zip(run(Z), [2 * Z, Z, W], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_scalar_types():
    x = ps.complex128("x")
    results = [x, ps.mul(x, x), ps.real(x), pt.tensor_from_scalar(x) * 2]
    compare_onnx_and_py([x], results, [1 + 2j])
    assert isinstance(pytensor.function([x], ps.mul(x, x), mode="ONNX")(2j), np.complex128)


@pytest.mark.slow
def test_functions_and_branches():
    z, choice = pt.zvector("z"), pt.bscalar("choice")
    inner = OpFromGraph([z], [z * 2j, z.real])
    doubled, real = inner(inner(z)[0])
    chosen = ifelse(choice, doubled, z.conj())
    for value in (0, 1):
        compare_onnx_and_py([z, choice], [chosen, real], [Z, np.int8(value)])


@pytest.mark.slow
def test_loops():
    w, z, both = pt.zmatrix("w"), pt.zvector("z"), pt.zmatrix("both")

    def step(row, before, one, two, z):
        return row * z, before * 0.5 + row, one + two * 1j

    mapped, single, pairs = pytensor.scan(
        step,
        sequences=[w],
        outputs_info=[None, z, {"initial": both, "taps": [-2, -1]}],
        non_sequences=[z],
        return_updates=False,
    )
    first, *others = ([rows, Z, W] for rows in [W, W[:1], W[:0]])
    compare_onnx_and_py([w, z, both], [mapped, single, pairs], first, also=others)


def test_loops_that_end_early_keep_one_state():
    z = pt.zvector("z")

    def step(z):
        z = z * (1 + 1j)
        return z, until(pt.any(z.real < -4))

    powers = pytensor.scan(step, outputs_info=[z], n_steps=20, return_updates=False)
    program = compare_onnx_and_py([z], powers[-1], [Z])
    assert "ConstantOfShape" not in op_types(program)


def test_a_graph_that_is_complex_inside_is_real_at_its_ends():
    x = pt.vector("x")
    z = pt.complex(x, 2 * x)
    program = compare_onnx_and_py([x], [(z * z.conj()).real], [np.array([1.0, -2.0])])
    assert "encodings" not in program.model.metadata_props
    assert [v.dtype.name for v in program.model.graph.outputs] == ["DOUBLE"]


def test_operations_without_a_formula_are_named():
    z = pt.zmatrix("z")
    _, vectors = pt.linalg.eigh(z)
    with pytest.raises(UnsupportedOpError, match=r"(?s)Shape_i.*operation on complex numbers"):
        export_onnx([z], vectors @ vectors.T)


@pytest.mark.parametrize("mode", [Mode(ONNXLinker(), None), Mode(ONNXLinker(), "fast_compile")])
def test_other_rewrites(mode):
    z = pt.zvector("z")
    f = pytensor.function([z], [z * 2 + z * z, z.sum()], mode=mode)
    np.testing.assert_allclose(f(Z)[0], 2 * Z + Z * Z)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMBA"])
def test_compiled_functions_with_fused_operations(mode):
    z, x = pt.zvector("z"), pt.vector("x")
    with pytensor.config.change_flags(cxx=""):
        f = pytensor.function([z, x], [pt.exp(z) * 2j + z * z * (x + 1), abs(z) + x], mode=mode)
    values = Z, np.array([1.0, -2.0, 0.5])
    for found, expected in zip(export_function_onnx(f)(*values), f(*values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
