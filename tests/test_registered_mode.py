"""The objects that are registered become mode ``"ONNX"`` and its linker at any first use."""

import copy
import pickle

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, predefined_linkers, predefined_modes
from pytensor.link.basic import JITLinker

from pytensor_onnx.registered_mode import _late
from pytensor_onnx.running.linker import ONNX, ONNXLinker, ONNXMode

x = pt.dvector("x")


def set_attribute(mode):
    mode.call_time = 1.5
    assert ONNX.call_time == 1.5
    return mode


MODES = {
    "function": lambda mode: mode,
    "other rewrites": lambda mode: mode.excluding("fusion"),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda mode: pickle.loads(pickle.dumps(mode)),
    "attribute": set_attribute,
}


@pytest.mark.parametrize("use", MODES)
def test_the_mode_is_complete_at_its_first_use(use):
    late = _late("ONNX", Mode)
    assert isinstance(late, Mode)
    f = pytensor.function([x], x + 1, mode=MODES[use](late))
    assert f([1.0]) == [2.0]
    assert type(late) is ONNXMode
    assert late.linker is ONNX.linker


def test_the_linker_is_complete_at_its_first_use():
    late = _late("LINKER", JITLinker)
    assert pytensor.function([x], x + 1, mode=Mode(late, "fast_run"))([1.0]) == [2.0]
    assert type(late) is ONNXLinker


def test_texts_are_those_of_the_mode():
    assert str(_late("ONNX", Mode)) == str(ONNX)
    assert repr(_late("LINKER", JITLinker)) == repr(ONNXLinker())


def test_both_are_registered():
    str(predefined_modes["ONNX"]), str(predefined_linkers["onnx"])
    assert type(predefined_modes["ONNX"]) is ONNXMode
    assert type(predefined_linkers["onnx"]) is ONNXLinker


def test_pymc_is_warned_at_the_first_use_too():
    def _sample_external_nuts():
        return _late("ONNX", Mode).linker

    with pytest.warns(UserWarning, match=r"pytensor_onnx\.pymc\.sample"):
        _sample_external_nuts()
