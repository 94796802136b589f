"""Networks of PyTorch, where it is installed, and their gradients."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from tests.importing.torch_networks import NETWORKS, compared


@pytest.mark.sweep
@pytest.mark.parametrize("name", NETWORKS)
def test_values_and_gradients_equal_those_of_pytorch(name):
    found = compared(name)
    assert found.value < 1e-5
    assert found.gradient < 1e-5
