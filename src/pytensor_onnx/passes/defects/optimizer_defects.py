"""Wrong rewrites of ONNX Runtime's optimizer, and the guards against them."""

from pytensor_onnx.passes.defects.record import DOUBLE, FLOATS, OLDER, Defect, Guard
from pytensor_onnx.passes.optimizer_guards.hidden_operands import (
    bounded_relu_form,
    padded_pool_form,
    range_form,
)
from pytensor_onnx.passes.optimizer_guards.near_identities import near_identity_form
from pytensor_onnx.passes.optimizer_guards.scaled_products import (
    product_form,
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
