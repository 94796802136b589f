"""Passes over onnx_ir models; they know nothing of PyTensor.

A pass that improves a model is a function of the model, which it changes in place, and of its scope
(names, constants and functions). It returns how many places it changed.
"""
