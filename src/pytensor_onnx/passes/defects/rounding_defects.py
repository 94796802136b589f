"""Results that kernels round too much, and integers that they compute in float64."""

from pytensor_onnx.graph.node_flags import is_bare
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
from pytensor_onnx.passes.legaliser import exact, integer

_ACCURACY = "tests/targets/test_accuracy_defects.py"
_INTEGERS = "tests/targets/test_integer_defects.py"
_MADE_EXACT = "{op} of {dtype} made exact"

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
