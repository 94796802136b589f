"""Guards against wrong rewrites of ONNX Runtime's optimizer."""
