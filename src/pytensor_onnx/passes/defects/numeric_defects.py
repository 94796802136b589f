"""Defects of runtimes in non-finite values and in rounding."""

from functools import partial

import onnx_ir as ir

from pytensor_onnx.graph.traversal import is_bare
from pytensor_onnx.operators.dims import sizes_in
from pytensor_onnx.passes.defects.record import (
    DOUBLE,
    EVERY,
    FLOATS,
    INT64,
    INTEGERS,
    SINGLE_AND_DOUBLE,
    ByDefinition,
    Decomposition,
    Defect,
)
from pytensor_onnx.passes.forms import exact, integer, replacements
from pytensor_onnx.passes.matching import required

_TESTS = "tests/targets/test_nan_defects.py"
_HALF = frozenset({ir.DataType.FLOAT16})
_HALF_AND_SINGLE = frozenset({ir.DataType.FLOAT16, ir.DataType.FLOAT})
_NAN_PROPAGATES = "{op} of {dtype} guarded: NaN propagates"
_NAN_LAST = "{op} of {dtype} guarded: NaN comes last"

NON_FINITE_DEFECTS = (
    Defect(
        name="sign of NaN",
        operators=("Sign",),
        dtypes=_HALF,
        reason="The sign of NaN is 0 in float16.",
        tests=(f"{_TESTS}::test_sign_of_nan_in_half_precision_is_zero",),
        treatment=Decomposition(
            form=partial(exact.between_casts, dtype=ir.DataType.FLOAT16, wider=ir.DataType.FLOAT),
            change="{op} of {dtype} computed in float32: more accurate",
        ),
    ),
    Defect(
        name="reductions skip NaN",
        operators=tuple(exact.NAN_REDUCTIONS),
        dtypes=FLOATS,
        reason="A NaN counts only at some positions, as the first of the elements.",
        tests=(f"{_TESTS}::test_reductions_ignore_nan",),
        treatment=Decomposition(
            form=exact.nan_reduction,
            change=_NAN_PROPAGATES,
            condition=exact.may_skip_nan,
            of_non_finite=True,
        ),
    ),
    Defect(
        name="log-softmax of NaN",
        operators=("LogSoftmax",),
        dtypes=DOUBLE,
        reason="Beside a NaN the other results are numbers.",
        tests=(f"{_TESTS}::test_log_softmax_loses_nan",),
        treatment=Decomposition(
            form=exact.nan_log_softmax, change=_NAN_PROPAGATES, of_non_finite=True
        ),
    ),
    Defect(
        name="order beside NaN",
        repaired="1.32",
        operators=("TopK",),
        dtypes=FLOATS,
        reason="The numbers around a NaN are not sorted.",
        tests=(f"{_TESTS}::test_topk_does_not_sort_around_nan",),
        treatment=Decomposition(
            form=replacements.top_k,
            change=_NAN_LAST,
            condition=exact.may_skip_nan,
            of_non_finite=True,
        ),
    ),
    Defect(
        name="unique elements without NaN",
        operators=("Unique",),
        dtypes=FLOATS,
        reason="A NaN is dropped.",
        tests=(f"{_TESTS}::test_unique_drops_nan",),
        treatment=Decomposition(
            form=replacements.unique,
            change=_NAN_LAST,
            condition=replacements.is_of_elements,
            of_non_finite=True,
        ),
    ),
    Defect(
        name="unique slices with NaN",
        operators=("Unique",),
        dtypes=FLOATS,
        reason="Slices with a NaN are merged or dropped.",
        tests=(f"{_TESTS}::test_unique_merges_slices_with_nan",),
        treatment=Decomposition(
            form=replacements.unique_slices,
            change="{op} of slices in {dtype} made safe",
            condition=replacements.is_of_slices,
            of_non_finite=True,
        ),
    ),
    Defect(
        name="maxima of NaN and minus infinity",
        operators=tuple(replacements.GUARDED),
        dtypes=FLOATS,
        reason="A NaN counts only at some positions; a window of minus infinity gives a number.",
        tests=(f"{_TESTS}::test_max_pools_ignore_nan_and_minus_infinity",),
        treatment=Decomposition(
            form=replacements.keep_non_finite,
            change="{op} of {dtype} guarded: NaN and minus infinity survive",
            condition=replacements.may_be_non_finite,
            of_non_finite=True,
            of_kernel=True,
        ),
    ),
    Defect(
        name="resizing across channels",
        operators=("Resize",),
        dtypes=_HALF_AND_SINGLE,
        reason="A linear Resize of (N, C, L) adds zero times the next channel, NaN for infinity.",
        tests=(f"{_TESTS}::test_a_linear_resize_along_one_axis_mixes_channels",),
        treatment=Decomposition(
            form=replacements.resize_as_image,
            change="{op} of {dtype} guarded: NaN stays in its channel",
            condition=replacements.may_mix_channels,
            of_non_finite=True,
        ),
    ),
)


