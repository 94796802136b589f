import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx


def named(variable, name):
    variable.name = name
    return variable


def test_rewritten_results_keep_their_names_in_the_file():
    x = pt.matrix("x")
    hidden = named(x * 2 + 0 * x + 1, "hidden")
    program = export_onnx([x], named(pt.exp(pt.maximum(0, hidden)), "y"))
    names = [node.outputs[0].name for node in program.model.graph]
    assert "hidden" in names
    assert names[-1] == "y"


def test_inputs_and_variables_of_the_user_are_not_renamed():
    x, y = pt.vector("x"), pt.vector()
    z = named(x * 1, "z")
    total = y + z
    pytensor.function([x, y], total, mode="ONNX")
    assert (x.name, y.name, z.name, total.name) == ("x", None, "z", None)


def test_names_of_merged_results_do_not_clash():
    x = pt.vector("x")
    first, second = named(pt.exp(x), "first"), named(pt.exp(x), "second")
    program = export_onnx([x], [first + 1, second * 2])
    value = np.array([0.0, 1.0])
    np.testing.assert_allclose(program(value)[0], np.exp(value) + 1, rtol=1e-14)
    names = [v.name for node in program.model.graph for v in node.outputs]
    assert len(names) == len(set(names))
