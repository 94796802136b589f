"""Replacement of nodes without a correct kernel on a target.

Forms are written in ONNX operators and not with `define`: a definition would be lowered to the very
operators that they replace.
"""
