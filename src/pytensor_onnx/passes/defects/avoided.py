"""Defects that no pass treats: exported models do not meet them, or keep them."""

import onnx_ir as ir

from pytensor_onnx.passes.defects.record import DOUBLE, FLOATS, INTEGERS, Defect

_REWRITES = "tests/targets/test_optimizer.py::test_rewrites_change_results"
_INTEGER_TESTS = "tests/targets/test_integer_defects.py"
_SIZE_TESTS = "tests/targets/test_size_defects.py"
_ACCURACY_TESTS = "tests/targets/test_accuracy_defects.py"
_BOOL = frozenset({ir.DataType.BOOL})
_COLUMN = "A vector on the right stays a matrix of one column (`passes/fusions/fuse_products.py`)."
_NEAR_PATTERNS = "`tests/passes/optimizer_guards/test_keep_apart.py` has graphs next to the pattern"

AVOIDED_DEFECTS = (
    Defect(
        name="coarse recurrent cells",
        operators=("GRU", "LSTM", "RNN"),
        dtypes=frozenset({ir.DataType.FLOAT}),
        reason="Sigmoids, and tanh in RNN, have an absolute error of 1e-7: a sigmoid of -19 is "
        "zero, a tanh of 1e-7 is off by a fifth.",
        tests=(
            f"{_ACCURACY_TESTS}::test_gates_of_lstm_lose_small_results",
            f"{_ACCURACY_TESTS}::test_rnn_loses_small_results",
        ),
        treatment="Kept for layers (`nn.lstm`, `nn.gru`, `nn.rnn`, those of pytensor-ml); a `scan` "
        "of the user is a loop.",
    ),
    Defect(
        name="integer powers through double",
        operators=("Pow",),
        dtypes=INTEGERS,
        reason="Integers above 2^53 are rounded, and results saturate instead of wrapping around.",
        tests=(
            f"{_INTEGER_TESTS}::test_integer_pow_rounds_above_2_53",
            f"{_INTEGER_TESTS}::test_integer_pow_does_not_wrap_around",
        ),
        treatment="Lowered to products by squares (`dispatch/elementwise.py`): "
        "the standard does not define overflow and negative exponents.",
    ),
    Defect(
        name="integer division by zero",
        operators=("Div", "Mod"),
        dtypes=INTEGERS,
        reason="One divisor of zero ends the run with an error.",
        tests=(f"{_INTEGER_TESTS}::test_integer_division_by_zero_fails",),
        treatment="No divisor is zero (`dispatch/elementwise.py`): the standard "
        "leaves it undefined.",
    ),
    Defect(
        name="integer division that overflows",
        operators=("Div", "Mod"),
        dtypes=frozenset({ir.DataType.INT32, ir.DataType.INT64}),
        reason="The smallest integer divided by -1 ends the process.",
        tests=(f"{_INTEGER_TESTS}::test_integer_division_that_overflows_ends_the_process",),
        treatment="No divisor is -1 (`dispatch/elementwise.py`): the standard leaves it undefined.",
    ),
    Defect(
        name="integer Einstein sums through double",
        operators=("Einsum",),
        dtypes=INTEGERS,
        reason="Integers above 2^53 are rounded.",
        tests=(f"{_INTEGER_TESTS}::test_integer_reductions_round_above_2_53",),
        treatment="PyTensor's products take its place (`rewriting/products.py`).",
    ),
    Defect(
        name="signs of normalized rows",
        operators=("Normalizer",),
        reason="It reads the signs of its operand after it has written there, which the runtime "
        "lets it do where it knows the shape of the result.",
        tests=(f"{_ACCURACY_TESTS}::test_a_normalizer_loses_signs_in_the_place_of_its_operand",),
        treatment="Files do not tell the shape (`pipeline.py`).",
    ),
    Defect(
        name="reciprocals of integers",
        operators=("Div", "Mul"),
        reason="The optimizer makes z / x of 1 / x * z, for integers as well, and drops the axes "
        "of the one.",
        tests=(
            f"{_REWRITES}[whole quotient that is a factor]",
            f"{_REWRITES}[reciprocal with another axis]",
        ),
        treatment="A Where for the divisor zero follows each quotient of integers, and PyTensor "
        f"makes one quotient of floats; {_NEAR_PATTERNS}.",
    ),
    Defect(
        name="layer norms with other terms",
        operators=("ReduceMean", "Pow", "Sub", "Add", "Div"),
        dtypes=FLOATS,
        reason="LayerNormFusion ignores the exponent, a variable epsilon, and the order of "
        "operands.",
        tests=(
            f"{_REWRITES}[fourth power]",
            f"{_REWRITES}[power of two]",
            f"{_REWRITES}[variable variance added]",
            f"{_REWRITES}[constant added on the left]",
            f"{_REWRITES}[mean less its values]",
            f"{_REWRITES}[deviation below]",
        ),
        treatment=f"A mean is lowered to a sum and a quotient; {_NEAR_PATTERNS}.",
    ),
    Defect(
        name="root mean squares in float64",
        repaired="1.32",
        operators=("ReduceMean", "Pow", "Add", "Sqrt", "Div"),
        dtypes=DOUBLE,
        reason="SimplifiedLayerNormFusion rounds epsilon to float32.",
        tests=(f"{_REWRITES}[root mean square]",),
        treatment=f"A square is lowered to a product; {_NEAR_PATTERNS}.",
    ),
    Defect(
        name="nearly GELU",
        operators=("Erf", "Tanh"),
        reason="GeluFusion and FastGeluFusion take constants for others up to 1e-5 away.",
        tests=(
            f"{_REWRITES}[nearly the root of two]",
            f"{_REWRITES}[nearly one]",
            f"{_REWRITES}[nearly the root of two over pi]",
        ),
        treatment=f"Exported graphs have their factors in another order; {_NEAR_PATTERNS}.",
    ),
    Defect(
        name="bounds that are NaN",
        operators=("Clip",),
        dtypes=FLOATS,
        reason="A bound that is NaN is ignored.",
        tests=("tests/targets/test_nan_defects.py::test_clip_ignores_bounds_that_are_nan",),
        treatment="PyTensor ignores it too.",
    ),
    Defect(
        name="sign of a selected zero",
        operators=("Where",),
        dtypes=FLOATS,
        reason="A -0.0 of the first branch becomes 0.0.",
        tests=("tests/targets/test_nan_defects.py::test_where_drops_the_sign_of_a_first_zero",),
        treatment="Kept (docs/project/limits.md): the exact form takes six operators. Definitions "
        "select zeros from the second branch.",
    ),
    Defect(
        name="extrema of no elements",
        operators=("ArgMax", "ArgMin"),
        reason="The run fails.",
        tests=(f"{_SIZE_TESTS}::test_operators_refuse_an_empty_dimension",),
        treatment="PyTensor fails too.",
    ),
    Defect(
        name="extrema of no booleans",
        operators=("ReduceMax", "ReduceMin"),
        dtypes=_BOOL,
        reason="The run fails; over no numbers it does not.",
        tests=(f"{_SIZE_TESTS}::test_reductions_refuse_to_reduce_no_booleans",),
        treatment="Booleans are reduced as integers (`dispatch/reductions.py`).",
    ),
    Defect(
        name="layer norm of no elements",
        operators=("LayerNormalization",),
        reason="The run fails.",
        tests=(f"{_SIZE_TESTS}::test_operators_refuse_an_empty_dimension",),
        treatment="Kept: the error names the line of the graph.",
    ),
    Defect(
        name="mean of no elements",
        operators=("ReduceMean",),
        reason="The mean is 0 and not NaN.",
        tests=(f"{_SIZE_TESTS}::test_mean_of_nothing_is_zero",),
        treatment="A mean is lowered to a sum and a quotient; `nn.rms_norm` returns no elements.",
    ),
    Defect(
        name="loop in a choice within a choice",
        operators=("If", "Loop"),
        reason="The process ends at load where the optimizer knows both conditions.",
        tests=(f"{_SIZE_TESTS}::test_a_loop_in_nested_choices_that_are_known_ends_the_process",),
        treatment="No definition has such a loop.",
    ),
    Defect(
        name="loops of no steps, Scan",
        operators=("Scan",),
        reason="The run fails for sequences of length 0.",
        tests=(f"{_SIZE_TESTS}::test_scan_refuses_length_zero",),
        treatment="A Scan that may have no steps stands in the branch of an If "
        "(`dispatch/loops/scan.py`).",
    ),
    Defect(
        name="loops of no steps, Loop",
        operators=("Loop",),
        reason="Rows have shape (0, 0) and not (0, n) where the body does not tell n.",
        tests=(f"{_SIZE_TESTS}::test_loop_of_no_steps_forgets_the_shape_of_its_rows",),
        treatment="A Reshape tells the sizes (`dispatch/loops/scan_histories.py`).",
    ),
    Defect(
        name="products of one matrix with no matrices",
        repaired="1.32",
        operators=("MatMul",),
        reason="A matrix is not repeated for an empty batch: the run fails.",
        tests=("tests/dispatch/test_products.py::test_a_matrix_is_repeated_no_times",),
        treatment="Kept (docs/project/limits.md).",
    ),
    Defect(
        name="matrices without rows times a vector",
        repaired="1.32",
        operators=("MatMul",),
        dtypes=FLOATS,
        reason="The run fails.",
        tests=(f"{_SIZE_TESTS}::test_a_matrix_without_rows_is_not_multiplied_by_a_vector",),
        treatment=_COLUMN,
    ),
    Defect(
        name="transposed matrices times a vector",
        operators=("MatMul",),
        dtypes=FLOATS,
        reason="A Transpose before the product is dropped.",
        tests=(f"{_REWRITES}[transposed matrix times a vector]",),
        treatment=_COLUMN,
    ),
    Defect(
        name="sizes of some axes",
        operators=("Resize",),
        reason="Sizes for some axes are refused between two Transposes that cancel.",
        tests=(f"{_SIZE_TESTS}::test_sizes_of_some_axes_between_transposes_are_refused",),
        treatment="`Resize` is emitted with the sizes of all axes (`ops/networks/resize.py`).",
    ),
    Defect(
        name="casts out of range",
        operators=("Cast",),
        targets=("web", "webgpu"),
        reason="A float outside the range of an integer saturates in WebAssembly, and NaN is 0.",
        tests=(f"{_INTEGER_TESTS}::test_casts_to_integers_do_not_saturate",),
        treatment="Kept (docs/project/limits.md): NumPy's result depends on the processor too. "
        "The test shows the native runtime, which does not saturate; no test runs a browser.",
    ),
    Defect(
        name="shared constants",
        operators=("Constant",),
        reason="ConstantSharing takes a time quadratic in the number of `Constant` nodes.",
        tests=("tests/targets/test_optimizer.py::test_sharing_constants_takes_most_of_the_time",),
        treatment="Models share their constants already.",
        switched_off="ConstantSharing",
    ),
)
