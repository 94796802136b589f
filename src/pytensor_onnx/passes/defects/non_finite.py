"""NaN and infinities that kernels get wrong."""

from functools import partial

import onnx_ir as ir

from pytensor_onnx.passes.defects.record import DOUBLE, FLOATS, Decomposition, Defect
from pytensor_onnx.passes.legaliser import channels, exact, ordering, pooling

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
            form=ordering.top_k,
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
            form=ordering.unique,
            change=_NAN_LAST,
            condition=ordering.is_of_elements,
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
            form=ordering.unique_slices,
            change="{op} of slices in {dtype} made safe",
            condition=ordering.is_of_slices,
            of_non_finite=True,
        ),
    ),
    Defect(
        name="maxima of NaN and minus infinity",
        operators=tuple(pooling.GUARDED),
        dtypes=FLOATS,
        reason="A NaN counts only at some positions; a window of minus infinity gives a number.",
        tests=(f"{_TESTS}::test_max_pools_ignore_nan_and_minus_infinity",),
        treatment=Decomposition(
            form=pooling.keep_non_finite,
            change="{op} of {dtype} guarded: NaN and minus infinity survive",
            condition=pooling.may_be_non_finite,
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
            form=channels.resize_as_image,
            change="{op} of {dtype} guarded: NaN stays in its channel",
            condition=channels.may_mix_channels,
            of_non_finite=True,
        ),
    ),
)
