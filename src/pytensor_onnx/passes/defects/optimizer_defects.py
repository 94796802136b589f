"""Defects of runtimes' optimizers, recurrent operators and sizes."""

import onnx_ir as ir

from pytensor_onnx.passes.defects.record import (
    DOUBLE,
    EVERY,
    FLOATS,
    OLDER,
    Decomposition,
    Defect,
    Guard,
)
from pytensor_onnx.passes.forms import exact, recurrent_forms, replacements
from pytensor_onnx.passes.forms.guard_forms import (
    bounded_relu_form,
    near_identity_form,
    padded_pool_form,
    product_form,
    range_form,
    transposed_product_form,
)

_REWRITES = "tests/targets/test_optimizer.py::test_rewrites_change_results"
_SIZES = "tests/targets/test_size_defects.py"

OPTIMIZER_DEFECTS = (
    Defect(
        name="Gather as Slice",
        operators=("Gather",),
        reason="A Gather by a Range becomes a Slice, with no error and with other negative ends.",
        tests=(f"{_SIZES}::test_gather_by_a_range_becomes_a_slice",),
        treatment=Guard(rule=range_form, change="{op} by a Range kept from becoming a Slice"),
        switched_off="GatherToSliceFusion",
    ),
    Defect(
        name="fused products in float64",
        repaired="1.26",
        operators=("MatMul",),
        dtypes=DOUBLE,
        targets=OLDER,
        reason="A Transpose of an operand is fused into an operator without a kernel for float64: "
        "the model is refused.",
        tests=("tests/targets/test_older_versions.py::test_transposed_products_are_kept_apart",),
        treatment=Guard(rule=transposed_product_form, change="{op} kept apart from a Transpose"),
    ),
    Defect(
        name="fused products",
        operators=("MatMul",),
        dtypes=FLOATS,
        reason="A constant factor or divisor becomes a float32 attribute, which has to be finite; "
        "a Transpose of the batch is fused too, and no rows end the process then.",
        tests=(
            f"{_REWRITES}[factor of a product]",
            f"{_REWRITES}[divisor of a product]",
            f"{_REWRITES}[size that divides a product]",
            f"{_REWRITES}[root of a size that divides a product]",
            "tests/targets/test_optimizer.py::test_constant_factors_of_products_must_be_finite",
            f"{_SIZES}::test_products_of_no_rows_moved_behind_the_batch_end_the_process",
        ),
        treatment=Guard(
            rule=product_form, change="{op} kept apart from the operators fused with it"
        ),
    ),
    Defect(
        name="pads of pools",
        repaired="1.32",
        operators=("MaxPool",),
        dtypes=FLOATS,
        reason="A Pad of zeros becomes part of a MaxPool, which pads by minus infinity.",
        tests=(f"{_REWRITES}[maxima of padded values]",),
        treatment=Guard(rule=padded_pool_form, change="{op} kept apart from the Pad before it"),
    ),
    Defect(
        name="terms near zero",
        operators=("Add", "Sub"),
        dtypes=DOUBLE,
        reason="A float64 constant that float32 rounds to 0 is not added: x + 1e-300 is x.",
        tests=(
            f"{_REWRITES}[tiny term]",
            f"{_REWRITES}[tiny term on the left]",
            f"{_REWRITES}[tiny term taken off]",
        ),
        treatment=Guard(
            rule=near_identity_form, change="{op} of a constant that float32 rounds to 0 kept"
        ),
    ),
    Defect(
        name="factors near one",
        operators=("Mul", "Div"),
        dtypes=DOUBLE,
        reason="A float64 constant that float32 rounds to 1 is no factor: x * (1 + 1e-8) is x.",
        tests=(
            f"{_REWRITES}[factor near one]",
            f"{_REWRITES}[factor near one on the left]",
            f"{_REWRITES}[divisor near one]",
        ),
        treatment=Guard(
            rule=near_identity_form, change="{op} of a constant that float32 rounds to 1 kept"
        ),
    ),
    Defect(
        name="Relu before Clip",
        operators=("Clip",),
        dtypes=DOUBLE,
        reason="A Relu before a Clip becomes part of its bounds, which must be float32 for that: "
        "a model in float64 is refused.",
        tests=("tests/targets/test_optimizer.py::test_relus_before_clips_in_float64_are_refused",),
        treatment=Guard(rule=bounded_relu_form, change="{op} kept apart from the Relu before it"),
    ),
)


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


_TESTS = "tests/targets/test_size_defects.py"
_UNSIGNED = frozenset({ir.DataType.UINT32, ir.DataType.UINT64})
_EMPTY_PRODUCT = "{op} of {dtype} guarded: an empty product is zero"

