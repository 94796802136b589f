"""Graphs of ONNX as they are built: operators, dtypes, dimensions, names."""
