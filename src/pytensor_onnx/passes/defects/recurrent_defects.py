"""Recurrent layers that kernels get wrong."""

import onnx_ir as ir

from pytensor_onnx.passes.defects.record import Decomposition, Defect
from pytensor_onnx.passes.legaliser import recurrent_forms

_NAN_TESTS = "tests/targets/test_nan_defects.py"
_SIZE_TESTS = "tests/targets/test_size_defects.py"
_SINGLE = frozenset({ir.DataType.FLOAT})

RECURRENT_DEFECTS = (
    Defect(
        name="recurrent cells of NaN",
        operators=("GRU", "LSTM"),
        dtypes=_SINGLE,
        reason="With a bias, results of NaN are numbers.",
        tests=(f"{_NAN_TESTS}::test_recurrent_cells_make_numbers_of_nan",),
        treatment=Decomposition(
            form=recurrent_forms.keep_non_finite,
            change="{op} of {dtype} guarded: a loop where an operand is not finite",
            condition=recurrent_forms.may_lose_nan,
            of_non_finite=True,
            of_kernel=True,
        ),
    ),
    Defect(
        name="recurrent cells of no initial state",
        operators=("RNN",),
        dtypes=_SINGLE,
        reason="The first step leaves out the product of zeros with weights of NaN or infinity.",
        tests=(f"{_NAN_TESTS}::test_recurrent_cells_without_state_make_numbers_of_nan",),
        treatment=Decomposition(
            form=recurrent_forms.give_state,
            change="{op} of {dtype} given its initial state",
            condition=recurrent_forms.lacks_product_with_state,
            of_non_finite=True,
            of_kernel=True,
        ),
    ),
    Defect(
        name="recurrent cells of no elements",
        operators=("GRU", "LSTM", "RNN"),
        dtypes=_SINGLE,
        reason="No sequences end the process; of no steps, the last state is zero and not the "
        "initial one.",
        tests=(
            f"{_SIZE_TESTS}::test_recurrent_cells_of_no_sequences_end_the_process",
            f"{_SIZE_TESTS}::test_recurrent_cells_of_no_steps_forget_the_state",
        ),
        treatment=Decomposition(
            form=recurrent_forms.keep_states,
            change="{op} of {dtype} guarded: no steps or sequences",
            condition=recurrent_forms.may_be_empty,
            of_kernel=True,
        ),
    ),
)
"""NaN first: the loop serves empty sequences as well."""
