"""Running of models: ONNX Runtime sessions, mode ONNX, errors and profiles."""
