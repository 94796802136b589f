"""Where the time of a call goes: `explain` of programs and functions."""

from math import inf

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError, compile_onnx, native
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.running.explanation import Explanation, PartTime

pytestmark = pytest.mark.skipif(not native.is_on(), reason="regions need the native library")

x = pt.vector("x")


def test_parts_are_regions_with_their_nodes_and_nodes_outside_with_the_reason():
    program = compile_onnx([x], [pt.exp(-x).sum(), x[pt.argmax(x) :].sum()])
    explanation = program.explain(np.arange(300.0), calls=20)
    outside = [part for part in explanation.parts if part.reason]
    assert {(x.operators, x.reason) for x in outside} == {
        ("Slice", "a size of Slice depends on values"),
        ("ReduceSum", "alone"),
    }
    inner = [x.operators for part in explanation.parts for x in part.parts]
    assert any("Neg" in text and "Exp" in text for text in inner)
    everything = [*explanation.parts, *(x for part in explanation.parts for x in part.parts)]
    assert all(0 <= part.seconds < inf for part in everything)
    assert 0 < sum(x.seconds for x in explanation.parts if x.parts) < explanation.seconds


def test_instructions_of_one_loop_over_elements_share_a_time():
    program = compile_onnx([x], [pt.exp(-x + 2).sum(), pt.cumsum(x)])
    [region] = program.explain(np.arange(100.0), calls=5).parts
    operators = [part.operators for part in region.parts]
    assert sorted(operators) == ["1 CumSum", "1 Sub, 1 Exp, 1 ReduceSum"]


def test_lines_of_the_user_stand_beside_parts():
    y = pt.exp(x)
    program = compile_onnx([x], [(y + 1).sum(), y])
    [region] = program.explain([1.0, 2.0], calls=5).parts
    assert "test_explanation.py:" in region.parts[0].lines[0]
    assert "test_explanation.py:" in str(program.explain([1.0, 2.0], calls=5))


def test_the_slow_part_comes_first():
    matrix = pt.matrix("matrix")
    program = compile_onnx([x, matrix], [pt.exp(x).sum(), pt.linalg.cholesky(matrix)])
    [region] = program.explain(np.ones(3), np.eye(150), calls=5).parts
    assert region.parts[0].operators == "1 Cholesky_lower_float64"
    assert region.parts[0].seconds > 10 * region.parts[1].seconds


def test_sizes_that_depend_on_values_make_plans_in_the_course_of_a_run():
    n = pt.lscalar("n")

    def step(i, total):
        return [total + pt.arange(i % 4 + 1, dtype="float64").sum()]

    zero = pt.constant(np.float64(0.0))
    [total, *_] = iterate(step, [zero], n_steps=n, sequences=[pt.arange(n)])
    f = pytensor.function([n], total, mode="ONNX")
    notes = f.explain(20, calls=3).notes
    assert "region_1: makes 4 plans in the course of a run, as sizes depend on values" in notes


def test_functions_are_explained_without_an_update_of_shared_variables():
    total = pytensor.shared(0.0, "total")
    f = pytensor.function([x], x.sum(), updates={total: total + x.sum()}, mode="ONNX")
    explanation = f.explain(x=[1.0, 2.0], calls=3)
    assert explanation.parts
    assert total.get_value() == 0.0


def test_what_depends_on_data_alone_stands_in_a_note():
    data = pytensor.shared(np.ones((5000, 3)), "data")
    f = pytensor.function([x], (pt.exp(data) * x).sum(), mode="ONNX")
    notes = f.explain(np.ones(3), calls=3).notes
    assert any(note.startswith("once for new data") for note in notes)


def test_functions_that_are_profiled_are_not_explained():
    f = pytensor.function([x], x.sum(), mode="ONNX", profile=True)
    with pytest.raises(PyTensorONNXError, match="profile=True tells"):
        f.explain([1.0])


def test_arguments_that_do_not_fit_are_refused():
    f = pytensor.function([x], x.sum(), mode="ONNX")
    with pytest.raises(PyTensorONNXError, match="a value of each argument"):
        f.explain()


def test_states_of_programs_stay():
    state = pytensor.shared(1.0, "state")
    program = compile_onnx([x], x.sum() * state, updates={state: state + 1})
    program.explain([1.0], calls=3)
    assert program.present_state()["state"] == 1.0


def test_the_text_is_a_table():
    inner = PartTime("", "1 Exp", 2e-6, lines=("model.py:3  y = pt.exp(x)",))
    explanation = Explanation(
        8e-6,
        (
            PartTime("region_1", "2 nodes (1 Exp, 1 Sum)", 3e-6, parts=(inner,)),
            PartTime("dot", "MatMul", 1e-6, "arrays above the limits"),
        ),
        ("threads in an operator: 1",),
    )
    assert str(explanation).splitlines() == [
        "8.00 µs a call",
        "threads in an operator: 1",
        "",
        "  µs   %  part                                              made at",
        "3.00  38  region_1: 2 nodes (1 Exp, 1 Sum)",
        "2.00  25    1 Exp                                           model.py:3",
        "1.00  12  dot: MatMul (no region: arrays above the limits)",
        "4.00  50  the call itself, in Python and ONNX Runtime",
    ]
