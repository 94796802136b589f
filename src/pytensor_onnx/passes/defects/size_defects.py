"""Missing, empty and short axes that kernels get wrong."""

import onnx_ir as ir

from pytensor_onnx.passes.defects.record import EVERY, Decomposition, Defect
from pytensor_onnx.passes.legaliser import empty, exact, ordering, pooling, short_axes, slices

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
            form=slices.gather_strided,
            change="{op} with steps by positions",
            condition=slices.has_known_strides,
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
            form=ordering.unique_slices,
            change="{op} of slices in {dtype} made safe",
            condition=ordering.may_have_empty_slices,
        ),
    ),
    Defect(
        name="windows behind the array",
        operators=("MaxPool",),
        targets=EVERY,
        reason="Ceil mode counts a window that starts behind the array, which no kernel computes.",
        tests=(f"{_TESTS}::test_max_pools_in_ceil_mode_have_other_sizes_than_inferred",),
        treatment=Decomposition(
            form=pooling.in_floor_mode,
            change="{op} in ceil mode with the padding of its windows",
            condition=pooling.counts_too_many,
        ),
    ),
    Defect(
        name="window on a short axis",
        operators=tuple(sorted(short_axes.POOLS)),
        reason="With a stride, one window is found where the padded array is a little too short.",
        tests=(f"{_TESTS}::test_a_pool_finds_a_window_where_less_than_a_stride_is_missing",),
        treatment=Decomposition(
            form=short_axes.check_room,
            change="{op} refuses arrays smaller than a window",
            condition=short_axes.may_be_short,
            of_kernel=True,
        ),
    ),
    Defect(
        name="convolution without taps",
        operators=("Conv",),
        reason="The run does not return where the filters have a spatial size of zero.",
        tests=(f"{_TESTS}::test_a_convolution_without_taps_does_not_return",),
        treatment=Decomposition(
            form=short_axes.check_taps,
            change="{op} refuses filters without taps",
            condition=short_axes.may_have_no_taps,
            of_kernel=True,
        ),
    ),
    Defect(
        name="normalisation of empty channels",
        operators=("InstanceNormalization",),
        reason="A spatial size of zero ends the process: the first element is read all the same.",
        tests=(f"{_TESTS}::test_normalisation_of_empty_channels_ends_the_process",),
        treatment=Decomposition(
            form=short_axes.check_channels,
            change="{op} refuses empty channels",
            condition=short_axes.may_have_empty_channels,
            of_kernel=True,
        ),
    ),
    Defect(
        name="expansion to nothing",
        operators=("Expand",),
        reason="The optimizer drops an Expand to a constant shape with a zero.",
        tests=(f"{_TESTS}::test_expand_to_a_constant_shape_with_a_zero_is_dropped",),
        treatment=Decomposition(
            form=empty.expand_to_nothing,
            change="{op} to a size of zero made a Slice",
            condition=empty.expands_to_nothing,
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
            form=empty.reduce_then_squeeze,
            change="{op} of {dtype} keeps its axes, which are then dropped",
            condition=empty.reduces_added_axes,
            of_kernel=True,
        ),
    ),
)
