"""Functions of mode NUMBA for the convolutions and maximum pools of `pytensor_onnx.nn`."""

from numba_networks.operations import NumbaFunction as NumbaFunction
