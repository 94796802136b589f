"""The dtypes of common operators are those of their schemas, which are read for other operators."""

import subprocess
import sys

import onnx
import pytest

from pytensor_onnx.operators.inference import (
    COMMON,
    COMMON_ATTRIBUTES,
    REQUIRED_ATTRIBUTES,
    read_signature,
)
from pytensor_onnx.targets.kernel_tables import MAIN_TYPES, main_type

OPSETS = range(18, 27)


@pytest.mark.parametrize("op_type", COMMON)
def test_common_operators_have_the_dtypes_of_their_schemas(op_type):
    assert {read_signature(op_type, version) for version in OPSETS} == {COMMON[op_type]}


@pytest.mark.parametrize("op_type", sorted(COMMON.keys() - MAIN_TYPES.keys()))
def test_the_main_type_of_common_operators_is_that_of_their_schemas(op_type):
    for version in OPSETS:
        first = onnx.defs.get_schema(op_type, version, "").inputs[0].type_str
        assert main_type(op_type, version) == first


@pytest.mark.parametrize("op_type", COMMON_ATTRIBUTES)
def test_common_operators_have_their_attributes_in_all_opsets(op_type):
    for version in OPSETS:
        assert (
            onnx.defs.get_schema(op_type, version, "").attributes.keys()
            >= COMMON_ATTRIBUTES[op_type]
        )


@pytest.mark.parametrize("op_type", COMMON)
def test_common_operators_need_the_attributes_of_their_schemas(op_type):
    for version in OPSETS:
        attributes = onnx.defs.get_schema(op_type, version, "").attributes
        needed = {name for name, attribute in attributes.items() if attribute.required}
        assert needed == REQUIRED_ATTRIBUTES.get(op_type, set())


def test_a_model_of_common_operators_reads_no_schema():
    program = """
import numpy as np, onnx, pytensor, pytensor.tensor as pt, pytensor_onnx
onnx.defs.get_schema = None
x = pt.matrix("x")
f = pytensor.function([x], pt.exp(x[1:].sum(axis=1) * 2), mode="ONNX")
assert f(np.zeros((2, 1)))[0] == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
