"""The types and attributes in the table of schemas are the ones of the schemas."""

import json
import subprocess
import sys

import pytest

from pytensor_onnx.conversion import MAX_OPSET
from pytensor_onnx.operators.inference import (
    FIRST_OPSET,
    defaults_of,
    read_signature,
    schema_attributes,
    schema_of,
    signature,
)
from scripts.make_operators import TABLE, table

OPSETS = range(FIRST_OPSET, MAX_OPSET + 1)


def test_the_table_is_the_one_of_the_schemas():
    assert TABLE.read_text(encoding="utf-8") == table()


@pytest.mark.parametrize("op_type", json.loads(TABLE.read_text(encoding="utf-8")))
def test_operators_have_the_types_and_attributes_of_their_schemas(op_type):
    for version in OPSETS:
        assert signature(op_type, version) == read_signature(op_type, version)
        schema = schema_of(op_type, version)
        known = schema_attributes(op_type, version)
        for name, attribute in {} if schema is None else schema.attributes.items():
            if name in known:
                assert (known[name] is ...) == attribute.required
        assert schema is None or known.keys() <= schema.attributes.keys()


def test_an_opset_lacks_later_and_deprecated_operators():
    assert signature("Gelu", 19) is None
    assert signature("Gelu", 20) is not None
    assert signature("Upsample", 21) is None


@pytest.mark.parametrize(
    ("op_type", "defaults"),
    [
        ("Softmax", {"axis": -1}),
        ("ReduceSum", {"keepdims": 1, "noop_with_empty_axes": 0}),
        ("Transpose", {}),
        ("Pad", {"mode": "constant"}),
    ],
)
def test_defaults_of_attributes(op_type, defaults):
    assert defaults_of(op_type) == defaults


@pytest.mark.slow
def test_a_model_of_operators_of_the_table_reads_no_schema():
    program = """
import numpy as np, onnx, pytensor, pytensor.tensor as pt, pytensor_onnx
onnx.defs.get_schema = None
x = pt.matrix("x")
f = pytensor.function([x], pt.exp(x[1:].sum(axis=1) * 2), mode="ONNX")
assert f(np.zeros((2, 1)))[0] == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