_ACCURACY = "tests/targets/test_accuracy_defects.py"
_INTEGERS = "tests/targets/test_integer_defects.py"
_MADE_EXACT = "{op} of {dtype} made exact"


def _is_of_values(node: ir.Node) -> bool:
    """Return whether a node reduces other numbers than sizes of arrays."""
    return is_bare(node) and sizes_in(required(node.inputs[0])) is None


ROUNDING_DEFECTS = (
    Defect(
        name="coarse definitions",
        operators=("Elu", "Gelu", "HardSwish", "Mish", "Selu", "Softplus"),
        dtypes=DOUBLE,
        targets=EVERY,
        reason="Their body in the standard cancels near zero, or has float32 constants.",
        tests=(f"{_ACCURACY}::test_definitions_of_the_standard_are_coarse",),
        treatment=ByDefinition(),
    ),
    Defect(
        name="cancelling group norm",
        operators=("GroupNormalization",),
        dtypes=FLOATS,
        reason="The variance is the difference of two sums, and wrong where the mean is large.",
        tests=(f"{_ACCURACY}::test_group_normalization_cancels",),
        treatment=ByDefinition(),
    ),
    Defect(
        name="coarse sigmoid",
        operators=("Sigmoid",),
        dtypes=SINGLE_AND_DOUBLE,
        reason="Small values have a relative error of 1e-3 at -30 in float64, and end at zero.",
        tests=(f"{_ACCURACY}::test_sigmoid_of_minus_thirty_has_three_digits",),
        treatment=ByDefinition(),
    ),
    Defect(
        name="coarse tanh, sine and cosine",
        operators=("Cos", "Sin", "Tanh"),
        dtypes=DOUBLE,
        reason="Errors of 5 ulp, and of 2,000 ulp next to the zeros of sine and cosine.",
        tests=(f"{_ACCURACY}::test_inaccurate_kernels_are_several_ulp_off",),
        treatment=ByDefinition(),
    ),
    Defect(
        name="shrink in float32",
        operators=("Shrink",),
        dtypes=DOUBLE,
        reason="Elements and attributes are rounded to float32: results have errors of 1e-7.",
        tests=(f"{_ACCURACY}::test_shrink_rounds_to_float32",),
        treatment=Decomposition(form=exact.shrink, change=_MADE_EXACT),
    ),
    Defect(
        name="integer reductions through double",
        operators=tuple(integer.REDUCTIONS),
        dtypes=INTEGERS,
        reason="Integers above 2^53 are rounded, and results saturate instead of wrapping around.",
        tests=(f"{_INTEGERS}::test_integer_reductions_round_above_2_53",),
        treatment=Decomposition(
            form=integer.exact_reduction, change=_MADE_EXACT, condition=is_bare
        ),
    ),
    Defect(
        name="integer products through double",
        operators=("ReduceProd",),
        dtypes=INTEGERS,
        targets=("portable", "tract"),
        reason="Products above 2^53 are rounded in ONNX Runtime, and saturate.",
        tests=(f"{_INTEGERS}::test_integer_reductions_round_above_2_53",),
        treatment=Decomposition(
            form=exact.product_of_steps, change=_MADE_EXACT, condition=_is_of_values
        ),
    ),
    Defect(
        name="int64 compared by halves",
        repaired="1.32",
        operators=("Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Sign"),
        dtypes=INT64,
        reason="Where upper halves are equal, lower halves count as signed: 2^31 is less than 7.",
        tests=(
            f"{_INTEGERS}::test_int64_with_equal_upper_halves_is_compared_by_signed_lower_halves",
        ),
        treatment=Decomposition(
            form=integer.by_comparison,
            change=_MADE_EXACT,
            condition=integer.may_differ_in_lower_halves,
        ),
    ),
    Defect(
        name="integer range through double",
        repaired="1.32",
        operators=("Range",),
        dtypes=INT64,
        reason="Elements are counted in double: from 2^53 + 1 to 2^53 + 3 there are four.",
        tests=(f"{_INTEGERS}::test_integer_range_miscounts_above_2_53",),
        treatment=Decomposition(
            form=integer.integer_range, change=_MADE_EXACT, condition=integer.counts_in_double
        ),
    ),
    Defect(
        name="integer fmod through double",
        repaired="1.32",
        operators=("Mod",),
        dtypes=INTEGERS,
        reason="With fmod=1, integers above 2^53 are rounded; with fmod=0 they are not.",
        tests=(f"{_INTEGERS}::test_integer_fmod_rounds_above_2_53",),
        treatment=Decomposition(
            form=integer.truncated_modulo, change=_MADE_EXACT, condition=integer.is_truncated
        ),
    ),
)
