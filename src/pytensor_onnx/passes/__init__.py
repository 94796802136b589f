"""Passes over onnx_ir models; they know nothing of PyTensor.

A rule that replaces single nodes is a function of a builder and a node (`node_rules`). A pass that
looks at a whole model is a function of the model and of its scope: names, constants and functions
(`model_pass`). Both look at the nodes around a node by `matching`.
"""
