"""Register the definitions of convolutions."""

import pytensor_onnx.functions.signal  # noqa: F401  (registers the definitions)
