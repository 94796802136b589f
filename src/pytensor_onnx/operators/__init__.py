"""Shape rules and other facts of the operators of ONNX: an entry for each operator, by family."""