SIZE_DEFECTS = (
    Defect(
        name="strided slices of reshaped arrays",
        operators=("Slice",),
        targets=("portable", "tract"),
        reason="tract refuses a Slice with steps of a Reshape, such as a diagonal.",
        tests=("tests/targets/test_portable.py::test_tract_refuses_strided_slices_of_a_reshape",),
        treatment=Decomposition(
            form=replacements.gather_strided,
            change="{op} with steps by positions",
            condition=replacements.has_known_strides,
        ),
    ),
    Defect(
        name="rank 0",
        operators=exact.LIFTED,
        targets=EVERY,
        reason="An operator along an axis refuses values without axes, by the standard.",
        tests=(f"{_TESTS}::test_operators_along_a_dimension_refuse_to_have_none",),
        treatment=Decomposition(
            form=exact.lift_zero_dim,
            change="{op} of a 0-d value lifted to one dimension",
            condition=exact.is_zero_dim,
        ),
    ),
    Defect(
        name="unique empty slices",
        operators=("Unique",),
        reason="Slices without elements end the process.",
        tests=(f"{_TESTS}::test_unique_of_empty_slices_ends_the_process",),
        treatment=Decomposition(
            form=replacements.unique_slices,
            change="{op} of slices in {dtype} made safe",
            condition=replacements.may_have_empty_slices,
        ),
    ),
    Defect(
        name="windows behind the array",
        operators=("MaxPool",),
        targets=EVERY,
        reason="Ceil mode counts a window that starts behind the array, which no kernel computes.",
        tests=(f"{_TESTS}::test_max_pools_in_ceil_mode_have_other_sizes_than_inferred",),
        treatment=Decomposition(
            form=replacements.in_floor_mode,
            change="{op} in ceil mode with the padding of its windows",
            condition=replacements.counts_too_many,
        ),
    ),
    Defect(
        name="window on a short axis",
        operators=tuple(sorted(replacements.POOLS)),
        reason="With a stride, one window is found where the padded array is a little too short.",
        tests=(f"{_TESTS}::test_a_pool_finds_a_window_where_less_than_a_stride_is_missing",),
        treatment=Decomposition(
            form=replacements.check_room,
            change="{op} refuses arrays smaller than a window",
            condition=replacements.may_be_short,
            of_kernel=True,
        ),
    ),
    Defect(
        name="convolution without taps",
        operators=("Conv",),
        reason="The run does not return where the filters have a spatial size of zero.",
        tests=(f"{_TESTS}::test_a_convolution_without_taps_does_not_return",),
        treatment=Decomposition(
            form=replacements.check_taps,
            change="{op} refuses filters without taps",
            condition=replacements.may_have_no_taps,
            of_kernel=True,
        ),
    ),
    Defect(
        name="normalisation of empty channels",
        operators=("InstanceNormalization",),
        reason="A spatial size of zero ends the process: the first element is read all the same.",
        tests=(f"{_TESTS}::test_normalisation_of_empty_channels_ends_the_process",),
        treatment=Decomposition(
            form=replacements.check_channels,
            change="{op} refuses empty channels",
            condition=replacements.may_have_empty_channels,
            of_kernel=True,
        ),
    ),
    Defect(
        name="expansion to nothing",
        operators=("Expand",),
        reason="The optimizer drops an Expand to a constant shape with a zero.",
        tests=(f"{_TESTS}::test_expand_to_a_constant_shape_with_a_zero_is_dropped",),
        treatment=Decomposition(
            form=replacements.expand_to_nothing,
            change="{op} to a size of zero made a Slice",
            condition=replacements.expands_to_nothing,
        ),
        switched_off="ExpandElimination",
    ),
    Defect(
        name="products of two vectors",
        targets=("tract",),
        operators=("MatMul",),
        reason="They are refused.",
        tests=("tests/runtimes/test_runtimes.py::test_tract_refuses_products_of_two_vectors",),
        treatment=Decomposition(
            form=exact.product_of_vectors,
            change="{op} of two vectors in {dtype} as a sum of products",
            condition=exact.multiplies_vectors,
        ),
    ),
    Defect(
        name="empty products of unsigned integers",
        operators=("MatMul",),
        dtypes=_UNSIGNED,
        reason="A product over an inner dimension of 0 fails.",
        tests=(f"{_TESTS}::test_empty_products_of_unsigned_integers_fail",),
        treatment=Decomposition(
            form=exact.signed_product, change=_EMPTY_PRODUCT, condition=exact.may_be_empty
        ),
    ),
    Defect(
        name="unwritten empty products",
        repaired="1.32",
        operators=("MatMul",),
        reason="Over an inner dimension of 0, only the first matrix of a batch is set to zero.",
        tests=(f"{_TESTS}::test_products_of_empty_matrices_are_not_written",),
        treatment=Decomposition(
            form=exact.batched_product, change=_EMPTY_PRODUCT, condition=exact.may_be_unwritten
        ),
    ),
    Defect(
        name="single axes of empty arrays",
        repaired="1.32",
        operators=("ReduceLogSum",),
        reason="Axes of size one are not dropped from an array without elements.",
        tests=(f"{_TESTS}::test_reductions_keep_single_axes_of_empty_arrays",),
        treatment=Decomposition(
            form=replacements.reduce_then_squeeze,
            change="{op} of {dtype} keeps its axes, which are then dropped",
            condition=replacements.reduces_added_axes,
            of_kernel=True,
        ),
    ),
)
