"""What the operators of ONNX do: an entry for each, by family."""
