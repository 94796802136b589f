import onnx_ir as ir
import pytest
from onnx import defs

from pytensor_onnx.operators.inference import schema_attributes
from pytensor_onnx.targets import main_type
from pytensor_onnx.targets.kernel_tables import MAIN_TYPES, allowed_dtypes


@pytest.mark.parametrize("op_type", sorted(MAIN_TYPES))
def test_exceptional_main_types_are_type_variables_of_the_schema(op_type):
    schema = defs.get_schema(op_type, 21)
    assert main_type(op_type, 21) in {c.type_param_str for c in schema.type_constraints}


@pytest.mark.parametrize("op_type", ["Abacus", "Upsample", "BitCast"])
def test_operators_that_the_opset_lacks_are_refused(op_type):
    with pytest.raises(ValueError, match=f"opset 21 has no operator '{op_type}'"):
        main_type(op_type, 21)
    assert allowed_dtypes(op_type, 21) == frozenset()


def test_dtypes_of_sequences_are_those_of_their_tensors():
    assert ir.DataType.DOUBLE in allowed_dtypes("SequenceAt", 21)


def test_plain_types_are_their_only_dtype():
    assert allowed_dtypes("NonMaxSuppression", 21) == {ir.DataType.FLOAT}


def test_attributes_without_a_default_have_none():
    assert schema_attributes("Transpose", 21)["perm"] is None
    assert schema_attributes("Mod", 21)["fmod"] == 0
