"""Random graphs, compared in mode ONNX and as exported models with PyTensor."""
